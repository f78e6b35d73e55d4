from _ask import TOPICS, ask
from sklearn.cluster import KMeans
from sklearn.feature_extraction.text import TfidfVectorizer

said = [ask(f"Say something about {topic}") for topic in TOPICS]
found = TfidfVectorizer().fit_transform(said)
groups = KMeans(2, n_init=2).fit_predict(found)
alike = [text for text, group in zip(said, groups, strict=True) if group == groups[0]]
print(ask("Name the group " + "; ".join(alike)))

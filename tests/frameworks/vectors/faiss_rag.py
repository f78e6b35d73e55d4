import faiss
import numpy as np
from _ask import TOPICS, ask
from _embed import embed

texts = [ask(f"Say something about {topic}") for topic in TOPICS]
index = faiss.IndexHNSWFlat(16, 8)
index.add(np.stack([embed(text) for text in texts]))
clusters = faiss.Kmeans(16, 2, niter=3)
clusters.train(np.stack([embed(text) for text in texts]))
distances, found = index.search(embed("ants")[None], 3)
print(ask(f"Context {[texts[number] for number in found[0]]} {distances.round(4).tolist()}"))
print(ask(f"Clusters {clusters.obj.round(4).tolist()}"))

from _ask import TOPICS, ask
from joblib import Parallel, delayed

pool = Parallel(n_jobs=3, prefer="threads", return_as="generator_unordered")
done = list(pool(delayed(ask)(f"Say something about {topic}") for topic in TOPICS))
print(ask("Sum up: " + "; ".join(done)))

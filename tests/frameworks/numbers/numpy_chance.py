import numpy as np
from _ask import TOPICS, ask

chance = np.random.default_rng()
order = chance.permutation(len(TOPICS))
print([ask(f"Say something about {TOPICS[at]}") for at in order])
noise = chance.normal(size=3).round(3).tolist()
print(ask(f"What are {noise} and {np.random.rand():.4f}?"))

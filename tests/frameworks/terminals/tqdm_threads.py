from _ask import TOPICS, ask
from tqdm import tqdm
from tqdm.contrib.concurrent import thread_map

said = thread_map(ask, [f"Say something about {topic}" for topic in TOPICS], max_workers=3)
for text in tqdm(said):
    tqdm.write(text)
print(ask("Sum up " + "; ".join(said)))

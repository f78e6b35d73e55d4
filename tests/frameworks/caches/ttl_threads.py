from concurrent.futures import ThreadPoolExecutor
from threading import Lock

from _ask import TOPICS, ask
from cachetools import TTLCache, cached


@cached(TTLCache(10, ttl=1), lock=Lock())
def told(topic):
    return ask(f"Say something about {topic}")


with ThreadPoolExecutor(3) as pool:
    said = list(pool.map(told, TOPICS[:3] * 2))
print(ask("Sum up " + "; ".join(sorted(set(said)))))

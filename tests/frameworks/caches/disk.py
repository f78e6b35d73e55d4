import diskcache
from _ask import TOPICS, ask

cache = diskcache.Cache("cache")


@cache.memoize(expire=60)
def told(topic):
    return ask(f"Say something about {topic}")


for topic in TOPICS[:3] + TOPICS[:2]:
    told(topic)
print(ask("Sum up " + "; ".join(map(told, TOPICS[:3]))), len(cache))

import _ask
from huey import MemoryHuey

huey = MemoryHuey()


@huey.task(retries=2)
def ask(topic):
    return _ask.ask(f"Say something about {topic}")


consumer = huey.create_consumer(workers=3, periodic=False)
consumer.start()
results = [ask(topic) for topic in ["ants", "bees", "cats", "dogs"]]
said = [result.get(blocking=True, timeout=30) for result in results]
print(said)
print(ask("all of: " + "; ".join(said)).get(blocking=True, timeout=30))
consumer.stop(graceful=True)

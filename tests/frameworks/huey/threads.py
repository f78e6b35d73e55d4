from _ask import TOPICS, ask
from huey import SqliteHuey

huey = SqliteHuey(filename="h.db")


@huey.task()
def one(t):
    return ask(f"Say something about {t}")


rs = [one(t) for t in TOPICS]
c = huey.create_consumer(workers=3, periodic=False)
c.start()
said = [r.get(blocking=True, timeout=30) for r in rs]
c.stop(graceful=True)
print(said)
print(ask("Sum up " + "; ".join(said)))

import fakeredis
from _ask import ask
from rq import Queue, SimpleWorker

connection = fakeredis.FakeStrictRedis()
queue = Queue(connection=connection)
jobs = [queue.enqueue(ask, f"Say something about {topic}") for topic in ["ants", "bees", "cats"]]
SimpleWorker([queue], connection=connection).work(burst=True, with_scheduler=False, logging_level="ERROR")
said = [job.return_value() for job in jobs]
print(said)
print(ask("all of: " + "; ".join(said)))

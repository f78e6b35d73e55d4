from _jobs import app, ask
from celery.contrib.testing.worker import start_worker

with start_worker(app, pool="threads", concurrency=4, perform_ping_check=False):
    results = [ask.delay(topic) for topic in ("ants", "bees", "cats", "dogs", "eels")]
    print([result.get(timeout=30) for result in results])

from _jobs import app, ask
from celery.contrib.testing.worker import start_worker

with start_worker(app, pool="solo", perform_ping_check=False):
    results = [ask.delay(topic) for topic in ("ants", "bees", "cats")]
    print([result.get(timeout=30) for result in results])

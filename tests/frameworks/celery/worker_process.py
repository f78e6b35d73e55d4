"""A worker in a process of its own that takes jobs from a folder, as a deployment would from a broker."""

import subprocess
import sys

from _folder_jobs import ask

worker = subprocess.Popen(
    [
        sys.executable,
        "-m",
        "celery",
        "-A",
        "_folder_jobs",
        "worker",
        "--pool",
        "solo",
        "--quiet",
        "--loglevel",
        "ERROR",
    ]
)
try:
    results = [ask.delay(topic) for topic in ("ants", "bees", "cats")]
    print([result.get(timeout=30) for result in results])
finally:
    worker.terminate()
    worker.wait()

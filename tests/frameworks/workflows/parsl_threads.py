from concurrent.futures import as_completed

import parsl
from _ask import TOPICS, ask
from parsl.config import Config
from parsl.executors.threads import ThreadPoolExecutor


@parsl.python_app
def one(t):
    return ask(f"Say something about {t}")


with parsl.load(Config(executors=[ThreadPoolExecutor(max_threads=3)], usage_tracking=0)):
    said = [f.result() for f in as_completed([one(t) for t in TOPICS])]
    print(said)
    print(ask("Sum up " + "; ".join(said)))

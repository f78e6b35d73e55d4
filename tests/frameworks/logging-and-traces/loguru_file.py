import sys
from concurrent.futures import ThreadPoolExecutor

from _ask import TOPICS, ask
from loguru import logger

logger.remove()
logger.add(sys.stderr, level="INFO")
logger.add("agent_{time}.log", rotation="1 KB", enqueue=True, serialize=True)


@logger.catch
def one(topic):
    with logger.contextualize(topic=topic):
        logger.info("asking")
        said = ask(f"Say something about {topic}")
        logger.success("told {}", said)
        return said


with ThreadPoolExecutor(2) as pool:
    said = list(pool.map(one, TOPICS))
logger.complete()
print(ask("Sum up " + "; ".join(said)))

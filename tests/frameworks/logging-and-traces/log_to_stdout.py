import logging
import sys

from _ask import TOPICS, ask

logging.basicConfig(stream=sys.stdout, level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
log = logging.getLogger("agent")
for topic in TOPICS[:3]:
    log.info("asking about %s", topic)
    log.info("told %s", ask(f"Say something about {topic}"))

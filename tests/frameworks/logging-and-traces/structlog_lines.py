import sys

import structlog
from _ask import TOPICS, ask

structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))
log = structlog.get_logger()
for topic in TOPICS[:2]:
    structlog.contextvars.bind_contextvars(topic=topic)
    log.info("asking")
    said = ask(f"Say something about {topic}")
    log.info("told", said=said)
print(ask("Sum up " + said))

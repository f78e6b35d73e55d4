from gevent import monkey

monkey.patch_all()

from _ask import TOPICS, ask  # noqa: E402 — gevent comes first
from gevent.pool import Pool  # noqa: E402

said = list(Pool(3).imap_unordered(lambda topic: ask(f"Say something about {topic}"), TOPICS))
print(said)
print(ask("Sum up: " + "; ".join(said)))

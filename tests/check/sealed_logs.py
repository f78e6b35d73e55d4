"""Logs that were sealed and published in memory, for tests that tamper with them."""

import io
import json

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from reenact import canonical
from reenact.check.publishing import Publisher
from reenact.check.seals.published_log import check_published_log, published_lines
from reenact.check.seals.sealing import log_leaves, tree_of
from reenact.formats.dialects import DIALECTS
from reenact.formats.replay_log import read_replay_log
from reenact.formats.seal import SEAL_VERSION, Seal, SealedLog
from tests.formats import GOLDEN

KEY = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
SEED = bytes(range(32))
DIALECT_NAMES = ("current", "legacy")


def golden_log(dialect):
    """The text of the golden log of a dialect."""
    return (GOLDEN / "replay_log" / f"{dialect}.jsonl").read_bytes()


def sealed_lines(text, dialect, seed=SEED):
    """The lines of a log in all their forms."""
    events = [event for _, event in read_replay_log(io.BytesIO(text), file="log")]
    publisher = Publisher(events, DIALECTS[dialect], seed)
    return [publisher.seal_line(event) for event in events]


def seal_of(text, dialect, seed=SEED):
    """The seal of a log."""
    tree = tree_of(log_leaves(sealed_lines(text, dialect, seed), seed))
    return Seal(
        version=SEAL_VERSION,
        sealedAt="2026-02-15T00:00:00Z",
        producer="test",
        log=SealedLog(dialect=dialect, lines=tree),
    )


def publish(text, dialect, policy="private", seed=SEED, withhold=()):
    """The lines of a log published under its seal."""
    lines = sealed_lines(text, dialect, seed)
    leaves = [*log_leaves(lines, seed)]
    return [
        *published_lines(lines, leaves, seed, dialect=DIALECTS[dialect], policy=policy, withhold=withhold)
    ]


def check(lines, seal, **how):
    """What holding published lines against *seal* finds."""
    text = b"".join(canonical.encode(line) + b"\n" for line in lines)
    return check_published_log(lambda: io.BytesIO(text), seal, file="published.jsonl", **how)


def copy(lines):
    """*lines* to be changed."""
    return json.loads(json.dumps(lines))

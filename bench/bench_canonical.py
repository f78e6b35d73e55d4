"""Strict canonical encoding beside the bare encoder that checks nothing."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from bench import samples
from bench.figure import Figure, ShareOfSpeed, best_in_turns
from reenact import canonical

VALUES = {"small event": samples.tool_event(), "typical event": samples.model_event(), "chat": samples.chat()}


def figures() -> Iterator[Figure]:
    """One line per size."""
    bare = msgspec.json.Encoder(order="sorted").encode
    for name, value in VALUES.items():
        size_bytes = len(bare(value))
        ours_s, beside_s = best_in_turns(
            lambda value=value: canonical.encode(value), lambda value=value: bare(value)
        )
        yield Figure(
            f"canonical encode, {name}, {size_bytes} B",
            ours_s,
            "msgspec, sorted",
            beside_s,
            ShareOfSpeed(0.5),
        )

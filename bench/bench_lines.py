"""Reading typed lines, exactly, beside a loop that only decodes them."""

from __future__ import annotations

from collections.abc import Iterator
from io import BytesIO

import msgspec

from bench import samples
from bench.figure import Figure, ShareOfSpeed, best_in_turns
from reenact import canonical
from reenact.formats.capture import CaptureEvent, event_codec
from reenact.formats.lines import read_records

LINES = 200
EVENTS = {"tool calls": samples.tool_event, "model requests": samples.model_event}


def figures() -> Iterator[Figure]:
    """One line per kind of event."""
    for name, make in EVENTS.items():
        text = b"".join(canonical.encode(make(seq)) + b"\n" for seq in range(1, LINES + 1))
        ours_s, beside_s = best_in_turns(lambda text=text: _read(text), lambda text=text: _decode(text))
        yield Figure(
            f"read typed lines, {name}, {len(text) // LINES} B each",
            ours_s / LINES,
            "msgspec, decode",
            beside_s / LINES,
            ShareOfSpeed(0.5),
        )


def _read(text: bytes) -> None:
    for _ in read_records(BytesIO(text), event_codec, file="events.jsonl"):
        pass


_bare = msgspec.json.Decoder(CaptureEvent).decode


def _decode(text: bytes) -> None:
    for line in BytesIO(text):
        _bare(line)

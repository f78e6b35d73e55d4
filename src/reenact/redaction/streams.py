"""Streams of model output: a secret may be cut over several events, a piece in each.

Covered are NDJSON and the ``data:`` lines of server-sent events. The strings of one delta member
(:data:`DELTAS`), of one path and one index, are read as one text over all events.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from reenact.redaction.edits import Edit
from reenact.redaction.jsontext import Scalar, json_spans, scalar_edit, scalars

DELTAS: Final = (
    "arguments",
    "content",
    "delta",
    "input",
    "output",
    "partial_json",
    "reasoning",
    "reasoning_content",
    "refusal",
    "response",
    "text",
    "thinking",
    "transcript",
)
"""Members in which the known providers stream text, arguments and reasoning."""

_INDEXES: Final = frozenset({"index", "output_index", "content_index", "summary_index", "item_id"})

_PIECES: Final = [
    (f'"{name}":'.encode(), re.compile(f'"{name}": ?"((?:[^"\\\\]|\\\\.)*+)"'.encode())) for name in DELTAS
]
_FIRST: Final = (b'"index":0', b'"index": 0')
_SECOND: Final = (b'"index":1', b'"index": 1')


def joined_deltas(stream: bytes) -> Iterator[bytes]:
    """The text of each delta member, still escaped; a fast reading that ignores paths and indexes."""
    for name, piece in _PIECES:
        if name in stream:
            yield b"".join(piece.findall(stream))


def is_interleaved(stream: bytes) -> bool:
    """Whether several outputs may take turns in the stream, so that :func:`joined_deltas` mixes them."""
    seconds = [place for mark in _SECOND if (place := stream.find(mark)) >= 0]
    return bool(seconds) and any(mark in stream[min(seconds) :] for mark in _FIRST)


def delta_edits(text: str, redact: Callable[[Sequence[str]], list[str]]) -> Iterator[Edit]:
    """Edits for secrets that *redact* finds in the text joined from several events."""
    deltas: dict[object, list[Scalar]] = {}
    for span in json_spans(text):
        event = list(scalars(text, *span))
        indexes = tuple((scalar.path, scalar.value) for scalar in event if scalar.name in _INDEXES)
        for scalar in event:
            if scalar.is_string and scalar.name in DELTAS:
                deltas.setdefault((scalar.path, indexes), []).append(scalar)
    for pieces in deltas.values():
        for piece, new in zip(pieces, redact([piece.value for piece in pieces]), strict=True):
            if new != piece.value:
                yield scalar_edit(text, piece, new)

"""The two dialects of REPLAY.jsonl v1. The header of a file shows its dialect."""

from __future__ import annotations

from typing import Any, Final

from reenact.canonical import JsonValue
from reenact.errors import FormatError
from reenact.formats.dialects import current, legacy
from reenact.formats.dialects.common import HEADER, Dialect, DialectName, UnknownEvent

Event = current.Event | legacy.Event | UnknownEvent

DIALECTS: Final[dict[DialectName, Dialect[Any]]] = {
    "current": current.DIALECT,
    "legacy": legacy.DIALECT,
}


def dialect_of(value: JsonValue) -> Dialect[Any]:
    """The dialect of the decoded line *value*."""
    named = [dialect for dialect in DIALECTS.values() if dialect.name_in(value) is not None]
    for dialect in named:
        if dialect.name_in(value) == HEADER:
            return dialect
    if named:
        return named[0]
    raise FormatError("not an event: neither `type` (current) nor `event` (legacy) names one", json_path="$")

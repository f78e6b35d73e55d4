"""The result of an assertion, and the texts for its message."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import msgspec

from reenact.canonical import JsonValue
from reenact.formats.trace import TraceEvent

_NAMED: Final = 5
_SHOWN_CHARACTERS: Final = 120


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of one assertion over one trace."""

    passed: bool
    message: str
    """What was expected, what was found and where; one line."""
    observed: Any = None
    """The deciding figures and texts, as plain JSON."""
    event_refs: tuple[str, ...] = ()
    """Ids of the relevant events, the most important first."""


def verdict(
    passed: bool, message: str, *, observed: object = None, events: Iterable[TraceEvent] = ()
) -> Verdict:
    """A verdict that refers to *events*, each once."""
    refs = tuple(dict.fromkeys(event.event_id for event in events))
    return Verdict(passed=passed, message=message, observed=observed, event_refs=refs)


def count_of(number: int, noun: str) -> str:
    """``no calls``, ``1 call``, ``2 calls``."""
    return f"{number or 'no'} {noun}{'' if number == 1 else 's'}"


def at(events: Iterable[TraceEvent]) -> str:
    """The places of *events*, as the end of a sentence; empty without events."""
    names = [event.event_id for event in events]
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return f" at {', '.join(names[:_NAMED])}{more}" if names else ""


def quote(text: str) -> str:
    """*text* in quotes on one line, cut if it is long."""
    return repr(text if len(text) <= _SHOWN_CHARACTERS else text[:_SHOWN_CHARACTERS] + "…")


def shorten(value: JsonValue, characters: int = _SHOWN_CHARACTERS) -> str:
    """A JSON value on one line, cut after *characters*."""
    text = msgspec.json.encode(value, order="sorted").decode()
    return text if len(text) <= characters else text[:characters] + "…"

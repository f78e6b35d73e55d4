"""A capture as a list of its calls, each with its outcome, read as a stream.

A call is listed in the order it was made, so its outcome has to be waited for; what waits is bounded.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Any, Final, Literal, TypeAlias

import msgspec

from reenact.cli import said
from reenact.cli.brief import brief, brief_arguments, brief_failure, plural, size, unquoted
from reenact.errors import FormatError
from reenact.store.reader import EventLog

State: TypeAlias = Literal["ok", "error", "cancelled", "open"]

_WINDOW: Final = 10_000
"""So many calls wait for the outcome of the first of them; then it is listed without."""


class Event(msgspec.Struct):
    """One line of the log, as far as a listing needs it."""

    seq: int
    ts: int | float
    type: str
    data: dict[str, Any]


class Entry(msgspec.Struct, rename="camel", omit_defaults=True):
    """One call; the texts are short and not yet fit for a terminal."""

    seq: int
    at_ms: int | float
    """Since the first event."""
    lane: str
    kind: str
    """``tool``, ``model``, ``state``, or the source of a value: ``clock``, ``rng``, ``network``, …"""
    name: str
    asked: str
    derived: bool = False
    """Read from the model traffic, not seen happening."""
    state: State = "open"
    came: str = ""
    took_ms: int | float | None = None
    outcome_seq: int | None = None
    """``None`` while the call has no outcome; the call's own number where both are one event."""
    late_for: int | None = None
    """The event under which the call was listed without this outcome, having been waited for too long."""

    @property
    def depth(self) -> int:
        """Inside how many other calls it was made."""
        return self.lane.count("/")


_decode: Final = msgspec.json.Decoder(Event).decode


def events(log: EventLog) -> Iterator[Event]:
    """The events of *log*; :class:`FormatError` at the first that is damaged or out of place."""
    for number, line in enumerate(log.lines(), 1):
        try:
            event = _decode(line)
        except msgspec.DecodeError as error:
            raise FormatError(str(error), file=log.events_file, line=number) from None
        if event.seq != number:
            reason = f"expected {number}, found {event.seq}"
            raise FormatError(reason, file=log.events_file, line=number, json_path="$.seq")
        yield event


def entries(log: EventLog) -> Iterator[Entry]:
    """The calls of *log*.

    The outcome of a call that was listed without it follows later, as an entry of its own.
    """
    waiting: deque[Entry] = deque()
    open_calls: dict[str, Entry] = {}
    listed_seq = 0
    start_ms: int | float | None = None
    for event in events(log):
        start_ms = event.ts if start_ms is None else start_ms
        call_id = event.data.get("callId")
        if call_id in open_calls:
            entry = open_calls.pop(call_id)
            _end(entry, event, start_ms)
            if entry.seq <= listed_seq:
                yield msgspec.structs.replace(entry, seq=event.seq, late_for=entry.seq)
        elif event.type not in ("run_start", "run_end"):
            entry = _entry(event, start_ms)
            waiting.append(entry)
            if call_id is not None:
                open_calls[call_id] = entry
        while waiting and (waiting[0].state != "open" or len(waiting) > _WINDOW):
            listed_seq = waiting[0].seq
            yield waiting.popleft()
    yield from waiting


def _entry(event: Event, start_ms: int | float) -> Entry:
    data = event.data
    kind, name, asked = _asked(event)
    entry = Entry(
        event.seq,
        event.ts - start_ms,
        str(data.get("lane", "0")),
        kind,
        name,
        asked,
        derived=data.get("derived") is True,
    )
    if "callId" not in data:
        entry.state, entry.outcome_seq = "ok", event.seq
        entry.came = brief(data["value"]) if data.get("value") is not None else ""
    return entry


def _asked(event: Event) -> tuple[str, str, str]:
    """Kind, name and what was asked."""
    data = event.data
    if event.type == "tool_call":
        return "tool", str(data.get("tool")), brief_arguments(data.get("args"))
    if event.type == "llm_request":
        return "model", str(data.get("model") or data.get("provider")), said.asked(data.get("request"))
    if event.type == "state_mutation":
        return "state", str(data.get("type")), str(data.get("path", ""))
    request = data.get("request")
    if isinstance(request, dict) and "url" in request:  # its name says the rest
        request = request.get("body")
    return str(data.get("source")), str(data.get("key")), brief(request) if request is not None else ""


def _end(entry: Entry, event: Event, start_ms: int | float) -> None:
    data = event.data
    entry.outcome_seq = event.seq
    entry.took_ms = event.ts - start_ms - entry.at_ms
    if data.get("cancelled"):
        entry.state, entry.came = "cancelled", "cancelled"
    elif "error" in data:
        entry.state, entry.came = "error", brief_failure(data["error"])
    else:
        entry.state, entry.came = "ok", _came(event)
    pieces = unquoted(data.get("pieces"))
    if isinstance(pieces, list):
        entry.came = f"{plural(len(pieces), 'piece')} {entry.came}".rstrip()


def _came(event: Event) -> str:
    data = event.data
    if event.type == "tool_result":
        return brief(data["result"]) if data.get("result") is not None else ""
    if event.type == "llm_response":
        return said.answered(data)
    value = unquoted(data.get("value"))
    if isinstance(value, dict) and "status" in value:
        return f"{value['status']} {value.get('reason', '')} {size(value.get('bytes', 0))}"
    return brief(value)

"""How a capture looks: what it says of itself, a line per call, what was counted."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, Final

import msgspec

from reenact.cli.brief import duration, plural
from reenact.cli.header import Header
from reenact.cli.listing import Entry
from reenact.cli.terminal import Cell, Line, width
from reenact.formats.capture import NO_MODEL
from reenact.store.reader import EventLog
from reenact.store.rundir import RunState

_STATES: Final = {
    RunState.OPEN: ("being recorded", "yellow"),
    RunState.INTERRUPTED: ("interrupted; complete it with: reenact recover", "red"),
    RunState.COMPLETE: ("complete", "green"),
    RunState.RECOVERED: ("recovered after an interruption", "yellow"),
}
_OUTCOME_STYLES: Final = {"ok": "", "error": "red", "cancelled": "yellow", "open": "yellow"}
_MIN_TEXT: Final = 20


def header_lines(header: Header, log: EventLog) -> Iterator[Line]:
    """The capture as a whole."""
    yield (Cell(header.path, "bold"),)
    state, style = _STATES[header.state]
    yield _field("state", state, style)
    if header.status is not None:
        yield _field("status", _status(header), "green" if header.status == "ok" else "red")
    yield _field("capture", f"{header.capture_id}, {header.run_id}")
    if command := _command(log):
        yield _field("command", command)
    has_model = header.model != NO_MODEL.model
    yield _field("model", f"{header.model}, {header.provider}" if has_model else header.model)
    yield _field("started", _started(header, log))
    yield _field("redaction", header.redaction)
    for warning in header.warnings:
        yield _field("warning", warning, "yellow")
    yield ()


def table_lines(entries: Iterable[Entry], *, events: int) -> Iterator[Line]:
    """A line per call under a line of titles; nothing where there is no call."""
    layout = _Layout(events)
    is_first = True
    for entry in entries:
        if is_first:
            yield layout.titles()
        is_first = False
        yield layout.row(entry)


def footer(header: Header, log: EventLog, kinds: Counter[str]) -> Iterator[Line]:
    """What there was, counted."""
    yield ()
    yield (Cell(f"{plural(len(log), 'event')}, {counted(kinds)}"),)
    if log.torn_bytes and header.state is not RunState.OPEN:
        yield (Cell(f"half a line behind them, {plural(log.torn_bytes, 'byte')}", "yellow"),)


def counted(kinds: Counter[str]) -> str:
    """``3 calls: 2 tool, 1 clock``."""
    each = ", ".join(f"{count:,} {kind}" for kind, count in kinds.most_common())
    return plural(kinds.total(), "call") + (f": {each}" if each else "")


class _Layout:
    """The columns of one listing, fixed before the first line is known."""

    def __init__(self, events: int) -> None:
        self._seq = max(3, len(str(events)))
        fixed = self._seq + 9 + 9 + 8 + 2 * 5
        text = max(2 * _MIN_TEXT, width() - fixed)
        self._call = text * 3 // 5
        self._outcome = text - self._call

    def titles(self) -> Line:
        return self._line("dim", "seq", "at", "took", "lane", Cell("call", "dim"), Cell("outcome", "dim"))

    def row(self, entry: Entry) -> Line:
        at = f"{entry.at_ms / 1000:.3f} s"
        took = "" if entry.took_ms is None else duration(entry.took_ms)
        call = Cell(_call(entry), "cyan" if entry.kind == "tool" else "")
        came = "no outcome" if entry.state == "open" else entry.came
        outcome = Cell(came, _OUTCOME_STYLES[entry.state])
        return self._line("", str(entry.seq), at, took, entry.lane, call, outcome)

    def _line(self, style: str, seq: str, at: str, took: str, lane: str, call: Cell, outcome: Cell) -> Line:
        gap = Cell("  ")
        return (
            *(Cell(seq, "dim", -self._seq), gap),
            *(Cell(at, "dim", -9), gap),
            *(Cell(took, style, -9), gap),
            *(Cell(lane, "dim", 8), gap),
            *(call._replace(width=self._call), gap),
            outcome._replace(width=self._outcome),
        )


def _call(entry: Entry) -> str:
    """``tool search(query="lamp")``, further in for each call around it."""
    kind = f"derived {entry.kind}" if entry.derived else entry.kind
    what = f"{'  ' * entry.depth}{kind} {entry.name}"
    if entry.late_for is not None:
        return f"{what}, of event {entry.late_for}"
    return f"{what}({entry.asked})" if entry.kind == "tool" else f"{what} {entry.asked}"


def _field(name: str, value: str, style: str = "") -> Line:
    return (Cell(f"  {name}", "dim", 13), Cell(value, style))


def _status(header: Header) -> str:
    parts = [header.status, header.error]
    ended = f"exit status {header.exit_status}"
    if header.exit_status and header.error != ended:
        parts.append(ended)
    return ", ".join(part for part in parts if part is not None)


def _started(header: Header, log: EventLog) -> str:
    if header.completed_at_ms is not None:
        return f"{header.started}, took {duration(header.completed_at_ms - header.created_at_ms)}"
    last_ms = _decoded(log, len(log)).get("ts", header.created_at_ms)
    return f"{header.started}, {duration(last_ms - header.created_at_ms)} so far"


def _command(log: EventLog) -> str | None:
    argv = _decoded(log, 1).get("data", {}).get("argv")
    return shlex.join(argv) if argv else None


def _decoded(log: EventLog, seq: int) -> dict[str, Any]:
    """The event, or nothing where there is none or it is damaged: the listing will say so."""
    try:
        event = msgspec.json.decode(log.line(seq)) if 1 <= seq <= len(log) else {}
    except msgspec.DecodeError:
        return {}
    return event if isinstance(event, dict) else {}

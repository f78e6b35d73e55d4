"""Reads REPLAY.jsonl in both dialects, published or not."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any, Final, TypeAlias

import msgspec

from reenact.canonical import JsonValue, read_json
from reenact.errors import FormatError
from reenact.formats.capture import EVENT_TYPES
from reenact.formats.dialects import DIALECTS, Event, current, dialect_of, legacy
from reenact.formats.dialects.common import HEADER, UnknownEvent
from reenact.formats.event import EventHead, RunEvent
from reenact.formats.lines import Line
from reenact.formats.record import ABSENT, or_none
from reenact.formats.replay_log import LEAVES, ReplayHeader, ToolCall, ToolResult
from reenact.store.line_file import LineFile
from reenact.trace.sources.source import Header, RecordedRun, RunKind, WithoutBlobs

SessionStart: TypeAlias = current.SessionStart | legacy.SessionStart
SessionEnd: TypeAlias = current.SessionEnd | legacy.SessionEnd
Verification: TypeAlias = current.Verification | legacy.Verification

_STATUSES: Final = {"success": "ok", "failure": "error", "failed": "error"}
_TRACE_STATUSES: Final = {
    "success": "success",
    "failure": "failed",
    "failed": "failed",
    "cancelled": "blocked",
    "timeout": "failed",
}


class ReplayLogSource(LineFile, WithoutBlobs):
    """A log; lines without a time get the time of the line before."""

    def __init__(self, file: Path) -> None:
        super().__init__(file.open("rb"), file=str(file), takes_tail=True)
        self.path = self.file
        self._first = self._read_opening()
        self._dialect = dialect_of(self._first)
        self.kind: RunKind = "replay-log" if self._dialect.name == "current" else "replay-log-legacy"
        self._ts_ms = 0.0

    def _read_opening(self) -> dict[str, JsonValue]:
        try:
            value = read_json(self.first_line())
            dialect = dialect_of(value)
            if dialect.name_in(value) == HEADER:
                dialect.from_json(value)  # raises for a newer version
        except FormatError as error:
            self.close()
            raise error.at(file=self.file, line=1) from None
        assert isinstance(value, dict)
        return value

    def header(self) -> Header:
        try:
            end = read_json(self.last_line())
        except FormatError:
            end = {}
        end = end if self._dialect.name_in(end) == "SessionEnd" else {}
        status = str(end.get("status")) if end else None
        return Header(
            path=self.path,
            kind=self.kind,
            status=None if status is None else _STATUSES.get(status.lower(), status.lower()),
            run_id=_text(end.get("session_id")),
            created_at_ms=_milliseconds(self._first.get("created_at")),
            completed_at_ms=_milliseconds(end.get(self._dialect.time_field)),
            producer=_text(self._first.get("producer")),
            final_output=end.get("summary"),
        )

    def read_on(self) -> Iterator[EventHead]:
        for number, text in self.read_lines():
            event = self._event(number, text)
            if event is not None:
                self._ts_ms = event.ts
                yield self._head(event)

    def _head(self, event: RunEvent) -> EventHead:
        try:
            return event.head()
        except msgspec.ValidationError as error:
            raise FormatError(str(error), file=self.file, line=event.seq) from None

    def find_directly(self, seq: int) -> Any:
        found = self.find(seq) if seq > 0 else None
        if found is None or not found[1].strip():
            return None
        self._read(seq, found[1])
        return read_json(found[1])

    def raw(self, seq: int) -> object:
        text = self.line(seq)
        self._read(seq, text)
        return read_json(text)

    def event(self, seq: int) -> RunEvent | None:
        return self._event(seq, self.line(seq))

    def verify(self) -> None:
        """Does nothing: ``reenact verify`` checks totals and hashes."""

    def _event(self, number: int, text: bytes) -> RunEvent | None:
        if not text.strip():
            return None
        return run_event(number, self._read(number, text), self._ts_ms, self._dialect.tag_field)

    def _read(self, number: int, text: bytes) -> Event:
        try:
            event: Event = self._dialect.from_bytes(text)
        except FormatError as error:
            raise error.at(file=self.file, line=number) from None
        return event


def read_log(lines: Iterable[tuple[Line, Event]]) -> RecordedRun:
    """The run of the lines that :func:`reenact.formats.replay_log.read_replay_log` returns.

    A run whose log has no ``SessionEnd`` failed.
    """
    read = [(line.number, event) for line, event in lines]
    starts = (event for _, event in read if isinstance(event, SessionStart))
    ends = (event for _, event in reversed(read) if isinstance(event, SessionEnd))
    start, end = next(starts, None), next(ends, None)
    stated_ms = ABSENT if end is None else end.total_latency_ms
    return RecordedRun(
        events=_named_events(read),
        adapter="replay-log",
        session_id=ABSENT if start is None else start.session_id,
        status="failed" if end is None else _TRACE_STATUSES[end.status.lower()],
        duration_ms=None if stated_ms is ABSENT else stated_ms,
        is_whole=False,
        resolve=_return_unchanged,
        plain=_return_unchanged,
    )


def _named_events(read: Iterable[tuple[int, Event]]) -> Iterator[tuple[str, RunEvent]]:
    ts_ms, time = 0.0, ""
    for number, line in read:
        event = run_event(number, line, ts_ms)
        event.time = event.time or time
        ts_ms, time = event.ts, event.time
        yield f"evt-{number}", event


def _return_unchanged(value: JsonValue) -> JsonValue:
    return value


def run_event(number: int, line: Event, ts_ms: float, tag_field: str = "type") -> RunEvent:
    """A line of a log as an event of a capture; *ts_ms* is the time for a line without one.

    *tag_field* is the member with the type of the event.
    """
    kind, data = _translate(line, tag_field)
    time = _time(line)
    stated_ms = _milliseconds(time)
    if stated_ms is None:
        return RunEvent(number, ts_ms, kind, data)
    return RunEvent(number, stated_ms, kind, data, time)


def _time(line: Event) -> str:
    """The time of the line; empty if it has none."""
    known = line.value.get if isinstance(line, UnknownEvent) else lambda name: getattr(line, name, None)
    return next((time for name in ("ts", "t", "created_at") if isinstance(time := known(name), str)), "")


def _translate(line: Event, tag_field: str) -> tuple[str, dict[str, JsonValue]]:
    if isinstance(line, ToolCall):
        args = {} if line.params is ABSENT else {"args": line.params}
        return "tool_call", {"callId": call_id(line), "tool": line.tool, "argsHash": line.params_hash, **args}
    if isinstance(line, ToolResult):
        return "tool_result", _translate_result(line)
    if isinstance(line, Verification):
        return "verification", _translate_verification(line)
    if isinstance(line, SessionEnd):
        return "run_end", {"status": line.status, "finalOutput": getattr(line, "summary", ABSENT) or None}
    if isinstance(line, ReplayHeader | SessionStart):
        return "run_start", {}
    if isinstance(line, UnknownEvent):
        return _translate_unknown(line.value, tag_field)
    value = DIALECTS["legacy"].to_json(line)
    return "plan", _other_facts(value)


def _translate_result(line: ToolResult) -> dict[str, JsonValue]:
    data: dict[str, Any] = {"callId": call_id(line), "resultHash": line.output_hash}
    data["latencyMs"], data["utility"] = line.latency_ms, or_none(line.step_utility)
    if isinstance(line, current.ToolResult):
        data["ok"], exit_code = line.ok, line.extra.get("exit_code")
        if line.side_effects:
            data["sideEffects"] = line.side_effects
        if line.error is not ABSENT:
            data["error"] = {"type": line.error.name, "message": line.error.message}
    else:
        data["ok"], exit_code = not line.exit_code, line.exit_code
    return data | ({"exitCode": exit_code} if exit_code and isinstance(exit_code, int | str) else {})


def _translate_verification(line: Verification) -> dict[str, JsonValue]:
    if isinstance(line, current.Verification):
        commands, codes, took_ms = [line.command], [line.exit_code], or_none(line.duration_ms)
    else:
        commands, codes, took_ms = line.commands, line.exit_codes, None
    delta = or_none(line.verification_delta)
    facts: dict[str, JsonValue] = {"commands": [*commands], "exitCodes": [*codes], "delta": delta}
    data: dict[str, JsonValue] = {"name": "; ".join(commands), "value": facts, "latencyMs": took_ms}
    if any(codes):
        data["error"] = {"type": "exit_code", "message": ", ".join(map(str, codes))}
    return data


def _translate_unknown(value: dict[str, JsonValue], tag_field: str) -> tuple[str, dict[str, JsonValue]]:
    name = str(value.get(tag_field))
    if name == LEAVES:
        return "run_start", {}  # the proof in a published log
    # The type of a capture event would promise fields that the line does not have.
    return f"other {name}" if name in (*EVENT_TYPES, "verification") else name, _other_facts(value)


def _other_facts(value: dict[str, JsonValue]) -> dict[str, JsonValue]:
    facts = {key: value[key] for key in sorted(value) if key not in ("type", "event", "ts", "t")}
    return {"name": str(value.get("step_id", "")), "value": facts}


def call_id(line: ToolCall | ToolResult) -> str:
    """The id that a call shares with its result."""
    return line.step_id if isinstance(line, current.ToolCall | current.ToolResult) else line.id


def _milliseconds(time: JsonValue) -> float | None:
    if not isinstance(time, str):
        return None
    try:
        # Leap seconds are not counted; the fraction may have nine digits.
        return datetime.fromisoformat(time.replace(":60", ":59")).timestamp() * 1000
    except ValueError:
        return None


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None

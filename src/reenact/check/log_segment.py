"""What one segment of a REPLAY.jsonl says; segments are scanned apart and joined in order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import timedelta
from hashlib import sha256
from operator import attrgetter
from typing import Any, Final, NamedTuple

import msgspec

from reenact.canonical import are_digests, encode_clean, is_digest
from reenact.check.findings import Finding, Severity
from reenact.check.links import SegmentLinks
from reenact.errors import FormatError, UnknownVersion
from reenact.formats.blocks import TextBlock, lines_of, split_block
from reenact.formats.dialects import DIALECTS, Event, current, legacy
from reenact.formats.dialects.common import Dialect, DialectName
from reenact.formats.hashes import BLINDED
from reenact.formats.json_text import read_json
from reenact.formats.record import ABSENT
from reenact.formats.rfc3339 import moment

BACKWARDS_TOLERANCE: Final = timedelta(seconds=1)
"""Clocks are set back by small steps; more than this in one step is worth a word."""

# Sets, because asking a union type whether it has an instance takes many times as long.
_CALLS: Final[frozenset[Any]] = frozenset((current.ToolCall, legacy.ToolCall))
_RESULTS: Final[frozenset[Any]] = frozenset((current.ToolResult, legacy.ToolResult))
_HEADERS: Final[frozenset[Any]] = frozenset((current.ReplayHeader, legacy.ReplayHeader))
_STARTS: Final[frozenset[Any]] = frozenset((current.SessionStart, legacy.SessionStart))
_ENDS: Final[frozenset[Any]] = frozenset((current.SessionEnd, legacy.SessionEnd))


class End(NamedTuple):
    """The SessionEnd of a log."""

    line: int
    total_tool_calls: Any
    total_latency_ms: Any


class LogSegment(msgspec.Struct):
    """Lines are counted from the beginning of the log, in all members."""

    unreadable: list[Finding] = msgspec.field(default_factory=list)
    findings: list[Finding] = msgspec.field(default_factory=list)
    cut_at: int | None = None
    """The first unreadable line, behind which a strict check says nothing of what the lines mean."""
    events: int = 0
    calls: int = 0
    results: int = 0
    latency_ms: int | float = 0
    links: SegmentLinks = msgspec.field(default_factory=SegmentLinks)
    sessions: dict[str, int] = msgspec.field(default_factory=dict)
    """Where each session is first named."""
    headers: list[int] = msgspec.field(default_factory=list)
    starts: list[int] = msgspec.field(default_factory=list)
    end: End | None = None
    first_time: tuple[int, str] | None = None
    last_time: str | None = None
    first_event: int | None = None
    last_event: int | None = None
    behind_end: int | None = None
    """The first event behind *end*."""


class EventBlock(NamedTuple):
    """Some events and the lines they stand on."""

    numbers: Sequence[int]
    events: Sequence[Event]


class LogScan:
    """Scans the segments of a log in *dialect*; one that *is_published* has no parameters."""

    def __init__(self, file: str, dialect: DialectName, *, lenient: bool, is_published: bool) -> None:
        self.file = file
        self.dialect = dialect
        self.lenient = lenient
        self.is_published = is_published

    def __call__(self, block: TextBlock) -> LogSegment:
        scan = _Scan(self)
        for events in scan.read(block):
            scan.take(events)
        return scan.segment

    def event_blocks(self, block: TextBlock) -> Iterator[EventBlock]:
        """The events of a segment, as far as they are checked."""
        return _Scan(self).read(block)


class _Scan:
    def __init__(self, log: LogScan) -> None:
        self._file = log.file
        self._lenient = log.lenient
        self._is_published = log.is_published
        self._dialect: Dialect[Any] = DIALECTS[log.dialect]
        self.segment = LogSegment()

    # Reading

    def read(self, block: TextBlock) -> Iterator[EventBlock]:
        """The events of *block*: many at once where nothing is odd, else one by one."""
        for part in _parts(block):
            events = self._dialect.from_block(part.text)
            if events is None:
                yield from self._read_each(part)
            elif self.segment.cut_at is None:
                yield EventBlock(range(part.number, part.number + len(events)), events)

    def _read_each(self, part: TextBlock) -> Iterator[EventBlock]:
        for line in lines_of(part, file=self._file, report=self._unreadable):
            try:
                event = self._event(line.text)
            except UnknownVersion as error:
                raise error.at(file=self._file, line=line.number) from None
            except FormatError as error:
                self._unreadable(error.at(file=self._file, line=line.number))
            else:
                if self.segment.cut_at is None:
                    yield EventBlock((line.number,), (event,))

    def _event(self, text: bytes) -> Event:
        """One event, with whatever unknown fields it has."""
        try:
            return self._dialect.from_json(read_json(text))
        except FormatError:
            return self._dialect.from_bytes(text)  # which says exactly what is wrong

    def _unreadable(self, error: FormatError) -> None:
        self.segment.unreadable.append(Finding.of("line_unreadable", error, file=self._file))
        if not self._lenient and self.segment.cut_at is None:
            self.segment.cut_at = error.line

    # Checking

    def find(self, code: str, message: str, line: int, severity: Severity = "error") -> None:
        self.segment.findings.append(Finding(code, message, self._file, severity, line))

    def take(self, block: EventBlock) -> None:
        """Check the events of one block."""
        segment, links = self.segment, self.segment.links
        if segment.first_event is None:
            segment.first_event = block.numbers[0]
        segment.last_event = block.numbers[-1]
        segment.events += len(block.events)
        self._check_times(block)
        self._note_sessions(block)
        self._check_outputs(block)
        key_of = _KEYS[self._dialect.name]
        event: Any
        for number, event in zip(block.numbers, block.events, strict=True):
            kind: type[Any] = type(event)
            if kind in _CALLS:
                segment.calls += 1
                links.call(key_of(event), number)
                self._check_params(event, number)
            elif kind in _RESULTS:
                segment.results += 1
                segment.latency_ms += event.latency_ms
                links.outcome(key_of(event), number)
            else:
                self._check_other(event, number)
            if segment.end is not None and segment.behind_end is None and number != segment.end.line:
                segment.behind_end = number

    def _check_params(self, event: Any, line: int) -> None:
        if event.params is ABSENT:
            self._check_form("params_hash", event, line)
            if not self._is_published:
                message = f"the call of {event.tool!r:.80} has no params, and the log is not a published one"
                self.find("no_params", message, line)
            return
        found = "sha256:" + sha256(encode_clean(event.params)).hexdigest()
        if found != event.params_hash:
            self.find("params_hash", f"params have {found}, the line says {event.params_hash}", line)

    def _check_outputs(self, block: EventBlock) -> None:
        events: Sequence[Any] = block.events
        if are_digests([event.output_hash for event in events if type(event) in _RESULTS]):
            return
        for number, event in zip(block.numbers, events, strict=True):
            if type(event) in _RESULTS:
                self._check_form("output_hash", event, number)

    def _check_form(self, field: str, event: Any, line: int) -> None:
        stated = getattr(event, field)
        if not is_digest(stated.removeprefix(BLINDED)):
            self.find(field, f"{stated!r:.80} is not sha256: and 64 lowercase hex digits", line)

    def _check_other(self, event: Any, line: int) -> None:
        kind = type(event)
        if kind in _HEADERS:
            self.segment.headers.append(line)
        elif kind in _STARTS:
            self.segment.starts.append(line)
        elif kind in _ENDS and self.segment.end is None:
            self.segment.end = End(line, event.total_tool_calls, event.total_latency_ms)
        elif kind is legacy.PlanStart:
            self._check_form("plan_hash", event, line)
        elif kind is legacy.Verification and len(event.commands) != len(event.exit_codes):
            counts = f"{len(event.commands)} commands, {len(event.exit_codes)} exit codes"
            self.find("exit_codes", f"each command has one exit code; found {counts}", line)

    def _note_sessions(self, block: EventBlock) -> None:
        known = self.segment.sessions
        if set(_values(block, "session_id")) <= {ABSENT, *known}:
            return
        for number, session in zip(block.numbers, _values(block, "session_id"), strict=True):
            if session is not ABSENT:
                known.setdefault(session, number)

    def _check_times(self, block: EventBlock) -> None:
        numbers, times = block.numbers, _values(block, self._dialect.time_field)
        if ABSENT in times:
            timed = [place for place, time in enumerate(times) if time is not ABSENT]
            numbers, times = [numbers[place] for place in timed], [times[place] for place in timed]
        if not times:
            return
        segment = self.segment
        segment.first_time = segment.first_time or (numbers[0], times[0])
        before = segment.last_time or times[0]
        if not _in_order([before, *times]):
            for number, time in zip(numbers, times, strict=True):
                segment.findings += went_back(before, (number, time), self._file)
                before = time
        segment.last_time = times[-1]


def _values(block: EventBlock, field: str) -> list[Any]:
    """What each event has in *field*; ``ABSENT`` where it has no such field."""
    try:
        return [*map(attrgetter(field), block.events)]
    except AttributeError:
        return [getattr(event, field, ABSENT) for event in block.events]


def _parts(block: TextBlock) -> Iterator[TextBlock]:
    """What is read at once; the first line of a log, its header, is read by itself."""
    head_bytes = block.text.find(b"\n") + 1 if block.number == 1 else 0
    if head_bytes:
        yield TextBlock(1, block.offset, block.text[:head_bytes])
        block = TextBlock(2, block.offset + head_bytes, block.text[head_bytes:])
    yield from split_block(block)


def went_back(before: str, placed: tuple[int, str], file: str) -> list[Finding]:
    """The finding on a time that is earlier than the one *before*, if it is."""
    line, time = placed
    back = moment(before) - moment(time)
    if back <= BACKWARDS_TOLERANCE:
        return []
    return [Finding("time", f"goes back by {back.total_seconds():.1f} s", file, "warning", line)]


def _in_order(times: list[str]) -> bool:
    """Whether times are in order that are all written alike, in UTC: that needs no calendar."""
    are_alike = len(set(map(len, times))) == 1 and "".join(times).count("Z") == len(times)
    return are_alike and times == sorted(times)


_KEYS: Final[dict[str, Any]] = {"current": attrgetter("step_id"), "legacy": attrgetter("id")}
"""What ties a call and its result."""

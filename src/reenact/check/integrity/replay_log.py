"""Checks a REPLAY.jsonl: its hashes, the links between calls and results, totals, times.

The log is scanned in segments, by one process or several, and the segments are joined in order.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import timedelta
from hashlib import sha256
from operator import attrgetter
from pathlib import Path
from typing import Any, BinaryIO, Final, NamedTuple

import msgspec

from reenact.canonical import JsonValue, are_digests, encode_clean, is_digest, read_json
from reenact.check.findings import Finding, FindingSeverity, VerifyReport
from reenact.check.integrity.segments import (
    SEGMENT_BYTES,
    LinkEvent,
    LinkFault,
    Links,
    SegmentLinks,
    Suspects,
    scan_segments,
)
from reenact.errors import FormatError, UnknownVersion
from reenact.formats.dialects import DIALECTS, Event, current, legacy
from reenact.formats.dialects.common import Dialect, DialectName
from reenact.formats.hashes import BLINDED
from reenact.formats.lines import TextBlock, lines_of, read_text_blocks, split_block
from reenact.formats.record import ABSENT
from reenact.formats.replay_log import ToolCall, ToolResult, find_dialect, is_published
from reenact.formats.rfc3339 import moment
from reenact.formats.session import call_key
from reenact.progress import Progress

BACKWARDS_TOLERANCE: Final = timedelta(seconds=1)
"""Clocks may be corrected backwards by this much; more is a finding."""

# Sets of types, because isinstance() with a union takes many times as long.
_CALLS: Final[frozenset[object]] = frozenset((current.ToolCall, legacy.ToolCall))
_RESULTS: Final[frozenset[object]] = frozenset((current.ToolResult, legacy.ToolResult))
_HEADERS: Final[frozenset[object]] = frozenset((current.ReplayHeader, legacy.ReplayHeader))
_STARTS: Final[frozenset[object]] = frozenset((current.SessionStart, legacy.SessionStart))
_ENDS: Final[frozenset[object]] = frozenset((current.SessionEnd, legacy.SessionEnd))


class End(NamedTuple):
    """The SessionEnd of a log."""

    line: int
    total_tool_calls: Any
    total_latency_ms: Any


class LogSegment(msgspec.Struct):
    """The results of scanning one segment; all line numbers count from the beginning of the log."""

    unreadable: list[Finding] = msgspec.field(default_factory=list)
    findings: list[Finding] = msgspec.field(default_factory=list)
    cut_at: int | None = None
    """The first unreadable line; a strict check ignores the content of the lines after it."""
    events: int = 0
    calls: int = 0
    results: int = 0
    latency_ms: int | float = 0
    links: SegmentLinks = msgspec.field(default_factory=SegmentLinks)
    sessions: dict[str, int] = msgspec.field(default_factory=dict)
    """The first line of each session."""
    headers: list[int] = msgspec.field(default_factory=list)
    starts: list[int] = msgspec.field(default_factory=list)
    end: End | None = None
    first_time: tuple[int, str] | None = None
    last_time: str | None = None
    first_event: int | None = None
    last_event: int | None = None
    after_end: int | None = None
    """The first event after *end*."""


class LogEventBlock(NamedTuple):
    """Some events and their line numbers."""

    numbers: Sequence[int]
    events: Sequence[Event]


class LogScan:
    """Scans the segments of a log in *dialect*; the calls of one that *is_published* need no parameters."""

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

    def event_blocks(self, block: TextBlock) -> Iterator[LogEventBlock]:
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

    def read(self, block: TextBlock) -> Iterator[LogEventBlock]:
        """The events of *block*: many at once if all lines are canonical, else one by one."""
        for part in _parts(block):
            events = self._dialect.from_block(part.text)
            if events is None:
                yield from self._read_each(part)
            elif self.segment.cut_at is None:
                yield LogEventBlock(range(part.number, part.number + len(events)), events)

    def _read_each(self, part: TextBlock) -> Iterator[LogEventBlock]:
        for line in lines_of(part, file=self._file, report=self._add_unreadable):
            try:
                event = self._event(line.text)
            except UnknownVersion as error:
                raise error.at(file=self._file, line=line.number) from None
            except FormatError as error:
                self._add_unreadable(error.at(file=self._file, line=line.number))
            else:
                if self.segment.cut_at is None:
                    yield LogEventBlock((line.number,), (event,))

    def _event(self, text: bytes) -> Event:
        """One event, with whatever unknown fields it has."""
        try:
            return self._dialect.from_json(read_json(text))
        except FormatError:
            return self._dialect.from_bytes(text)  # raises an error with the exact place

    def _add_unreadable(self, error: FormatError) -> None:
        self.segment.unreadable.append(Finding.of("line_unreadable", error, file=self._file))
        if not self._lenient and self.segment.cut_at is None:
            self.segment.cut_at = error.line

    # Checking

    def add(self, code: str, message: str, line: int, severity: FindingSeverity = "error") -> None:
        self.segment.findings.append(Finding(code, message, self._file, severity, line))

    def take(self, block: LogEventBlock) -> None:
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
            kind: type[object] = type(event)
            if kind in _CALLS:
                segment.calls += 1
                links.add(True, key_of(event), number)
                self._check_params(event, number)
            elif kind in _RESULTS:
                segment.results += 1
                segment.latency_ms += event.latency_ms
                links.add(False, key_of(event), number)
            else:
                self._check_other(event, number)
            if segment.end is not None and segment.after_end is None and number != segment.end.line:
                segment.after_end = number

    def _check_params(self, event: Any, line: int) -> None:
        if event.params is ABSENT:
            self._check_form("params_hash", event, line)
            if not self._is_published:
                message = f"the call of {event.tool!r:.80} has no params, and the log is not a published one"
                self.add("no_params", message, line)
            return
        found = "sha256:" + sha256(encode_clean(event.params)).hexdigest()
        if found != event.params_hash:
            self.add("params_hash", f"params have {found}, the line says {event.params_hash}", line)

    def _check_outputs(self, block: LogEventBlock) -> None:
        events: Sequence[Any] = block.events
        if are_digests([event.output_hash for event in events if type(event) in _RESULTS]):
            return
        for number, event in zip(block.numbers, events, strict=True):
            if type(event) in _RESULTS:
                self._check_form("output_hash", event, number)

    def _check_form(self, field: str, event: object, line: int) -> None:
        stated = getattr(event, field)
        if not is_digest(stated.removeprefix(BLINDED)):
            self.add(field, f"{stated!r:.80} is not sha256: and 64 lowercase hex digits", line)

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
            self.add("exit_codes", f"each command has one exit code; found {counts}", line)

    def _note_sessions(self, block: LogEventBlock) -> None:
        known = self.segment.sessions
        if set(_values(block, "session_id")) <= {ABSENT, *known}:
            return
        for number, session in zip(block.numbers, _values(block, "session_id"), strict=True):
            if session is not ABSENT:
                known.setdefault(session, number)

    def _check_times(self, block: LogEventBlock) -> None:
        numbers, times = block.numbers, _values(block, self._dialect.time_field)
        if ABSENT in times:
            timed = [place for place, time in enumerate(times) if time is not ABSENT]
            numbers, times = [numbers[place] for place in timed], [times[place] for place in timed]
        if not times:
            return
        segment = self.segment
        segment.first_time = segment.first_time or (numbers[0], times[0])
        before = segment.last_time or times[0]
        if not _are_in_order([before, *times]):
            for number, time in zip(numbers, times, strict=True):
                segment.findings += check_time_order(before, (number, time), self._file)
                before = time
        segment.last_time = times[-1]


def _values(block: LogEventBlock, field: str) -> list[Any]:
    """The value of *field* in each event; ``ABSENT`` if the event has no such field."""
    try:
        return [*map(attrgetter(field), block.events)]
    except AttributeError:
        return [getattr(event, field, ABSENT) for event in block.events]


def _parts(block: TextBlock) -> Iterator[TextBlock]:
    """The parts of *block* that are read at once; the header of a log is a part of its own."""
    head_bytes = block.text.find(b"\n") + 1 if block.number == 1 else 0
    if head_bytes:
        yield TextBlock(1, block.offset, block.text[:head_bytes], 1)
        block = TextBlock(2, block.offset + head_bytes, block.text[head_bytes:], block.line_count - 1)
    yield from split_block(block)


def check_time_order(before: str, placed: tuple[int, str], file: str) -> list[Finding]:
    """A finding if the time at a line is earlier than the time before it by more than the tolerance."""
    line, time = placed
    back = moment(before) - moment(time)
    if back <= BACKWARDS_TOLERANCE:
        return []
    return [Finding("time", f"goes back by {back.total_seconds():.1f} s", file, "warning", line)]


def _are_in_order(times: list[str]) -> bool:
    """Whether times are in order, if all are in UTC and in one notation, so that texts can be compared."""
    are_alike = len(set(map(len, times))) == 1 and "".join(times).count("Z") == len(times)
    return are_alike and times == sorted(times)


_KEYS: Final[dict[str, Any]] = {"current": attrgetter("step_id"), "legacy": attrgetter("id")}
"""The field that a call and its result share."""


_LINK_FINDINGS: Final[dict[str, tuple[str, FindingSeverity, str]]] = {
    "second_call": ("second_call", "error", "call {key!r} was made before"),
    "second_outcome": ("second_result", "error", "call {key!r} has a result already"),
    "no_call": ("result_without_call", "error", "no earlier call is {key!r}"),
    "no_outcome": ("no_result", "error", "call {key!r} has no result"),
}


def check_replay_log(
    open_stream: Callable[[], BinaryIO],
    *,
    file: str,
    lenient: bool = False,
    published: bool = False,
    processes: int = 1,
    progress: Progress | None = None,
    segment_bytes: int = SEGMENT_BYTES,
) -> VerifyReport:
    """Check a log without any other file, in constant memory.

    Every unreadable line is reported. The content is checked up to the first of them, or with *lenient* in
    all other lines. With *published*, calls need no parameters, even if the log does not say that it is
    published. More than one of *processes* pays off for logs of about 100 MB.
    :class:`FormatError` if nothing in the file is an event.
    """
    scan = _scan_of(open_stream, file, lenient=lenient, published=published)
    check = _LogCheck(Path(file).name, is_published=scan.is_published)
    with open_stream() as stream:
        for size_bytes, segment in scan_segments(
            stream, scan, processes=processes, segment_bytes=segment_bytes
        ):
            check.join(segment)
            if progress is not None:
                progress(size_bytes)
    check.close(lambda suspects: _events_of(suspects, open_stream, scan))
    findings = sorted(check.findings, key=lambda finding: (finding.line or 0, finding.code))
    return VerifyReport("replay log", file, findings, check.facts())


def _scan_of(open_stream: Callable[[], BinaryIO], file: str, *, lenient: bool, published: bool) -> LogScan:
    with open_stream() as stream:
        dialect = find_dialect(stream, file=file)
    if dialect is None:
        raise FormatError("is not a REPLAY.jsonl: it has no line that is an event", file=file)
    published = published or is_published(open_stream, file=file)
    return LogScan(Path(file).name, dialect.name, lenient=lenient, is_published=published)


def _events_of(suspects: Suspects, open_stream: Callable[[], BinaryIO], scan: LogScan) -> Iterator[LinkEvent]:
    """Every event with a key in *suspects*."""
    with open_stream() as stream:
        for block in read_text_blocks(stream, block_bytes=SEGMENT_BYTES):
            for numbers, events in scan.event_blocks(block):
                for number, event in zip(numbers, events, strict=True):
                    if isinstance(event, ToolCall | ToolResult) and call_key(event) in suspects:
                        yield number, isinstance(event, ToolCall), call_key(event)


class _LogCheck:
    """The segments of a log, joined in their order."""

    def __init__(self, file: str, *, is_published: bool) -> None:
        self.file = file
        self._is_published = is_published
        self.findings: list[Finding] = []
        self._links = Links()
        self._cut_at: int | None = None
        self._events = 0
        self._calls = 0
        self._results = 0
        self._latency_ms: int | float = 0
        self._sessions: dict[str, int] = {}
        self._headers: list[int] = []
        self._starts: list[int] = []
        self._end: End | None = None
        self._after_end: int | None = None
        self._first_event: int | None = None
        self._last_event = 1
        self._last_time: str | None = None

    def facts(self) -> dict[str, JsonValue]:
        return {
            "events": self._events,
            "toolCalls": self._calls,
            "results": self._results,
            "totalLatencyMs": self._latency_ms,
        }

    def add(self, code: str, message: str, line: int, severity: FindingSeverity = "error") -> None:
        self.findings.append(Finding(code, message, self.file, severity, line))

    def join(self, segment: LogSegment) -> None:
        """Add the next segment; after an unreadable line, a strict check adds only unreadable lines."""
        self.findings += segment.unreadable
        if self._cut_at is not None:
            return
        self._cut_at = segment.cut_at
        self.findings += segment.findings
        self._links.join(segment.links)
        self._join_order(segment)
        self._events += segment.events
        self._calls += segment.calls
        self._results += segment.results
        self._latency_ms += segment.latency_ms
        self._sessions = segment.sessions | self._sessions
        self._headers += segment.headers
        self._starts += segment.starts

    def _join_order(self, segment: LogSegment) -> None:
        if self._last_time is not None and segment.first_time is not None:
            self.findings += check_time_order(self._last_time, segment.first_time, self.file)
        self._last_time = segment.last_time or self._last_time
        if self._after_end is None:
            self._after_end = segment.after_end if self._end is None else segment.first_event
        self._end = self._end or segment.end
        if self._first_event is None:
            self._first_event = segment.first_event
        self._last_event = segment.last_event or self._last_event

    def close(self, read_again: Callable[[Suspects], Iterable[LinkEvent]]) -> None:
        """Check what only the whole log shows; *read_again* returns the events of suspects."""
        self._check_start_and_end()
        for fault in self._links.find_faults(read_again):
            self._add_fault(fault)
        if self._cut_at is not None:
            reason = "links, times and totals after this line were not checked; --lenient checks them"
            self.add("not_checked", reason, self._cut_at, "warning")
            return
        if self._end is None:
            self.add("no_end", "the log has no SessionEnd", self._last_event, "warning")
        else:
            self._check_totals(self._end)

    def _check_start_and_end(self) -> None:
        first = self._first_event
        if first is not None and first not in self._headers:
            self.add("no_header", "the first event is not a ReplayHeader", first)
        for line in self._headers:
            if line != first:
                self.add("second_header", "a second ReplayHeader; a log has one, on its first line", line)
        # A line that could not be read may have been the start.
        is_whole = not any(finding.code == "line_unreadable" for finding in self.findings)
        if not self._starts and is_whole and not self._is_published:
            self.add("no_start", "the log has no SessionStart", first or 1)
        for line in self._starts[1:]:
            self.add("second_start", "a second SessionStart; a log is of one session", line)
        for session, line in [*self._sessions.items()]:
            if line != min(self._sessions.values()):
                own = min(self._sessions, key=lambda name: self._sessions[name])
                self.add("foreign_event", f"belongs to session {session!r}, not {own!r}", line)
        if self._after_end is not None:
            self.add(
                "after_end", "comes after SessionEnd, which must be the last event of a log", self._after_end
            )

    def _add_fault(self, fault: LinkFault) -> None:
        if fault.fault == "no_outcome" and self._cut_at is not None:
            return
        code, severity, message = _LINK_FINDINGS[fault.fault]
        if fault.fault == "no_outcome" and (self._end is None or self._is_published):
            # The session ended before the result, or the line of the result is withheld.
            severity = "warning"
        self.add(code, message.format(key=fault.key), fault.line, severity)

    def _check_totals(self, end: End) -> None:
        if end.total_tool_calls is not ABSENT and end.total_tool_calls != self._calls:
            self.add("total_tool_calls", f"{end.total_tool_calls} stated, {self._calls} found", end.line)
        stated, found = end.total_latency_ms, self._latency_ms
        # Adding fractions in another order changes the last digit.
        if stated is not ABSENT and not math.isclose(stated, found, rel_tol=1e-9):
            self.add("total_latency_ms", f"{stated} stated, {found} found", end.line)

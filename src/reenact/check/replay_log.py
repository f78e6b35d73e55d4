"""Whether a REPLAY.jsonl holds together: hashes, links between calls and results, totals, times."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, Final

from reenact.check.findings import Finding, Report, Severity
from reenact.check.links import LinkFault, Links, Suspects, follow
from reenact.check.log_segment import End, LogScan, LogSegment, went_back
from reenact.check.segments import SEGMENT_BYTES, Progress, scan_segments
from reenact.errors import FormatError
from reenact.formats.blocks import read_text_blocks
from reenact.formats.record import ABSENT
from reenact.formats.replay_log import ToolCall, ToolResult, find_dialect, is_published
from reenact.formats.session import call_key

_LINK_FINDINGS: Final[dict[str, tuple[str, Severity, str]]] = {
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
) -> Report:
    """Everything that can be told from the log alone, in constant memory.

    Every line that cannot be read is reported. What the lines mean is checked up to the first of them;
    with *lenient*, as if they were not there. With *published*, the log is taken for a published one even if
    it does not say so itself: its calls need no parameters. *processes* above 1 are worth it for logs of
    some 100 MB.
    :class:`FormatError` where nothing in the file is an event.
    """
    scan = _scan_of(open_stream, file, lenient=lenient, published=published)
    check = _LogCheck(Path(file).name, is_published=scan.is_published)
    with open_stream() as stream:
        for block, segment in scan_segments(stream, scan, processes=processes, segment_bytes=segment_bytes):
            check.join(segment)
            if progress is not None:
                progress(len(block.text))
    check.close(lambda suspects: _events_of(suspects, open_stream, scan))
    findings = sorted(check.findings, key=lambda finding: (finding.line or 0, finding.code))
    return Report("replay log", file, findings, check.facts())


def _scan_of(open_stream: Callable[[], BinaryIO], file: str, *, lenient: bool, published: bool) -> LogScan:
    with open_stream() as stream:
        dialect = find_dialect(stream, file=file)
    if dialect is None:
        raise FormatError("is no REPLAY.jsonl: no line of it is an event", file=file)
    published = published or is_published(open_stream, file=file)
    return LogScan(Path(file).name, dialect.name, lenient=lenient, is_published=published)


def _events_of(
    suspects: Suspects, open_stream: Callable[[], BinaryIO], scan: LogScan
) -> Iterator[tuple[int, bool, str]]:
    """Every line of a suspect: its number, whether it is a call, and the key."""
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
        self._behind_end: int | None = None
        self._first_event: int | None = None
        self._last_event = 1
        self._last_time: str | None = None

    def facts(self) -> dict[str, Any]:
        return {
            "events": self._events,
            "toolCalls": self._calls,
            "results": self._results,
            "totalLatencyMs": self._latency_ms,
        }

    def find(self, code: str, message: str, line: int, severity: Severity = "error") -> None:
        self.findings.append(Finding(code, message, self.file, severity, line))

    def join(self, segment: LogSegment) -> None:
        """Take the next segment; behind a cut only its unreadable lines count."""
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
            self.findings += went_back(self._last_time, segment.first_time, self.file)
        self._last_time = segment.last_time or self._last_time
        if self._behind_end is None:
            self._behind_end = segment.behind_end if self._end is None else segment.first_event
        self._end = self._end or segment.end
        if self._first_event is None:
            self._first_event = segment.first_event
        self._last_event = segment.last_event or self._last_event

    def close(self, events_of: Callable[[Suspects], Iterable[tuple[int, bool, str]]]) -> None:
        """Judge what only the whole log shows; *events_of* is asked for the lines of suspects, if any."""
        self._check_frame()
        suspects = self._links.suspects()
        for fault in follow(events_of(suspects)) if suspects else ():
            self._link(fault)
        if self._cut_at is not None:
            reason = "links, times and totals behind this line were not checked; --lenient checks the rest"
            self.find("not_checked", reason, self._cut_at, "warning")
            return
        for fault in self._links.unanswered(suspects):
            self._link(fault)
        if self._end is None:
            self.find("no_end", "the log has no SessionEnd", self._last_event, "warning")
        else:
            self._check_totals(self._end)

    def _check_frame(self) -> None:
        first = self._first_event
        if first is not None and first not in self._headers:
            self.find("no_header", "the first event is not a ReplayHeader", first)
        for line in self._headers:
            if line != first:
                self.find("second_header", "a second ReplayHeader; a log has one, on its first line", line)
        # A line that could not be read may have been the start.
        is_whole = not any(finding.code == "line_unreadable" for finding in self.findings)
        if not self._starts and is_whole and not self._is_published:
            self.find("no_start", "the log has no SessionStart", first or 1)
        for line in self._starts[1:]:
            self.find("second_start", "a second SessionStart; a log is of one session", line)
        for session, line in [*self._sessions.items()]:
            if line != min(self._sessions.values()):
                own = min(self._sessions, key=lambda name: self._sessions[name])
                self.find("foreign_event", f"belongs to session {session!r}, not {own!r}", line)
        if self._behind_end is not None:
            self.find("after_end", "stands behind SessionEnd, the last event of a log", self._behind_end)

    def _link(self, fault: LinkFault) -> None:
        if fault.fault == "no_outcome" and self._cut_at is not None:
            return
        code, severity, message = _LINK_FINDINGS[fault.fault]
        if fault.fault == "no_outcome" and (self._end is None or self._is_published):
            # The session broke off before the result came, or the line with it is withheld.
            severity = "warning"
        self.find(code, message.format(key=fault.key), fault.line, severity)

    def _check_totals(self, end: End) -> None:
        if end.total_tool_calls is not ABSENT and end.total_tool_calls != self._calls:
            self.find("total_tool_calls", f"{end.total_tool_calls} stated, {self._calls} found", end.line)
        stated, found = end.total_latency_ms, self._latency_ms
        # Whoever added fractions in another order came to another last digit.
        if stated is not ABSENT and not math.isclose(stated, found, rel_tol=1e-9):
            self.find("total_latency_ms", f"{stated} stated, {found} found", end.line)

"""Whether a REPLAY.jsonl holds together: hashes, links between calls and results, totals, times."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, BinaryIO, Final

from reenact.check.findings import Finding, Report, Severity
from reenact.errors import FormatError
from reenact.formats.dialects import Event, current, legacy
from reenact.formats.hashes import params_hash
from reenact.formats.record import ABSENT
from reenact.formats.replay_log import ReplayHeader, ToolCall, ToolResult, read_replay_log

BACKWARDS_TOLERANCE: Final = timedelta(seconds=1)

SessionEnd = current.SessionEnd | legacy.SessionEnd


class SeenResult:
    """A tool call with its result, as a receipt lists it."""

    def __init__(self, line: int, call: Any, result: Any) -> None:
        self.line = line
        self.call = call
        self.result = result


def check_replay_log(
    open_stream: Callable[[], BinaryIO],
    *,
    file: str,
    on_result: Callable[[SeenResult], None] | None = None,
) -> Report:
    """Everything that can be told from the log alone; *on_result* sees each result with its call."""
    check = _LogCheck(Path(file).name, on_result)
    with open_stream() as stream:
        for line, event in read_replay_log(stream, file=check.file, on_error=check.unreadable):
            check.event(event, line.number)
    check.close()
    return Report("replay log", file, check.findings, check.facts())


class _LogCheck:
    def __init__(self, file: str, on_result: Callable[[SeenResult], None] | None) -> None:
        self.file = file
        self.findings: list[Finding] = []
        self._on_result = on_result
        self._calls: dict[str, tuple[int, Any]] = {}
        self._answered: set[str] = set()
        self._results = 0
        self._latency_ms: float = 0
        self._last_time: datetime | None = None
        self._end: tuple[int, Any] | None = None
        self._events = 0

    def facts(self) -> dict[str, Any]:
        return {
            "events": self._events,
            "toolCalls": len(self._calls) + len(self._answered),
            "results": self._results,
            "totalLatencyMs": self._latency_ms,
        }

    def unreadable(self, error: FormatError) -> None:
        self.findings.append(Finding.of("line_unreadable", error, file=self.file))

    def find(self, code: str, message: str, line: int, severity: Severity = "error") -> None:
        self.findings.append(Finding(code, message, self.file, severity, line))

    def event(self, event: Event, line: int) -> None:
        self._events += 1
        self._check_time(event, line)
        if self._end is not None:
            self.find("after_end", "stands behind SessionEnd", line)
        if isinstance(event, ToolCall):
            self._call(event, line)
        elif isinstance(event, ToolResult):
            self._result(event, line)
        elif isinstance(event, SessionEnd):
            self._end = (line, event)

    def _call(self, event: Any, line: int) -> None:
        key = _key(event)
        if key in self._calls or key in self._answered:
            self.find("second_call", f"call {key!r} was made before", line)
        self._calls[key] = (line, event)
        if event.params is not ABSENT:
            found = params_hash(event.params)
            if found != event.params_hash:
                self.find("params_hash", f"params have {found}, the line says {event.params_hash}", line)

    def _result(self, event: Any, line: int) -> None:
        key = _key(event)
        self._results += 1
        self._latency_ms += event.latency_ms
        if key in self._calls:
            _, call = self._calls.pop(key)
            self._answered.add(key)
            if self._on_result is not None:
                self._on_result(SeenResult(line, call, event))
        elif key in self._answered:
            self.find("second_result", f"call {key!r} has a result already", line)
        else:
            self.find("result_without_call", f"no earlier call is {key!r}", line)

    def _check_time(self, event: Event, line: int) -> None:
        text = getattr(event, "ts", getattr(event, "t", ABSENT))
        if isinstance(event, ReplayHeader) or not isinstance(text, str):
            return
        moment = _moment(text)
        if moment is None:
            return
        if self._last_time is not None and moment < self._last_time - BACKWARDS_TOLERANCE:
            back = self._last_time - moment
            self.find("time", f"goes back by {back.total_seconds():.1f} s", line, "warning")
        self._last_time = moment

    def close(self) -> None:
        if self._end is None:
            self.find("no_end", "the log has no SessionEnd", max(1, self._events), "warning")
        else:
            self._check_totals(*self._end)
        for key, (line, _) in self._calls.items():
            self.find("no_result", f"call {key!r} has no result", line, "warning")

    def _check_totals(self, line: int, end: Any) -> None:
        made = len(self._calls) + len(self._answered)
        if end.total_tool_calls is not ABSENT and end.total_tool_calls != made:
            self.find("total_tool_calls", f"{end.total_tool_calls} stated, {made} found", line)
        if end.total_latency_ms is not ABSENT and end.total_latency_ms != self._latency_ms:
            reason = f"{end.total_latency_ms} stated, {self._latency_ms} found"
            self.find("total_latency_ms", reason, line)


def _key(event: Any) -> str:
    """What ties a call and its result: ``id`` in the older dialect, ``step_id`` in the current one."""
    key: str = event.id if isinstance(event, legacy.ToolCall | legacy.ToolResult) else event.step_id
    return key


def _moment(text: str) -> datetime | None:
    """``None`` for a leap second, which Python's calendar does not have."""
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return None

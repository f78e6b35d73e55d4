"""From a REPLAY.jsonl, in either dialect, to the normalized trace that assertions judge.

An event is named after its line: ``evt-17`` stands on line 17. A published log has no parameters; then its
calls have no ``args``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from reenact._version import __version__
from reenact.formats.bundle import SCHEMA_VERSION, Scenario
from reenact.formats.dialects import Event, current, legacy
from reenact.formats.lines import Line
from reenact.formats.record import ABSENT
from reenact.formats.replay_log import ReplayHeader, ToolCall, ToolResult
from reenact.formats.testcase import TestCase
from reenact.formats.trace import Adapter, Trace, TraceEvent, TraceMetrics, TraceOutput, TraceScenario
from reenact.trace.normalize import ACTORS, DEFAULT_AGENT_ID, DEFAULT_CAPABILITIES, scenario_of

ADAPTER: Final = "replay-log"
SessionStart = current.SessionStart | legacy.SessionStart
SessionEnd = current.SessionEnd | legacy.SessionEnd
Verification = current.Verification | legacy.Verification

_STATUSES: Final[Mapping[str, str]] = {
    "success": "success",
    "failure": "failed",
    "failed": "failed",
    "cancelled": "blocked",
    "timeout": "failed",
}


def trace_of_replay_log(
    lines: Iterable[tuple[Line, Event]],
    *,
    trace_id: str,
    test_run_id: str,
    case: TestCase | None = None,
    artifacts: Mapping[str, Any] | None = None,
) -> Trace:
    """The trace of a log that :func:`reenact.formats.replay_log.read_replay_log` reads.

    A log that ends without a ``SessionEnd`` is the log of a run that failed.
    """
    read = [(line.number, event) for line, event in lines]
    session = next((event.session_id for _, event in read if isinstance(event, SessionStart)), ABSENT)
    trigger = case.scenario.trigger if case else "user_message"
    scenario = scenario_of(Scenario(trigger=trigger, session_id=session), case)
    end = next((event for _, event in reversed(read) if isinstance(event, SessionEnd)), None)
    events = [*_events(read, scenario)]
    return Trace(
        schema_version=SCHEMA_VERSION,
        trace_id=trace_id,
        test_case_id=case.id if case else None,
        test_run_id=test_run_id,
        adapter=Adapter(name=case.adapter if case else ADAPTER, version=__version__),
        capabilities=dict(DEFAULT_CAPABILITIES),
        scenario=scenario,
        input_messages=[],
        events=events,
        final_output=TraceOutput(role="assistant", content=_summary(end)),
        status=_STATUSES[end.status.lower()] if end else "failed",
        metrics=_metrics(events, end),
        artifacts=dict(artifacts or {}),
    )


def _events(read: Iterable[tuple[int, Event]], scenario: TraceScenario) -> Iterator[TraceEvent]:
    calls: dict[str, tuple[str, str]] = {}
    seq, ts = 0, ""
    for number, event in read:
        ts = _time(event) or ts
        for suffix, kind, data in _project(event, calls):
            seq += 1
            parent = calls.get(data.get("call_id", "")) if kind in ("tool_result", "error") else None
            yield TraceEvent(
                event_id=f"evt-{number}{suffix}",
                seq=seq,
                ts=ts,
                type=kind,
                actor=ACTORS.get(kind, "system"),
                group_id=scenario.group_id,
                session_id=scenario.session_id,
                task_id=scenario.task_id,
                agent_id=DEFAULT_AGENT_ID,
                parent_event_id=parent[0] if parent else None,
                data=data,
            )
        if isinstance(event, ToolCall):
            calls[_call_id(event)] = (f"evt-{number}", event.tool)


def _project(event: Event, calls: Mapping[str, tuple[str, str]]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Suffix of the id, type and data of what one line is in the trace."""
    if isinstance(event, ToolCall):
        args = {} if event.params is ABSENT else {"args": event.params}
        yield "", "tool_call", {"tool": event.tool, "call_id": _call_id(event), **args}
    elif isinstance(event, ToolResult):
        _, tool = calls.get(_call_id(event), ("", "unknown"))
        yield from _project_result(event, {"tool": tool, "call_id": _call_id(event)})
    elif isinstance(event, Verification):
        yield "", "verification", _project_verification(event)
    elif isinstance(event, SessionEnd) and _summary(event):
        yield "", "final_output", {"role": "assistant", "content": _summary(event)}


def _project_result(event: ToolResult, head: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    success = event.ok if isinstance(event, current.ToolResult) else not event.exit_code
    facts = {"success": success, "latency_ms": event.latency_ms, "output_hash": event.output_hash}
    yield "", "tool_result", {**head, **facts}
    if success:
        return
    error = {"error_type": "exit_code", "message": f"exit code {getattr(event, 'exit_code', None)}"}
    if isinstance(event, current.ToolResult):
        recorded = event.error
        error = {"error_type": "error", "message": ""}
        if recorded is not ABSENT:
            error = {"error_type": recorded.name, "message": recorded.message}
    yield ".error", "error", {"scope": "tool", **head, **error}


def _project_verification(event: Verification) -> dict[str, Any]:
    if isinstance(event, current.Verification):
        return {"commands": [event.command], "exit_codes": [event.exit_code]}
    return {"commands": event.commands, "exit_codes": event.exit_codes}


def _call_id(event: ToolCall | ToolResult) -> str:
    return event.step_id if isinstance(event, current.ToolCall | current.ToolResult) else event.id


def _time(event: Event) -> str | None:
    names = ("created_at",) if isinstance(event, ReplayHeader) else ("ts", "t")
    return next((time for name in names if isinstance(time := getattr(event, name, None), str)), None)


def _summary(end: SessionEnd | None) -> str:
    summary = getattr(end, "summary", "")
    return summary if isinstance(summary, str) else ""


def _metrics(events: list[TraceEvent], end: SessionEnd | None) -> TraceMetrics:
    stated = ABSENT if end is None else end.total_latency_ms
    counted = sum(event.data["latency_ms"] for event in events if event.type == "tool_result")
    return TraceMetrics(
        timing_ms_total=counted if stated is ABSENT else stated,
        tool_call_count=sum(event.type == "tool_call" for event in events),
        retry_count=0,
        token_usage=None,
    )

"""Converts a replay bundle to the normalized trace that assertions judge."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from itertools import takewhile
from typing import Final, TypeVar, get_args

from reenact._version import __version__
from reenact.canonical import JsonValue
from reenact.formats.bundle import (
    ADAPTER,
    SCHEMA_VERSION,
    AnyStep,
    Bundle,
    Failure,
    FinalOutput,
    FinalOutputStep,
    Scenario,
    ScriptStep,
    ToolCall,
    ToolResult,
    event_id,
)
from reenact.formats.record import ABSENT, Absent
from reenact.formats.rfc3339 import rfc3339
from reenact.formats.testcase import TestCase
from reenact.formats.trace import Adapter, Trace, TraceEvent, TraceMetrics, TraceOutput, TraceScenario

T = TypeVar("T")

_MILLISECOND: Final = timedelta(milliseconds=1)
DEFAULT_AGENT_ID: Final = "agent-main"
DEFAULT_CAPABILITIES: Final[Mapping[str, bool]] = {
    "supports_tool_trace": True,
    "supports_memory_events": False,
    "supports_scheduler_context": False,
    "supports_container_metadata": False,
    "supports_live_run": False,
    "supports_replay": True,
}
ACTORS: Final[Mapping[str, str]] = {
    "message_received": "user",
    "tool_call": "agent",
    "tool_result": "tool",
    "memory_read": "agent",
    "memory_write": "agent",
    "error": "system",
    "final_output": "agent",
}

_OWN_FIELDS: Final[Mapping[type, tuple[str, ...]]] = {
    kind: tuple(name for name in kind.__struct_fields__ if name not in ScriptStep.__struct_fields__)
    for kind in get_args(AnyStep)
}


def normalize(
    bundle: Bundle,
    *,
    trace_id: str,
    test_run_id: str,
    started_at: datetime,
    case: TestCase | None = None,
    adapter_version: str = __version__,
    artifacts: Mapping[str, object] | None = None,
) -> Trace:
    """The trace of a valid bundle; *case* names the test and completes the scenario.

    *started_at* must have a time zone; the times of steps without one are counted from it.
    """
    scenario = scenario_of(bundle.scenario, case)
    return Trace(
        schema_version=SCHEMA_VERSION,
        trace_id=trace_id,
        test_case_id=case.id if case else None,
        test_run_id=test_run_id,
        adapter=Adapter(name=case.adapter if case else bundle.adapter or ADAPTER, version=adapter_version),
        capabilities={**DEFAULT_CAPABILITIES, **(bundle.capabilities or {})},
        scenario=scenario,
        input_messages=bundle.input_messages,
        events=_events(bundle.script, bundle.scenario, started_at),
        final_output=_final_output(bundle),
        status=bundle.status,
        metrics=_metrics(bundle),
        artifacts=dict(artifacts or {}),
    )


def scenario_of(own: Scenario, case: TestCase | None) -> TraceScenario:
    """The scenario of the run, completed by the scenario of the test."""
    planned = case.scenario if case else Scenario(trigger=own.trigger)
    planned_task = (planned.scheduler_context or {}).get("task_id")
    return TraceScenario(
        trigger=own.trigger,
        group_id=_first_present(own.group_id, planned.group_id),
        session_id=_first_present(own.session_id, planned.session_id),
        task_id=_first_present(
            own.task_id, planned.task_id, planned_task if isinstance(planned_task, str) else None
        ),
        scheduler_context=_first_present(own.scheduler_context, planned.scheduler_context),
        extra=own.extra,
    )


def _first_present(*values: T | Absent | None) -> T | None:
    """The first value that is neither absent nor null."""
    for value in values:
        if value is not None and value is not ABSENT:
            return value
    return None


def _events(script: list[AnyStep], scenario: Scenario, started_at: datetime) -> list[TraceEvent]:
    events: list[TraceEvent] = []
    calls: dict[str, str] = {}
    for index, (step, ts) in enumerate(zip(script, _times(script, started_at), strict=True)):
        event = _event(index, step, scenario, ts, calls)
        if isinstance(step, ToolCall):
            calls[step.call_id] = event.event_id
        events.append(event)
    return events


def _times(script: list[AnyStep], started_at: datetime) -> list[str]:
    """The time of each step: its own, or one between those of its neighbours.

    A step without a time is a millisecond after the step before it, but not after the next given time.
    Before the first given time, the steps are counted back from it. If no step has a time, they are counted
    from the start of the run.
    """
    given = [_first_present(step.ts) for step in script]
    moments = [None if ts is None else _moment(ts) for ts in given]
    nexts = list(moments)
    for index in reversed(range(len(nexts) - 1)):
        nexts[index] = nexts[index] or nexts[index + 1]
    before_first = sum(1 for _ in takewhile(lambda moment: moment is None, moments))
    start = started_at if not nexts or nexts[0] is None else nexts[0] - before_first * _MILLISECOND
    times: list[str] = []
    previous, previous_text = start - _MILLISECOND, ""
    for ts, moment, following in zip(given, moments, nexts, strict=True):
        due = moment or previous + _MILLISECOND
        if moment is None and following is not None:
            due = min(due, following)
        text = ts or rfc3339(due)
        if ts is None and previous_text and datetime.fromisoformat(text) < previous:
            text, due = previous_text, previous  # which has a finer resolution than a millisecond
        times.append(text)
        previous, previous_text = due, text if moment or ts is None else previous_text
    return times


def _moment(ts: str) -> datetime | None:
    """The parsed time; ``None`` for a text that is not a time."""
    try:
        moment = datetime.fromisoformat(ts)
    except ValueError:
        return None
    return moment if moment.tzinfo is not None else None


def _event(index: int, step: AnyStep, scenario: Scenario, ts: str, calls: Mapping[str, str]) -> TraceEvent:
    """One event; *calls* maps each call to its latest event before this one."""
    kind = str(step.__struct_config__.tag)
    answered = _first_present(step.call_id) if isinstance(step, ToolResult | Failure) else None
    return TraceEvent(
        event_id=event_id(index + 1, step.event_id),
        seq=index + 1,
        ts=ts,
        type=kind,
        actor=ACTORS[kind],
        group_id=_first_present(step.group_id, scenario.group_id),
        session_id=_first_present(step.session_id, scenario.session_id),
        task_id=_first_present(step.task_id, scenario.task_id),
        agent_id=_first_present(step.agent_id) or DEFAULT_AGENT_ID,
        parent_event_id=None if answered is None else calls.get(answered),
        data=_data(step),
    )


def _data(step: AnyStep) -> dict[str, JsonValue]:
    """The fields of this kind of step; JSON values are shared, not copied, because scripts may be long."""
    fields = {name: getattr(step, name) for name in _OWN_FIELDS[type(step)]}
    return {name: value for name, value in fields.items() if value is not ABSENT} | step.extra


def _final_output(bundle: Bundle) -> TraceOutput:
    """The output of the bundle, or else of the last step that has one."""
    steps = [step for step in bundle.script if isinstance(step, FinalOutputStep)]
    output = bundle.final_output or (steps[-1] if steps else FinalOutput())
    extra = output.extra if isinstance(output, FinalOutput) else {}
    return TraceOutput(role=output.role or "assistant", content=output.content or "", extra=extra)


def _metrics(bundle: Bundle) -> TraceMetrics:
    metrics = bundle.metrics
    return TraceMetrics(
        timing_ms_total=metrics.timing_ms_total,
        tool_call_count=sum(isinstance(step, ToolCall) for step in bundle.script),
        retry_count=metrics.retry_count or 0,
        token_usage=_first_present(metrics.token_usage),
        extra={key: value for key, value in metrics.extra.items() if key != "tool_call_count"},
    )

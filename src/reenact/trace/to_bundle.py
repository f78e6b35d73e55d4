"""Converts a trace to a replay bundle, for tests that people read and edit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Final, NamedTuple

from reenact.canonical import JsonValue
from reenact.formats.bundle import (
    ADAPTER,
    CODEC,
    SCHEMA_VERSION,
    STEP_TYPES,
    AnyStep,
    Bundle,
    FinalOutput,
    Metrics,
    Scenario,
)
from reenact.formats.record import ABSENT, Codec
from reenact.formats.trace import Trace, TraceEvent
from reenact.trace.normalize import DEFAULT_AGENT_ID

_STEP: Final[Codec[AnyStep]] = Codec(AnyStep)


class Bundled(NamedTuple):
    """A bundle, and the number of events of each type that have no step in it."""

    bundle: Bundle
    left_out: dict[str, int]


def bundle_of_trace(trace: Trace) -> Bundled:
    """The bundle of *trace*, without the events that have no step in a bundle.

    The error of a call without a step, such as a model call, has its id as ``model_call_id``.
    """
    steps, left_out = [], Counter[str]()
    calls: set[object] = set()
    for event in trace.events:
        call_id = event.data.get("call_id")
        if event.type == "tool_call":
            calls.add(call_id)
        if event.type not in STEP_TYPES or (event.type == "tool_result" and call_id not in calls):
            left_out[event.type] += 1
        else:
            steps.append(_step(event, trace, is_of_tool=call_id in calls))
    scenario = trace.scenario
    metrics = trace.metrics
    bundle = Bundle(
        schema_version=SCHEMA_VERSION,
        adapter=ADAPTER,
        scenario=Scenario(
            trigger=scenario.trigger,
            group_id=scenario.group_id,
            session_id=scenario.session_id,
            task_id=scenario.task_id,
            scheduler_context=_scheduler_context(trace),
            extra=scenario.extra,
        ),
        capabilities=trace.capabilities,
        input_messages=trace.input_messages,
        script=steps,
        final_output=FinalOutput(role=trace.final_output.role, content=trace.final_output.content),
        status=trace.status,
        metrics=Metrics(
            timing_ms_total=metrics.timing_ms_total,
            retry_count=metrics.retry_count,
            token_usage=metrics.token_usage,
            extra=metrics.extra,
        ),
    )
    return Bundled(CODEC.from_json(CODEC.to_json(bundle)), dict(left_out))


def _scheduler_context(trace: Trace) -> dict[str, JsonValue] | None:
    """The context that a scheduled run must have: the recorded one, or else one with the known facts."""
    scenario = trace.scenario
    if scenario.trigger == "scheduler" and scenario.scheduler_context is None:
        return {"task_id": scenario.task_id}
    return scenario.scheduler_context


def _step(event: TraceEvent, trace: Trace, *, is_of_tool: bool) -> AnyStep:
    fields = dict(_fields(event, trace))
    if event.type == "error" and not is_of_tool and "call_id" in fields:
        fields["model_call_id"] = fields.pop("call_id")
    return _STEP.from_json(fields)


def _fields(event: TraceEvent, trace: Trace) -> Iterator[tuple[str, JsonValue]]:
    """The fields of the step, without those that equal the scenario's."""
    yield "type", event.type
    yield "event_id", event.event_id
    yield "ts", event.ts
    for name in ("group_id", "session_id", "task_id"):
        if getattr(event, name) != getattr(trace.scenario, name):
            yield name, getattr(event, name)
    if event.agent_id != DEFAULT_AGENT_ID:
        yield "agent_id", event.agent_id
    for name, value in event.data.items():
        if value is not ABSENT:
            yield name, value

"""The trace of a replayed run: its calls, every divergence, every refused live call.

A strict replay equals the recorded run up to its first divergence, where it stops. A lenient replay goes on;
its diverging calls were answered with the outcomes of recorded ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

import msgspec

from reenact.canonical import JsonValue
from reenact.formats.event import ASKING
from reenact.formats.replay_receipt import ReplayReceipt
from reenact.formats.trace import Trace, TraceEvent, TraceOutput
from reenact.trace.model_calls import as_text
from reenact.trace.normalize import DEFAULT_AGENT_ID

Gone = Callable[[TraceEvent], bool]


def as_replayed(trace: Trace, receipt: ReplayReceipt) -> Trace:
    """*trace* without the events that the replay did not repeat, and with those that replaced them."""
    events = trace.events
    missing = [found for found in receipt.divergences if found["code"] == "event_missing"]
    for divergence in missing:
        events = _drop_events(events, _removal_test(divergence))
    wrong = [found for found in receipt.divergences if found["code"] != "event_missing"]
    for number, divergence in enumerate(wrong, 1):
        instead = _replacement_events(divergence, trace, f"now-{number}")
        if receipt.matching.policy == "lenient":
            events = _replace_event(events, divergence.get("eventSeq"), instead)
        else:
            events = [*_drop_events(events, _removal_test(divergence)), *instead]
    return _trace_with(events, trace)


def _replace_event(events: list[TraceEvent], seq: int | None, instead: list[TraceEvent]) -> list[TraceEvent]:
    """*events* with *instead* in place of event *seq*, whose outcome the call got, or at the end."""
    recorded = f"evt-{seq}"
    if not instead or all(event.event_id != recorded for event in events):
        return [*events, *instead]
    [now] = instead
    return [
        msgspec.structs.replace(now, event_id=recorded) if event.event_id == recorded else event
        for event in events
    ]


def _removal_test(divergence: dict[str, Any]) -> Gone:
    seq = divergence.get("eventSeq")
    observed = divergence.get("observed", {})
    if seq is None or (observed.get("type") == "run_end" and "finalOutput" not in observed["data"]):
        return lambda _: False
    if divergence["code"] == "event_missing" and "expected" in divergence:
        return lambda event: event.event_id == f"evt-{seq}"
    return lambda event: _line(event) >= seq


def _line(event: TraceEvent) -> int:
    """The line of *event* in the capture; 0 for an event that is not in the capture."""
    number = event.event_id.removeprefix("evt-").partition(".")[0]
    return int(number) if number.isdecimal() else 0


def _drop_events(events: list[TraceEvent], gone: Gone) -> list[TraceEvent]:
    """*events* without those for which *gone* is true, and without their outcomes."""
    left_out = {event.event_id for event in events if gone(event)}
    return [event for event in events if not {event.event_id, event.parent_event_id} & left_out]


def _replacement_events(divergence: dict[str, Any], trace: Trace, event_id: str) -> list[TraceEvent]:
    """The call or the output of the replay that differs from the recording."""
    observed = divergence.get("observed", {"type": "", "data": {}})
    data = observed["data"]
    if observed["type"] == "run_end" and "finalOutput" in data:
        content = as_text(data["finalOutput"])
        return [event_at_the_end(trace, event_id, "final_output", {"role": "assistant", "content": content})]
    if observed["type"] not in ASKING:
        return []
    known = data if observed["type"] == "tool_call" else {"model": data.get("request", {}).get("model")}
    return [event_at_the_end(trace, event_id, observed["type"], {"call_id": event_id, **known})]


def event_at_the_end(trace: Trace, event_id: str, kind: str, data: dict[str, JsonValue]) -> TraceEvent:
    """An event with the time of the last recorded one; the caller numbers it."""
    return TraceEvent(
        event_id=event_id,
        seq=0,
        ts=trace.events[-1].ts if trace.events else "1970-01-01T00:00:00.000Z",
        type=kind,
        actor="agent",
        group_id=trace.scenario.group_id,
        session_id=trace.scenario.session_id,
        task_id=trace.scenario.task_id,
        agent_id=DEFAULT_AGENT_ID,
        parent_event_id=None,
        data=data,
    )


def _trace_with(events: list[TraceEvent], trace: Trace) -> Trace:
    numbered = [msgspec.structs.replace(event, seq=seq) for seq, event in enumerate(events, 1)]
    outputs = [event.data["content"] for event in events if event.type == "final_output"]
    is_changed = [event.event_id for event in events] != [event.event_id for event in trace.events]
    output = TraceOutput(role=trace.final_output.role, content=outputs[-1] if outputs else "")
    calls = sum(event.type == "tool_call" for event in events)
    return msgspec.structs.replace(
        trace,
        events=numbered,
        final_output=output if is_changed else trace.final_output,
        metrics=msgspec.structs.replace(trace.metrics, tool_call_count=calls),
    )


REPLAYED: Final = "replayed"
"""The capability of a trace whose run was executed again."""


def with_receipt(trace: Trace, receipt: ReplayReceipt) -> Trace:
    """The trace of the replay, followed by an event for each divergence and each refused live call."""
    trace = as_replayed(trace, receipt)
    found = [*_findings(receipt)]
    events = [_found_event(trace, index, kind, data) for index, (kind, data) in enumerate(found, 1)]
    return msgspec.structs.replace(
        trace,
        events=trace.events + events,
        capabilities={**trace.capabilities, REPLAYED: True},
    )


def _findings(receipt: ReplayReceipt) -> Iterator[tuple[str, dict[str, JsonValue]]]:
    for divergence in receipt.divergences:
        yield "divergence", divergence
    for refused in receipt.liveCallsRefused:
        yield "live_call_refused", {"kind": refused.kind, "target": refused.target, "frame": refused.frame}


def _found_event(trace: Trace, index: int, kind: str, data: dict[str, JsonValue]) -> TraceEvent:
    recorded = f"evt-{data.get('eventSeq')}"
    is_known = any(event.event_id == recorded for event in trace.events)
    return msgspec.structs.replace(
        event_at_the_end(trace, f"replay-{index}", kind, data),
        seq=len(trace.events) + index,
        actor="system",
        parent_event_id=recorded if is_known else None,
    )

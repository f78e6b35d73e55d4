"""The trace of a run that was executed again: what it did now, every divergence, every refused live call.

Up to its first wrong call a strict replay is the recorded run; there it stops. A lenient one goes on, and its
wrong calls were answered in the places of recorded ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

import msgspec

from reenact.canonical import JsonValue
from reenact.formats.replay_receipt import ReplayReceipt
from reenact.formats.trace import Trace, TraceEvent, TraceOutput
from reenact.trace.model_calls import as_text
from reenact.trace.normalize import DEFAULT_AGENT_ID

_CALLS: Final = ("tool_call", "llm_request")
Gone = Callable[[TraceEvent], bool]


def as_replayed(trace: Trace, receipt: ReplayReceipt) -> Trace:
    """*trace* without what did not come again, and with what came instead."""
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
    """*events* with other data in the one that was answered for; its outcome is what the agent got."""
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
    """The line of the capture that *event* stands on; 0 for one that is in no capture."""
    number = event.event_id.removeprefix("evt-").partition(".")[0]
    return int(number) if number.isdecimal() else 0


def _drop_events(events: list[TraceEvent], gone: Gone) -> list[TraceEvent]:
    """*events* without those that are *gone*, and without their outcomes."""
    left_out = {event.event_id for event in events if gone(event)}
    return [event for event in events if not {event.event_id, event.parent_event_id} & left_out]


def _replacement_events(divergence: dict[str, Any], trace: Trace, event_id: str) -> list[TraceEvent]:
    """The call that was made, or the output that the run came to, where the recording has another."""
    observed = divergence.get("observed", {"type": "", "data": {}})
    data = observed["data"]
    if observed["type"] == "run_end" and "finalOutput" in data:
        content = as_text(data["finalOutput"])
        return [event_at_the_end(trace, event_id, "final_output", {"role": "assistant", "content": content})]
    if observed["type"] not in _CALLS:
        return []
    known = data if observed["type"] == "tool_call" else {"model": data.get("request", {}).get("model")}
    return [event_at_the_end(trace, event_id, observed["type"], {"call_id": event_id, **known})]


def event_at_the_end(trace: Trace, event_id: str, kind: str, data: dict[str, JsonValue]) -> TraceEvent:
    """An event that the recording does not have, at its last moment; who adds it numbers it."""
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
    """What came of *trace* in the replay, and behind it an event per divergence and per refused live call."""
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

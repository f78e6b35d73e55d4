"""The trace of a run that was executed again: what it did now, every divergence, every live call."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import msgspec

from reenact.formats.replay_receipt import ReplayReceipt
from reenact.formats.trace import Trace, TraceEvent
from reenact.trace.as_replayed import as_replayed
from reenact.trace.normalize import DEFAULT_AGENT_ID

REPLAYED: Final = "replayed"
"""The capability of a trace whose run was executed again."""


def with_receipt(trace: Trace, receipt: ReplayReceipt) -> Trace:
    """What came of *trace* in the replay, and behind it an event per divergence and per refused live call."""
    trace = as_replayed(trace, receipt)
    found = [*_found(receipt)]
    events = [_event(trace, index, kind, data) for index, (kind, data) in enumerate(found, 1)]
    return msgspec.structs.replace(
        trace,
        events=trace.events + events,
        capabilities={**trace.capabilities, REPLAYED: True},
    )


def _found(receipt: ReplayReceipt) -> Iterator[tuple[str, dict[str, Any]]]:
    for divergence in receipt.divergences:
        yield "divergence", divergence
    for refused in receipt.liveCallsRefused:
        yield "live_call_refused", {"kind": refused.kind, "target": refused.target, "frame": refused.frame}


def _event(trace: Trace, index: int, kind: str, data: dict[str, Any]) -> TraceEvent:
    recorded = f"evt-{data.get('eventSeq')}"
    is_known = any(event.event_id == recorded for event in trace.events)
    return TraceEvent(
        event_id=f"replay-{index}",
        seq=len(trace.events) + index,
        ts=trace.events[-1].ts if trace.events else "1970-01-01T00:00:00.000Z",
        type=kind,
        actor="system",
        group_id=trace.scenario.group_id,
        session_id=trace.scenario.session_id,
        task_id=trace.scenario.task_id,
        agent_id=DEFAULT_AGENT_ID,
        parent_event_id=recorded if is_known else None,
        data=data,
    )

"""The normalized trace: one run as an ordered list of events, independent of the source format."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from reenact.canonical import read_json
from reenact.errors import FormatError
from reenact.formats.bundle import Message, Trigger, refuse_version
from reenact.formats.record import Codec, Count, Record


class Adapter(Record, frozen=True, kw_only=True):
    name: str
    version: str


class TraceScenario(Record, frozen=True, kw_only=True):
    trigger: Trigger
    group_id: str | None
    session_id: str | None
    task_id: str | None
    scheduler_context: dict[str, Any] | None


class TraceEvent(Record, frozen=True, kw_only=True):
    event_id: str
    seq: Count
    """From 1, without gaps."""
    ts: str
    type: str
    actor: str
    group_id: str | None
    session_id: str | None
    task_id: str | None
    agent_id: str
    parent_event_id: str | None
    """The earlier event of which this is the outcome, if any."""
    data: dict[str, Any]


class TraceOutput(Record, frozen=True, kw_only=True):
    role: str
    content: str


class TraceMetrics(Record, frozen=True, kw_only=True):
    timing_ms_total: int | float
    tool_call_count: Count
    retry_count: int
    token_usage: Any


class Trace(Record, frozen=True, kw_only=True):
    schema_version: str
    trace_id: str
    test_case_id: str | None
    """``None`` for a trace made outside a test."""
    test_run_id: str
    adapter: Adapter
    capabilities: dict[str, bool]
    scenario: TraceScenario
    input_messages: list[Message]
    events: list[TraceEvent]
    final_output: TraceOutput
    status: str
    metrics: TraceMetrics
    artifacts: dict[str, Any]


CODEC: Final = Codec[Trace](Trace)


def read_trace(data: bytes, file: str) -> Trace:
    """The trace in *data*; :class:`FormatError` with the JSON path of what is wrong."""
    try:
        value = read_json(data)
        refuse_version(value, "normalized trace")
        trace = CODEC.from_json(value)
        _refuse_disorder(trace.events)
        return trace
    except FormatError as error:
        raise error.at(file=file) from None


def write_trace(trace: Trace) -> bytes:
    """The trace as an indented file, keys in order."""
    return msgspec.json.format(CODEC.to_bytes(trace), indent=2) + b"\n"


def _refuse_disorder(events: list[TraceEvent]) -> None:
    seen: set[str] = set()
    for index, event in enumerate(events):
        path = f"$.events[{index}]"
        if event.seq != index + 1:
            raise FormatError(f"must be {index + 1}, not {event.seq}", json_path=f"{path}.seq")
        if event.event_id in seen:
            raise FormatError(f"the id {event.event_id!r} is used twice", json_path=f"{path}.event_id")
        if event.parent_event_id is not None and event.parent_event_id not in seen:
            reason = f"no earlier event has the id {event.parent_event_id!r}"
            raise FormatError(reason, json_path=f"{path}.parent_event_id")
        seen.add(event.event_id)

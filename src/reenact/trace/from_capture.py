"""From a capture directory to the normalized trace that assertions judge.

An event is named after its line: ``evt-17`` stands on line 17 of ``events.jsonl``. A tool that failed gives
two events, its result and, as ``evt-17.error``, the error. Where no tool was seen at work, the calls are
those that the model traffic shows; ``evt-17.tool1`` is the first that line 17 tells of. Chance (clock, random
numbers) is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import count
from typing import Any, Final, NamedTuple

from reenact import canonical
from reenact._version import __version__
from reenact.formats import capture
from reenact.formats.bundle import SCHEMA_VERSION, Message, Scenario
from reenact.formats.capture import CaptureEvent, CaptureManifest
from reenact.formats.record import ABSENT
from reenact.formats.testcase import TestCase
from reenact.formats.trace import Adapter, Trace, TraceEvent, TraceMetrics, TraceOutput, TraceScenario
from reenact.store.reader import CaptureReader
from reenact.trace.model_calls import (
    DerivedEvents,
    as_text,
    error_of,
    input_messages,
    output_text,
    total_usage,
    usage_of,
)
from reenact.trace.normalize import ACTORS, DEFAULT_AGENT_ID, DEFAULT_CAPABILITIES, rfc3339_of_ms, scenario_of
from reenact.values.tags import plain

ADAPTER: Final = "reenact"
STATE_KINDS: Final = ("memory_read", "memory_write")
"""State that has an event type of its own; all other is ``state_mutation``."""

_ACTORS: Final[Mapping[str, str]] = {
    **ACTORS,
    "llm_request": "agent",
    "llm_response": "model",
    "state_mutation": "agent",
}
_STATUSES: Final[Mapping[str, str]] = {"ok": "success", "error": "failed"}


class TraceEntry(NamedTuple):
    """One event of the trace before it is numbered."""

    type: str
    data: dict[str, Any]
    suffix: str = ""
    group_id: str | None = None


class _Seen(NamedTuple):
    """An event of the capture, or one that the model traffic shows."""

    event_id: str
    event: CaptureEvent


class _Call(NamedTuple):
    event_id: str
    name: str
    ts_ms: int | float


class _Retries:
    """Counts the calls that repeat one that failed: the same model or tool, asked the same."""

    def __init__(self) -> None:
        self.count = 0
        self._open: dict[str, tuple[str, ...]] = {}
        self._failed: set[tuple[str, ...]] = set()

    def see(self, event: CaptureEvent) -> None:
        """Take note of one more event, in order."""
        if isinstance(event, capture.LlmRequest):
            self._note_call(event.data.callId, (event.data.provider, event.data.model, event.data.inputHash))
        elif isinstance(event, capture.ToolCall):
            self._note_call(event.data.callId, (event.data.tool, canonical.digest(event.data.args)))
        elif isinstance(event, capture.LlmResponse):
            self._note_end(
                event.data.callId, event.data.error is ABSENT and "modelError" not in event.data.extra
            )
        elif isinstance(event, capture.ToolResult):
            self._note_end(event.data.callId, event.data.ok)

    def _note_call(self, call_id: str, request: tuple[str, ...]) -> None:
        self.count += request in self._failed
        self._failed.discard(request)
        self._open[call_id] = request

    def _note_end(self, call_id: str, ok: bool) -> None:
        request = self._open.pop(call_id, None)
        if request is not None and not ok:
            self._failed.add(request)


def trace_of_capture(
    reader: CaptureReader,
    *,
    trace_id: str,
    test_run_id: str,
    case: TestCase | None = None,
    artifacts: Mapping[str, Any] | None = None,
) -> Trace:
    """The trace of a finished capture; *case* names the test and says what the capture does not know."""
    manifest = reader.manifest
    trigger = case.scenario.trigger if case else "user_message"
    scenario = scenario_of(Scenario(trigger=trigger, session_id=manifest.runId), case)
    retries = _Retries()
    events = [*_events(reader, scenario, retries)]
    return Trace(
        schema_version=SCHEMA_VERSION,
        trace_id=trace_id,
        test_case_id=case.id if case else None,
        test_run_id=test_run_id,
        adapter=Adapter(name=case.adapter if case else ADAPTER, version=__version__),
        capabilities=_capabilities(events, scenario),
        scenario=scenario,
        input_messages=_first_messages(reader),
        events=events,
        final_output=_final_output(events),
        status=_STATUSES[manifest.status],
        metrics=_metrics(manifest, events, retries.count),
        artifacts=dict(artifacts or {}),
    )


def _events(reader: CaptureReader, scenario: TraceScenario, retries: _Retries) -> Iterator[TraceEvent]:
    calls: dict[str, _Call] = {}
    seq = 0
    last_text: str | None = None
    for event_id, event in _recorded_and_derived(reader):
        retries.see(event)
        for entry in _project(reader, event, calls, last_text):
            seq += 1
            if entry.type == "llm_response":
                last_text = entry.data.get("text") or last_text
            yield _trace_event(entry, _Seen(event_id, event), seq, calls, scenario)
        if isinstance(event, capture.ToolCall):
            calls[event.data.callId] = _Call(event_id, event.data.tool, event.ts)
        elif isinstance(event, capture.LlmRequest):
            calls[event.data.callId] = _Call(event_id, event.data.model, event.ts)


def _recorded_and_derived(reader: CaptureReader) -> Iterator[_Seen]:
    derived = DerivedEvents(reader)
    for recorded in reader.events():
        event_id = f"evt-{recorded.seq}"
        numbers = count(1)
        for event in derived.around(recorded):
            yield _Seen(event_id if event is recorded else f"{event_id}.tool{next(numbers)}", event)


def _trace_event(
    entry: TraceEntry, seen: _Seen, seq: int, calls: Mapping[str, _Call], scenario: TraceScenario
) -> TraceEvent:
    is_outcome = entry.type in ("tool_result", "llm_response", "error")
    call = calls.get(entry.data.get("call_id", "")) if is_outcome else None
    return TraceEvent(
        event_id=f"{seen.event_id}{entry.suffix}",
        seq=seq,
        ts=rfc3339_of_ms(seen.event.ts),
        type=entry.type,
        actor=_ACTORS[entry.type],
        group_id=entry.group_id or scenario.group_id,
        session_id=scenario.session_id,
        task_id=scenario.task_id,
        agent_id=DEFAULT_AGENT_ID,
        parent_event_id=call.event_id if call else None,
        data=entry.data,
    )


def _project(
    reader: CaptureReader, event: CaptureEvent, calls: Mapping[str, _Call], last_text: str | None
) -> Iterator[TraceEntry]:
    """What one event of the capture is in the trace: nothing, one event or two."""
    if isinstance(event, capture.RunEnd):
        yield from _project_run_end(reader, event, last_text)
    elif isinstance(event, capture.LlmResponse):
        yield from _project_model_response(reader, event, calls.get(event.data.callId, _missing_call(event)))
    elif isinstance(event, capture.ToolResult):
        yield from _project_tool_result(reader, event, calls.get(event.data.callId, _missing_call(event)))
    else:
        project = _PROJECTIONS.get(type(event))
        if project is not None:
            yield project(reader, event)


def _missing_call(outcome: CaptureEvent) -> _Call:
    """Stands for the call of an outcome whose call is not in the log."""
    return _Call("", "unknown", outcome.ts)


def _project_tool_call(reader: CaptureReader, event: capture.ToolCall) -> TraceEntry:
    args = plain(reader.resolved(event.data.args))
    data = {"tool": event.data.tool, "call_id": event.data.callId, "args": args}
    return TraceEntry("tool_call", data | _derived_mark(event.data))


def _derived_mark(data: capture.ToolCallData | capture.ToolResultData) -> dict[str, Any]:
    return {"derived": True} if data.derived is True else {}


def _project_model_request(_: CaptureReader, event: capture.LlmRequest) -> TraceEntry:
    data = event.data
    return TraceEntry("llm_request", {"call_id": data.callId, "provider": data.provider, "model": data.model})


def _project_state(reader: CaptureReader, event: capture.StateMutation) -> TraceEntry:
    data = event.data
    known = {"source": data.source, "path": data.path, "content": data.content, "value": data.value}
    facts = {name: plain(reader.resolved(value)) for name, value in known.items() if value is not ABSENT}
    details = {} if data.details is ABSENT else plain(reader.resolved(data.details))
    facts = (details if isinstance(details, dict) else {"details": details}) | facts
    group_id = data.group_id if isinstance(data.group_id, str) else None
    if data.type in STATE_KINDS:
        return TraceEntry(data.type, facts, group_id=group_id)
    return TraceEntry("state_mutation", {"kind": data.type, **facts}, group_id=group_id)


def _project_tool_result(
    reader: CaptureReader, event: capture.ToolResult, call: _Call
) -> Iterator[TraceEntry]:
    head = {"tool": call.name, "call_id": event.data.callId} | _derived_mark(event.data)
    latency = {"latency_ms": event.ts - call.ts_ms}
    if event.data.ok:
        result = None if event.data.result is ABSENT else plain(reader.resolved(event.data.result))
        yield TraceEntry("tool_result", {**head, "success": True, "result": result, **latency})
        return
    yield TraceEntry("tool_result", {**head, "success": False, **latency})
    failure = {} if event.data.error is ABSENT else reader.resolved(event.data.error)
    yield TraceEntry("error", {"scope": "tool", **head, **error_of(failure)}, suffix=".error")


def _project_model_response(
    reader: CaptureReader, event: capture.LlmResponse, call: _Call
) -> Iterator[TraceEntry]:
    data = event.data
    head = {"call_id": data.callId, "provider": data.provider, "model": data.model or call.name}
    facts = {
        "stop_reason": data.stopReason,
        "usage": usage_of(data.usage),
        "latency_ms": event.ts - call.ts_ms,
    }
    response = None if data.response is ABSENT else reader.resolved(data.response)
    pieces = data.pieces if data.pieces is ABSENT else reader.resolved(data.pieces)
    text = output_text(data.provider, response, pieces)
    yield TraceEntry("llm_response", {**head, **facts, **({} if text is None else {"text": text})})
    failure = data.extra.get("modelError") if data.error is ABSENT else reader.resolved(data.error)
    if failure is not None:
        yield TraceEntry("error", {"scope": "model", **head, **error_of(failure)}, suffix=".error")


def _project_run_end(
    reader: CaptureReader, event: capture.RunEnd, last_text: str | None
) -> Iterator[TraceEntry]:
    """The output is what the run says it came to, else the last thing the model said."""
    if event.data.error is not ABSENT:
        error_type, _, message = event.data.error.partition(": ")
        yield TraceEntry("error", {"scope": "run", "error_type": error_type, "message": message}, ".error")
    output = event.data.finalOutput
    output = None if output is ABSENT else plain(reader.resolved(output))
    output = last_text if output is None else output
    if output is not None:
        yield TraceEntry("final_output", {"role": "assistant", "content": as_text(output)})


_PROJECTIONS: Final[Mapping[type, Callable[[CaptureReader, Any], TraceEntry]]] = {
    capture.ToolCall: _project_tool_call,
    capture.LlmRequest: _project_model_request,
    capture.StateMutation: _project_state,
}


def _first_messages(reader: CaptureReader) -> list[Message]:
    for event in reader.events():
        if isinstance(event, capture.LlmRequest) and event.data.request is not ABSENT:
            return input_messages(reader.resolved(event.data.request))
    return []


def _capabilities(events: list[TraceEvent], scenario: TraceScenario) -> dict[str, bool]:
    kinds = {event.type for event in events}
    return {
        **DEFAULT_CAPABILITIES,
        "supports_memory_events": not kinds.isdisjoint(STATE_KINDS),
        "supports_scheduler_context": scenario.scheduler_context is not None,
        "supports_model_trace": "llm_request" in kinds,
    }


def _final_output(events: list[TraceEvent]) -> TraceOutput:
    last = events[-1] if events else None
    content = last.data["content"] if last and last.type == "final_output" else ""
    return TraceOutput(role="assistant", content=content)


def _metrics(manifest: CaptureManifest, events: list[TraceEvent], retry_count: int) -> TraceMetrics:
    completed_at = manifest.createdAt if manifest.completedAt is ABSENT else manifest.completedAt
    return TraceMetrics(
        timing_ms_total=max(0, completed_at - manifest.createdAt),
        tool_call_count=sum(event.type == "tool_call" for event in events),
        retry_count=retry_count,
        token_usage=total_usage(event.data.get("usage") for event in events if event.type == "llm_response"),
    )

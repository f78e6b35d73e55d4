"""Converts a run, read from any artifact, to the normalized trace that assertions judge.

An event is named after its line: ``evt-17`` is on line 17 of the artifact. A failed tool call gives two
events, its result and the error as ``evt-17.error``. If no tool calls were observed, those in the model
traffic are used; ``evt-17.tool1`` is the first one on line 17. Clocks and random numbers are left out. The
calls of a published log have no ``args``, because it has no parameters.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from reenact import canonical
from reenact._version import __version__
from reenact.canonical import JsonValue
from reenact.formats.bundle import SCHEMA_VERSION, Message, Scenario
from reenact.formats.event import RunEvent
from reenact.formats.record import ABSENT
from reenact.formats.rfc3339 import rfc3339_of_ms
from reenact.formats.testcase import TestCase
from reenact.formats.trace import Adapter, Trace, TraceEvent, TraceMetrics, TraceOutput, TraceScenario
from reenact.trace.model_calls import as_text, error_of, input_messages, model_response, usage_of
from reenact.trace.normalize import ACTORS, DEFAULT_AGENT_ID, DEFAULT_CAPABILITIES, scenario_of
from reenact.trace.sources.source import RecordedRun

STATE_KINDS: Final = ("memory_read", "memory_write")
"""Kinds of state that have their own event type; all others are ``state_mutation``."""

_ACTORS: Final[Mapping[str, str]] = {
    **ACTORS,
    "llm_request": "agent",
    "llm_response": "model",
    "state_mutation": "agent",
    "verification": "system",
}


def trace_of_run(
    run: RecordedRun,
    *,
    trace_id: str,
    test_run_id: str,
    case: TestCase | None = None,
    artifacts: Mapping[str, object] | None = None,
) -> Trace:
    """The trace of a finished run; *case* names the test and adds what the artifact does not have."""
    trigger = case.scenario.trigger if case else "user_message"
    scenario = scenario_of(Scenario(trigger=trigger, session_id=run.session_id), case)
    projection = _Projection(run, scenario)
    events = [*projection.events()]
    return Trace(
        schema_version=SCHEMA_VERSION,
        trace_id=trace_id,
        test_case_id=case.id if case else None,
        test_run_id=test_run_id,
        adapter=Adapter(name=case.adapter if case else run.adapter, version=__version__),
        capabilities=_capabilities(run, events, scenario),
        scenario=scenario,
        input_messages=projection.input_messages,
        events=events,
        final_output=_final_output(events),
        status=run.status,
        metrics=_metrics(run, events, projection.retries.count),
        artifacts=dict(artifacts or {}),
    )


class TraceEntry(NamedTuple):
    """One event of the trace before it is numbered."""

    type: str
    data: dict[str, Any]
    suffix: str = ""
    group_id: str | None = None


class _OpenCall(NamedTuple):
    event_id: str
    name: str
    ts_ms: int | float


class _Retries:
    """Counts the calls that repeat a failed one: the same model or tool with the same request."""

    def __init__(self) -> None:
        self.count = 0
        self._open: dict[str, tuple[str, ...]] = {}
        self._failed: set[tuple[str, ...]] = set()

    def add(self, event: RunEvent) -> None:
        """Count one more event; called in order."""
        data = event.data
        match event.type:
            case "llm_request":
                self._note_call(data["callId"], (data["provider"], data["model"], data["inputHash"]))
            case "tool_call":
                self._note_call(data["callId"], (data["tool"], canonical.digest(data["args"])))
            case "llm_response":
                self._note_end(data["callId"], "error" not in data and "modelError" not in data)
            case "tool_result":
                self._note_end(data["callId"], data["ok"])

    def _note_call(self, call_id: str, request: tuple[str, ...]) -> None:
        self.count += request in self._failed
        self._failed.discard(request)
        self._open[call_id] = request

    def _note_end(self, call_id: str, ok: bool) -> None:
        request = self._open.pop(call_id, None)
        if request is not None and not ok:
            self._failed.add(request)


class _Projection:
    """One pass over the events of a run."""

    def __init__(self, run: RecordedRun, scenario: TraceScenario) -> None:
        self._run = run
        self._scenario = scenario
        self._calls: dict[str, _OpenCall] = {}
        self._last_text: str | None = None
        self._has_asked = False
        self.input_messages: list[Message] = []
        """The messages of the first request to a model."""
        self.retries = _Retries()

    def events(self) -> Iterator[TraceEvent]:
        """The events of the trace, in order."""
        seq = 0
        for event_id, event in self._run.events:
            if self._run.is_whole:
                self.retries.add(event)
            for entry in self._project(event):
                seq += 1
                yield self._number_event(entry, event_id, event, seq)
            if event.type in ("tool_call", "llm_request"):
                name = event.data["tool" if event.type == "tool_call" else "model"]
                self._calls[event.data["callId"]] = _OpenCall(event_id, name, event.ts)

    def _number_event(self, entry: TraceEntry, event_id: str, event: RunEvent, seq: int) -> TraceEvent:
        is_outcome = entry.type in ("tool_result", "llm_response", "error")
        call = self._calls.get(entry.data.get("call_id", "")) if is_outcome else None
        scenario = self._scenario
        return TraceEvent(
            event_id=f"{event_id}{entry.suffix}",
            seq=seq,
            ts=event.time or rfc3339_of_ms(event.ts),
            type=entry.type,
            actor=_ACTORS[entry.type],
            group_id=entry.group_id or scenario.group_id,
            session_id=scenario.session_id,
            task_id=scenario.task_id,
            agent_id=DEFAULT_AGENT_ID,
            parent_event_id=call.event_id if call else None,
            data=entry.data,
        )

    def _project(self, event: RunEvent) -> Iterator[TraceEntry]:
        """The entries for one event of the run: none, one or two."""
        match event.type:
            case "tool_call":
                yield self._tool_call(event.data)
            case "tool_result":
                yield from self._tool_result(event)
            case "llm_request":
                yield self._model_request(event.data)
            case "llm_response":
                yield from self._model_response(event)
            case "state_mutation":
                yield self._state(event.data)
            case "verification":
                facts = event.data["value"]
                data = {"commands": facts["commands"], "exit_codes": facts["exitCodes"]}
                yield TraceEntry("verification", data)
            case "run_end":
                yield from self._run_end(event.data)

    def _tool_call(self, data: dict[str, JsonValue]) -> TraceEntry:
        args = {"args": self._run.plain(data["args"])} if "args" in data else {}
        head = {"tool": data["tool"], "call_id": data["callId"]}
        return TraceEntry("tool_call", head | args | _derived_mark(data))

    def _tool_result(self, event: RunEvent) -> Iterator[TraceEntry]:
        data = event.data
        call = self._call_of(event)
        head = {"tool": call.name, "call_id": data["callId"]} | _derived_mark(data)
        facts: dict[str, object] = {"success": data["ok"], "latency_ms": _latency_ms(event, call)}
        if "resultHash" in data:
            facts["output_hash"] = data["resultHash"]
        elif data["ok"]:
            facts["result"] = self._run.plain(data.get("result"))
        yield TraceEntry("tool_result", head | facts)
        if not data["ok"]:
            yield TraceEntry("error", {"scope": "tool", **head, **self._tool_error(data)}, suffix=".error")

    def _tool_error(self, data: dict[str, Any]) -> dict[str, JsonValue]:
        if "resultHash" not in data:
            return error_of(self._run.resolve(data.get("error", {})))
        if "error" in data:  # a log has its own form of errors
            return {"error_type": data["error"]["type"], "message": data["error"]["message"]}
        if data.get("exitCode"):
            return {"error_type": "exit_code", "message": f"exit code {data['exitCode']}"}
        return {"error_type": "error", "message": ""}

    def _model_request(self, data: dict[str, JsonValue]) -> TraceEntry:
        if "request" in data and not self._has_asked:
            self._has_asked = True
            self.input_messages = input_messages(self._run.resolve(data["request"]))
        head = {"call_id": data["callId"], "provider": data["provider"], "model": data["model"]}
        return TraceEntry("llm_request", head)

    def _model_response(self, event: RunEvent) -> Iterator[TraceEntry]:
        data = event.data
        call = self._call_of(event)
        head = {"call_id": data["callId"], "provider": data["provider"], "model": data["model"] or call.name}
        facts: dict[str, object] = {
            "stop_reason": data["stopReason"],
            "usage": usage_of(data["usage"]),
            "latency_ms": _latency_ms(event, call),
        }
        pieces = self._run.resolve(data["pieces"]) if "pieces" in data else ABSENT
        answer = model_response(data["provider"], self._run.resolve(data.get("response")), pieces)
        if answer is not None:
            facts["text"] = answer.text
            self._last_text = answer.text or self._last_text
        yield TraceEntry("llm_response", head | facts)
        failure = self._run.resolve(data["error"]) if "error" in data else data.get("modelError")
        if failure is not None:
            yield TraceEntry("error", {"scope": "model", **head, **error_of(failure)}, suffix=".error")

    def _state(self, data: dict[str, Any]) -> TraceEntry:
        known = ("source", "path", "content", "value")
        facts = {name: self._run.plain(data[name]) for name in known if name in data}
        details = self._run.plain(data["details"]) if "details" in data else {}
        facts = (details if isinstance(details, dict) else {"details": details}) | facts
        group_id = data.get("group_id")
        if data["type"] in STATE_KINDS:
            return TraceEntry(data["type"], facts, group_id=group_id)
        return TraceEntry("state_mutation", {"kind": data["type"], **facts}, group_id=group_id)

    def _run_end(self, data: dict[str, Any]) -> Iterator[TraceEntry]:
        """The end of the run; its output is the recorded one, or else the last answer of the model."""
        if "error" in data:
            error_type, _, message = data["error"].partition(": ")
            error = {"scope": "run", "error_type": error_type, "message": message}
            yield TraceEntry("error", error, suffix=".error")
        output = self._run.plain(data.get("finalOutput"))
        output = self._last_text if output is None else output
        if output is not None:
            yield TraceEntry("final_output", {"role": "assistant", "content": as_text(output)})

    def _call_of(self, outcome: RunEvent) -> _OpenCall:
        """The call of *outcome*, or a placeholder if it is missing."""
        return self._calls.get(outcome.data["callId"], _OpenCall("", "unknown", outcome.ts))


def _derived_mark(data: dict[str, JsonValue]) -> dict[str, JsonValue]:
    return {"derived": True} if data.get("derived") is True else {}


def _latency_ms(outcome: RunEvent, call: _OpenCall) -> int | float:
    """The latency in the artifact, or else the time between the two events."""
    stated: int | float | None = outcome.data.get("latencyMs")
    return outcome.ts - call.ts_ms if stated is None else stated


def _capabilities(run: RecordedRun, events: list[TraceEvent], scenario: TraceScenario) -> dict[str, bool]:
    if not run.is_whole:
        return dict(DEFAULT_CAPABILITIES)
    kinds = {event.type for event in events}
    return {
        **DEFAULT_CAPABILITIES,
        "supports_memory_events": not kinds.isdisjoint(STATE_KINDS),
        "supports_scheduler_context": scenario.scheduler_context is not None,
        "supports_model_trace": "llm_request" in kinds,
    }


def _final_output(events: list[TraceEvent]) -> TraceOutput:
    outputs = [event.data["content"] for event in events if event.type == "final_output"]
    return TraceOutput(role="assistant", content=outputs[-1] if outputs else "")


def _metrics(run: RecordedRun, events: list[TraceEvent], retry_count: int) -> TraceMetrics:
    latencies = (event.data["latency_ms"] for event in events if event.type == "tool_result")
    return TraceMetrics(
        timing_ms_total=sum(latencies) if run.duration_ms is None else run.duration_ms,
        tool_call_count=sum(event.type == "tool_call" for event in events),
        retry_count=retry_count,
        token_usage=_total_usage(event.data.get("usage") for event in events if event.type == "llm_response"),
    )


def _total_usage(usages: Iterable[dict[str, int] | None]) -> dict[str, int] | None:
    """The sums of all counts, with ``total_tokens``; ``None`` if no call had any."""
    totals: dict[str, int] = {}
    for usage in usages:
        for name, count in (usage or {}).items():
            totals[name] = totals.get(name, 0) + count
    if not totals:
        return None
    return totals | {"total_tokens": totals.get("input_tokens", 0) + totals.get("output_tokens", 0)}

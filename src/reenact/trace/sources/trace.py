"""Reads traces, and bundles converted to traces; they are one JSON value and read as a whole."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import msgspec

from reenact.canonical import JsonValue
from reenact.errors import FormatError
from reenact.formats.bundle import read_bundle
from reenact.formats.event import ASKING, REMARK, EventHead, RunEvent
from reenact.formats.trace import CODEC, Trace, TraceEvent, read_trace
from reenact.trace.normalize import DEFAULT_AGENT_ID, normalize
from reenact.trace.sources.source import Header, RunKind, WithoutBlobs

_STATUSES: Final = {"success": "ok", "failed": "error"}
_TYPES: Final = {"message_received": "message", "final_output": "run_end"}
_USAGE: Final = {
    "input_tokens": "inputTokens",
    "output_tokens": "outputTokens",
    "cached_input_tokens": "cachedInputTokens",
}


class TraceSource(WithoutBlobs):
    """A trace in memory; events have the numbers of the trace."""

    def __init__(self, file: Path, kind: RunKind) -> None:
        self.path = self.file = str(file)
        self.kind = kind
        data = file.read_bytes()
        self.size_bytes = len(data)
        self._trace = read_trace(data, self.file) if kind == "trace" else _trace_of_bundle(data, self.file)
        self._events = [*_events(self._trace)]
        self.count = 0

    @property
    def read_bytes(self) -> int:
        return self.size_bytes if self.count else 0

    @property
    def torn_bytes(self) -> int:
        return 0

    def header(self) -> Header:
        trace = self._trace
        start_ms = self._events[0].ts if self._events else None
        total_ms = trace.metrics.timing_ms_total
        return Header(
            path=self.path,
            kind=self.kind,
            status=_STATUSES.get(trace.status, trace.status),
            run_id=trace.scenario.session_id,
            created_at_ms=start_ms,
            completed_at_ms=None if start_ms is None else start_ms + total_ms,
            producer=f"{trace.adapter.name} {trace.adapter.version}",
            final_output=trace.final_output.content,
            token_usage=trace.metrics.token_usage,
        )

    def read_on(self) -> Iterator[EventHead]:
        first, self.count = self.count, len(self._events)
        for event in self._events[first:]:
            try:
                yield event.head()
            except msgspec.ValidationError as error:
                path = f"$.events[{event.seq - 1}]"
                raise FormatError(str(error), file=self.file, json_path=path) from None

    def raw(self, seq: int) -> object:
        return CODEC.to_json(self._trace)["events"][seq - 1]

    def event(self, seq: int) -> RunEvent:
        return self._events[seq - 1]

    def close(self) -> None:
        """Does nothing: the trace is in memory."""

    def verify(self) -> None:
        """Does nothing: reading has validated the trace."""


def _trace_of_bundle(data: bytes, file: str) -> Trace:
    bundle = read_bundle(data, file)
    # The times of steps without one are counted from here.
    first_ms = next((_milliseconds(step.ts) for step in bundle.script if isinstance(step.ts, str)), None)
    started_at = datetime.fromtimestamp((first_ms or 0) / 1000, UTC)
    return normalize(bundle, trace_id="", test_run_id="", started_at=started_at)


def _events(trace: Trace) -> Iterator[RunEvent]:
    """The events as those of a capture; an error of a call is part of the call's outcome, wherever it is."""
    failures = {_call_id(event): event for event in trace.events if event.type == "error"}
    returned = {_call_id(event) for event in trace.events if event.type in ("tool_result", "llm_response")}
    ts_ms = 0.0
    for event in trace.events:
        ts_ms = max(ts_ms, _milliseconds(event.ts) or 0)
        kind, data = _translate(event, failures, returned)
        lane = "0" if event.agent_id == DEFAULT_AGENT_ID else event.agent_id
        yield RunEvent(event.seq, ts_ms, kind, {"lane": lane, **data})


def _translate(
    event: TraceEvent, failures: Mapping[str | None, TraceEvent], returned: set[str | None]
) -> tuple[str, dict[str, JsonValue]]:
    data, call_id = event.data, _call_id(event)
    common = {"callId": call_id, "model": data.get("model"), "provider": data.get("provider")}
    failure = failures.get(call_id) if call_id else None
    match event.type:
        case "tool_call":
            return "tool_call", {"callId": call_id, "tool": data.get("tool"), "args": data.get("args")}
        case "llm_request":
            return "llm_request", common
        case "tool_result":
            facts = {"callId": call_id, "tool": data.get("tool"), "result": data.get("result")}
            return "tool_result", facts | _outcome(data, failure)
        case "llm_response":
            facts = {"text": data.get("text"), "stopReason": data.get("stop_reason")}
            return "llm_response", common | facts | {"usage": _usage(data)} | _outcome(data, failure)
        case "memory_read" | "memory_write" | "state_mutation":
            return "state_mutation", {"type": data.get("kind", event.type), **data}
        case "error" if call_id in returned:
            return REMARK, {}
        case "error":
            error = _failure(event)
            return "error", {"name": error["type"], "value": data, "error": error, "callId": call_id}
        case "message_received":
            return "message", {"name": str(data.get("role") or "user"), "value": data.get("content")}
        case other:
            return _TYPES.get(other, other), {"name": "", "value": data}


def _outcome(data: dict[str, object], failure: TraceEvent | None) -> dict[str, JsonValue]:
    found: dict[str, Any] = {"latencyMs": data.get("latency_ms")}
    if failure is not None:
        return found | {"ok": False, "error": _failure(failure)}
    return found | {"ok": data.get("success") is not False}


def _failure(event: TraceEvent) -> dict[str, JsonValue]:
    data = event.data
    return {"type": str(data.get("error_type") or "error"), "message": str(data.get("message") or "")}


def _usage(data: dict[str, JsonValue]) -> dict[str, JsonValue] | None:
    usage = data.get("usage")
    if not isinstance(usage, dict):
        return None
    return {_USAGE.get(name, name): count for name, count in usage.items() if isinstance(name, str)}


def _call_id(event: TraceEvent) -> str | None:
    """The event id of the call, because several attempts may share a ``call_id``."""
    return event.event_id if event.type in ASKING else event.parent_event_id


def _milliseconds(time: str) -> float | None:
    try:
        return datetime.fromisoformat(time).timestamp() * 1000
    except ValueError:
        return None

"""Exports a run as OpenTelemetry spans with the semantic conventions for generative AI, in OTLP JSON.

Ids are derived from those of the capture, so that a run that is sent twice is the same trace.
"""

from __future__ import annotations

import gzip
import os
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from hashlib import sha256
from threading import Thread
from time import sleep
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

import msgspec

from reenact._version import __version__
from reenact.canonical import JsonValue
from reenact.errors import StoreError
from reenact.formats import capture
from reenact.formats.dialects.losses import Loss
from reenact.formats.record import ABSENT
from reenact.providers import (
    Media,
    ModelRequest,
    ModelResponse,
    Part,
    Refusal,
    Text,
    Thinking,
    ToolCallPart,
    ToolResultPart,
)
from reenact.store.reader import CaptureReader
from reenact.trace.model_calls import as_text, read_with_derived, request_of, response_of, usage_of
from reenact.trace.to_rows import find_seal
from reenact.values.tags import strip_tags

if TYPE_CHECKING:
    import httpx2

_INTERNAL: Final = 1
_CLIENT: Final = 3
_FAILED: Final = 2
_NS_PER_MS: Final = 1_000_000
_TIMEOUT_S = 30.0
_PAUSES_S: tuple[float, ...] = (1.0, 2.0, 4.0)
"""Between the tries, if the collector says that it may take the spans later, unless it says when."""
_LATER: Final = (429, 502, 503, 504)
_REMEDIES: Final = {
    401: "put the headers that it asks for into OTEL_EXPORTER_OTLP_HEADERS",
    403: "put the headers that it asks for into OTEL_EXPORTER_OTLP_HEADERS",
    404: "the path for traces is /v1/traces",
    413: "raise its limit for requests, or export to a file",
    429: "try it later",
    503: "try it later",
}
_PROVIDERS: Final = {
    "openai_chat": "openai",
    "openai_responses": "openai",
    "gemini": "gcp.gemini",
}
_USAGE: Final = {
    "input_tokens": "gen_ai.usage.input_tokens",
    "output_tokens": "gen_ai.usage.output_tokens",
    "cached_input_tokens": "gen_ai.usage.cache_read.input_tokens",
    "cache_write_tokens": "gen_ai.usage.cache_creation.input_tokens",
    "reasoning_tokens": "gen_ai.usage.reasoning.output_tokens",
}
_PARAMS: Final = ("temperature", "top_p", "top_k", "max_tokens", "seed")


def document_of(reader: CaptureReader, note_loss: Callable[[Loss], None]) -> dict[str, object]:
    """One request to a collector; the span of the run names the capture."""
    writing = _SpanBuilder(reader, note_loss)
    for event in read_with_derived(reader):
        writing.event(event)
    scope = {"name": "reenact", "version": __version__}
    resource = {"attributes": _attributes({"service.name": "reenact", "telemetry.sdk.name": "reenact"})}
    spans = writing.finish()
    return {"resourceSpans": [{"resource": resource, "scopeSpans": [{"scope": scope, "spans": spans}]}]}


class Unreachable(StoreError):
    """The address does not answer, so further requests to it would time out, too."""


def send(endpoint: str, document: bytes) -> None:
    """Post a request to a collector, as OTLP over HTTP; raises if it is not accepted in time."""
    import httpx2  # slow to import

    posted: Future[httpx2.Response] = Future()

    def post() -> None:
        try:
            posted.set_result(_post_with_retries(endpoint, document))
        except Exception as error:  # raised again by the waiting thread
            posted.set_exception(error)

    # The client's timeout is for each read; a server that sends its answer slowly would take forever.
    Thread(target=post, name="reenact-otlp", daemon=True).start()
    try:
        answer = posted.result(_TIMEOUT_S)
    except (httpx2.TimeoutException, TimeoutError):
        raise Unreachable(
            f"{endpoint}: the collector did not answer in {_TIMEOUT_S:g} s; try it later"
        ) from None
    except (httpx2.HTTPError, httpx2.InvalidURL) as error:
        reason = str(error) or type(error).__name__
        raise Unreachable(f"{endpoint}: the collector cannot be reached: {reason}") from None
    if answer.status_code >= 300:
        remedy = _REMEDIES.get(answer.status_code, "look at its log")
        raise StoreError(
            f"{endpoint}: the collector refused the spans with status {answer.status_code}; {remedy}"
        )
    try:
        refused = (msgspec.json.decode(answer.content) if answer.content else {}).get("partialSuccess") or {}
        count = int(refused.get("rejectedSpans") or 0)
    except (ValueError, TypeError, AttributeError):  # any other answer means that it accepted them
        return
    if count:
        reason = refused.get("errorMessage") or "it does not say why"
        raise StoreError(f"{endpoint}: the collector rejected {count} spans: {reason}")


def _post_with_retries(endpoint: str, document: bytes) -> httpx2.Response:
    import httpx2  # slow to import

    headers = {**_own_headers(os.environ), "content-type": "application/json"}
    if os.environ.get("OTEL_EXPORTER_OTLP_COMPRESSION") == "gzip":
        headers["content-encoding"], document = "gzip", gzip.compress(document)
    for pause_s in _PAUSES_S:
        answer = httpx2.post(endpoint, content=document, headers=headers, timeout=_TIMEOUT_S)
        if answer.status_code not in _LATER:
            return answer
        told = answer.headers.get("retry-after", "")
        sleep(min(int(told), _TIMEOUT_S) if told.isdecimal() else pause_s)
    return httpx2.post(endpoint, content=document, headers=headers, timeout=_TIMEOUT_S)


def _own_headers(environ: Mapping[str, str]) -> dict[str, str]:
    """The headers that OpenTelemetry's exporters read from the environment: ``api-key=…,other=…``."""
    names = ("OTEL_EXPORTER_OTLP_HEADERS", "OTEL_EXPORTER_OTLP_TRACES_HEADERS")
    pairs = [each.partition("=") for name in names for each in environ.get(name, "").split(",")]
    return {unquote(name).strip().lower(): unquote(value).strip() for name, sign, value in pairs if sign}


def _hex_id(text: str, size_bytes: int) -> str:
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[: 2 * size_bytes]


def _attributes(values: dict[str, object]) -> list[dict[str, JsonValue]]:
    return [{"key": key, "value": _any_value(value)} for key, value in values.items() if value is not None]


def _any_value(value: Any) -> dict[str, JsonValue]:
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    if isinstance(value, float):
        return {"doubleValue": value}
    if isinstance(value, str):
        return {"stringValue": value}
    return {"arrayValue": {"values": [_any_value(each) for each in value]}}


class _SpanBuilder:
    def __init__(self, reader: CaptureReader, note_loss: Callable[[Loss], None]) -> None:
        self._reader = reader
        self._note_loss = note_loss
        self._trace = _hex_id(reader.manifest.captureId, 16)
        self._root = _hex_id(f"{reader.manifest.captureId} run", 8)
        self._spans: list[dict[str, JsonValue]] = []
        self._open: dict[str, tuple[capture.CaptureEvent, dict[str, Any]]] = {}
        """The request event and its span, by call id."""
        self._first_ms: float | None = None
        self._last_ms: float = 0.0

    def event(self, event: capture.CaptureEvent) -> None:
        self._first_ms = event.ts if self._first_ms is None else self._first_ms
        self._last_ms = max(self._last_ms, event.ts)
        if isinstance(event, capture.LlmRequest):
            self._begin(event, self._request_span(event), f"chat {event.data.model}", _CLIENT)
        elif isinstance(event, capture.ToolCall):
            name = event.data.tool
            self._begin(event, self._tool_span(event), f"execute_tool {name}", _INTERNAL)
        elif isinstance(event, capture.LlmResponse | capture.ToolResult):
            self._end(event)
        elif isinstance(event, capture.Nondeterministic) and event.data.source == "network":
            self._network(event)
        elif isinstance(event, capture.StateMutation | capture.Nondeterministic):
            tag = str(type(event).__struct_config__.tag)
            self._note_loss(Loss(event.seq, tag, None, "the conventions have no span for it"))

    def _begin(self, event: Any, attributes: dict[str, JsonValue], name: str, kind: int) -> None:
        data = event.data
        lane = None if data.lane is ABSENT else data.lane
        known = attributes | {"reenact.event": event.seq, "reenact.lane": lane}
        parent = self._open.get(str(data.parent)) if data.parent is not ABSENT else None
        span = {
            "traceId": self._trace,
            "spanId": _hex_id(f"{self._trace} {event.seq} {data.callId}", 8),
            "parentSpanId": parent[1]["spanId"] if parent else self._root,
            "name": name,
            "kind": kind,
            "startTimeUnixNano": _nano(event.ts),
            "attributes": _attributes(known),
        }
        self._open[str(data.callId)] = event, span

    def _end(self, event: capture.LlmResponse | capture.ToolResult | capture.Nondeterministic) -> None:
        begun = self._open.pop(str(event.data.callId), None)
        if begun is None:
            return
        call, span = begun
        failure = None if event.data.error is ABSENT else strip_tags(self._reader.resolve(event.data.error))
        attributes: dict[str, object] = {"reenact.outcome_event": event.seq}
        if isinstance(event, capture.LlmResponse):
            if failure is None and event.data.modelError is not ABSENT:
                failure = event.data.modelError
            attributes |= self._response_span(event)
        elif isinstance(event, capture.ToolResult) and event.data.ok and event.data.result is not ABSENT:
            attributes["gen_ai.tool.call.result"] = as_text(
                strip_tags(self._reader.resolve(event.data.result))
            )
        elif isinstance(event, capture.Nondeterministic):
            answer = (
                None if event.data.value is ABSENT else strip_tags(self._reader.resolve(event.data.value))
            )
            attributes["http.response.status_code"] = (
                answer.get("status") if isinstance(answer, dict) else None
            )
        span["endTimeUnixNano"] = _nano(max(event.ts, call.ts))
        if failure is not None:
            facts = failure if isinstance(failure, dict) else {"message": str(failure)}
            attributes["error.type"] = str(facts.get("type") or "error")
            span["status"] = {"code": _FAILED, "message": str(facts.get("message") or "")}
        span["attributes"] += _attributes(attributes)
        self._spans.append(span)

    def _network(self, event: capture.Nondeterministic) -> None:
        if event.data.request is not ABSENT and str(event.data.callId) not in self._open:
            request = strip_tags(self._reader.resolve(event.data.request))
            request = request if isinstance(request, dict) else {}
            method = str(request.get("method") or "HTTP")
            known = {"http.request.method": method, "url.full": request.get("url")}
            self._begin(event, known, method, _CLIENT)
        else:
            self._end(event)

    def _request_span(self, event: capture.LlmRequest) -> dict[str, Any]:
        request = request_of(self._reader, event)
        provider = _PROVIDERS.get(event.data.provider, event.data.provider)
        known = {
            "gen_ai.operation.name": "chat",
            "gen_ai.provider.name": provider,
            "gen_ai.request.model": event.data.model,
        }
        if request is None:
            self._note_loss(Loss(event.seq, "llm_request", "request", "its wire format is unknown"))
            return known
        return known | _request_attributes(request)

    def _response_span(self, event: capture.LlmResponse) -> dict[str, JsonValue]:
        attributes: dict[str, JsonValue] = {"gen_ai.response.model": event.data.model}
        if event.data.stopReason is not None:
            attributes["gen_ai.response.finish_reasons"] = [event.data.stopReason]
        for name, count in (usage_of(event.data.usage) or {}).items():
            if name in _USAGE:
                attributes[_USAGE[name]] = count
        response = response_of(self._reader, event)
        return (
            attributes
            if response is None
            else attributes | _response_attributes(response, event.data.stopReason)
        )

    def _tool_span(self, event: capture.ToolCall) -> dict[str, JsonValue]:
        return {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": event.data.tool,
            "gen_ai.tool.type": "function",
            "gen_ai.tool.call.id": event.data.callId,
            "gen_ai.tool.call.arguments": _json(strip_tags(self._reader.resolve(event.data.args))),
        }

    def finish(self) -> list[dict[str, JsonValue]]:
        """All spans, with the span of the run first."""
        for call, span in self._open.values():
            tag = str(type(call).__struct_config__.tag)
            self._note_loss(Loss(call.seq, tag, None, "it was never answered; its span ends with the run"))
            span["endTimeUnixNano"] = _nano(self._last_ms)
            self._spans.append(span)
        manifest = self._reader.manifest
        known = {
            "gen_ai.operation.name": "invoke_agent",
            "gen_ai.conversation.id": manifest.runId,
            "reenact.capture_id": manifest.captureId,
            "reenact.events_hash": manifest.integrity.eventsHash,
            "reenact.event_count": manifest.eventCount,
            "reenact.redaction": manifest.redaction.profile,
            "reenact.seal": find_seal(self._reader.path) or None,
        }
        root: dict[str, Any] = {
            "traceId": self._trace,
            "spanId": self._root,
            "name": "invoke_agent",
            "kind": _INTERNAL,
            "startTimeUnixNano": _nano(self._first_ms or manifest.createdAt),
            "endTimeUnixNano": _nano(self._last_ms or manifest.createdAt),
            "attributes": _attributes(known),
        }
        if manifest.status != "ok":
            failed = "the run failed" if manifest.error is ABSENT else manifest.error
            root["status"] = {"code": _FAILED, "message": failed}
        return [root, *self._spans]


def _request_attributes(request: ModelRequest) -> dict[str, JsonValue]:
    attributes: dict[str, JsonValue] = {
        f"gen_ai.request.{name}": request.params[name]
        for name in _PARAMS
        if isinstance(request.params.get(name), int | float)
    }
    if request.system:
        attributes["gen_ai.system_instructions"] = _json([{"type": "text", "content": request.system}])
    messages = [{"role": each.role, "parts": _parts(each.parts)} for each in request.messages]
    attributes["gen_ai.input.messages"] = _json(messages)
    if request.tools:
        tools = [
            {
                "type": "function",
                "name": each.name,
                "description": each.description,
                "parameters": each.schema,
            }
            for each in request.tools
        ]
        attributes["gen_ai.tool.definitions"] = _json(tools)
    return attributes


def _response_attributes(response: ModelResponse, stop_reason: str | None) -> dict[str, JsonValue]:
    message = {"role": "assistant", "parts": _parts(response.parts), "finish_reason": stop_reason or ""}
    return {"gen_ai.response.id": response.id, "gen_ai.output.messages": _json([message])}


def _parts(parts: Iterable[Part]) -> list[dict[str, JsonValue]]:
    return [_part(part) for part in parts]


def _part(part: Part) -> dict[str, JsonValue]:
    if isinstance(part, Text | Refusal):
        return {"type": "text", "content": part.text}
    if isinstance(part, Thinking):
        return {"type": "reasoning", "content": part.text}
    if isinstance(part, ToolCallPart):
        arguments = part.arguments if part.arguments_text is None else part.arguments_text
        return {"type": "tool_call", "id": part.id, "name": part.name, "arguments": arguments}
    if isinstance(part, ToolResultPart):
        return {"type": "tool_call_response", "id": part.call_id, "response": part.content}
    if isinstance(part, Media):
        return {
            "type": "uri",
            "mime_type": part.media_type,
            "uri": part.url or part.file_id or part.digest or "",
        }
    return {"type": part.type, **{key: value for key, value in part.value.items() if key != "type"}}


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()


def _nano(time_ms: float) -> str:
    return str(int(time_ms * _NS_PER_MS))

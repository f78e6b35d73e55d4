"""The model calls of a capture: requests, answers, token counts, and the tool calls they show."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, NamedTuple, cast
from urllib.parse import urlsplit

import msgspec

from reenact.canonical import JsonValue
from reenact.formats.bundle import Message
from reenact.formats.capture import CaptureEvent, LlmRequest, LlmResponse, event_codec
from reenact.formats.dialects.losses import Loss
from reenact.formats.record import ABSENT
from reenact.providers import (
    DerivedTools,
    ModelReply,
    ModelRequest,
    ModelResponse,
    Text,
    read_neutral_request,
    read_neutral_response,
    read_reply,
    read_request,
    read_response,
)
from reenact.providers.meaning import ModelMessage, Provider
from reenact.store.reader import CaptureReader
from reenact.values.codec import from_json
from reenact.values.tags import tag

_USAGE: Final[Mapping[str, str]] = {
    "inputTokens": "input_tokens",
    "outputTokens": "output_tokens",
    "cachedInputTokens": "cached_input_tokens",
    "cacheWriteTokens": "cache_write_tokens",
    "reasoningTokens": "reasoning_tokens",
}
_PROVIDERS: Final = frozenset({"anthropic", "openai_chat", "openai_responses", "gemini", "ollama"})


def model_request(request: object) -> ModelRequest | None:
    """A resolved request; ``None`` if it is neither in a known wire format nor in the neutral form."""
    if not isinstance(request, dict) or not isinstance(request.get("url"), str):
        return read_neutral_request(request)
    return read_request(urlsplit(request["url"]).path, request.get("body"))


def input_messages(request: JsonValue) -> list[Message]:
    """The conversation in a resolved request; empty if its wire format is unknown."""
    read = model_request(request)
    if read is None:
        return []
    system = [Message(role="system", content=read.system)] if read.system else []
    return system + [Message(role=message.role, content=_text(message)) for message in read.messages]


def _text(message: ModelMessage) -> str:
    return "".join(part.text for part in message.parts if isinstance(part, Text))


def model_response(provider: str, response: object, pieces: object) -> ModelResponse | None:
    """A resolved answer, streamed or whole; ``None`` if its bytes were not recorded."""
    if pieces is ABSENT and isinstance(response, dict) and response.get("body") is None:
        return read_neutral_response(provider, response)
    known = _wire_answer(provider, response, pieces)
    return None if known is None else read_response(known.provider, known.status, {}, known.body)


def model_reply(provider: str, response: object, pieces: object) -> ModelReply | None:
    """The same without its body and its errors, in half of the time."""
    if pieces is ABSENT and isinstance(response, dict) and response.get("body") is None:
        return read_neutral_response(provider, response)
    known = _wire_answer(provider, response, pieces)
    if known is None:
        return None
    return read_reply(known.provider, known.body) if known.status < 400 else ModelReply()


class _WireAnswer(NamedTuple):
    provider: Provider
    status: int
    body: bytes


def _wire_answer(provider: str, response: object, pieces: object) -> _WireAnswer | None:
    """The bytes of an answer in a known wire format; ``None`` if they were not recorded."""
    if not isinstance(response, dict):
        return None
    if pieces is ABSENT:
        pieces = [response["body"]]
    if provider not in _PROVIDERS or not isinstance(pieces, list):
        return None
    chunks: list[bytes] = []
    for piece in pieces:
        chunk = piece if isinstance(piece, str) else from_json(piece)
        if not isinstance(chunk, str | bytes):
            return None
        chunks.append(chunk if isinstance(chunk, bytes) else chunk.encode("utf-8", "surrogateescape"))
    status = response.get("status")
    return _WireAnswer(cast(Provider, provider), status if isinstance(status, int) else 200, b"".join(chunks))


def usage_of(recorded: Mapping[str, Any] | None) -> dict[str, int] | None:
    """The token counts of one answer with the names of traces; ``None`` if none were sent."""
    counts = {
        name: recorded[key] for key, name in _USAGE.items() if recorded and isinstance(recorded.get(key), int)
    }
    return counts or None


def error_of(failure: object) -> dict[str, Any]:
    """A recorded failure as data of an ``error`` event; classes are named without their module."""
    facts = failure if isinstance(failure, dict) else {"message": str(failure)}
    name = str(facts.get("type") or "error").rpartition(":")[2]
    error = {"error_type": name, "message": str(facts.get("message") or "")}
    return error | ({"status": facts["status"]} if isinstance(facts.get("status"), int) else {})


def as_text(value: object) -> str:
    """An output as text: a string unchanged, anything else as JSON."""
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


class ModelExchange(NamedTuple):
    """One request to a model and its answer."""

    call_id: str
    seq: int
    """The event of the request."""
    asked_at_ms: int | float
    request: ModelRequest
    response: ModelResponse


def exchanges(reader: CaptureReader, on_loss: Callable[[Loss], None]) -> Iterator[ModelExchange]:
    """The exchanges in the order of their answers; *on_loss* is called for calls without one."""
    waiting: dict[str, LlmRequest] = {}
    for event in reader.events():
        if isinstance(event, LlmRequest):
            waiting[event.data.callId] = event
        elif isinstance(event, LlmResponse) and event.data.callId in waiting:
            exchange = _exchange(reader, waiting.pop(event.data.callId), event)
            if isinstance(exchange, Loss):
                on_loss(exchange)
            else:
                yield exchange
    for request_event in waiting.values():
        on_loss(Loss(request_event.seq, "llm_request", None, "it was never answered"))


def request_of(reader: CaptureReader, request_event: LlmRequest) -> ModelRequest | None:
    """The request to a model; ``None`` if its wire format is unknown."""
    stored = request_event.data.request
    return None if stored is ABSENT else model_request(reader.resolve(stored))


def response_of(reader: CaptureReader, response_event: LlmResponse) -> ModelResponse | None:
    """The answer of a model; ``None`` if there is none or its wire format is unknown."""
    data = response_event.data
    body = None if data.response is ABSENT else reader.resolve(data.response)
    pieces = data.pieces if data.pieces is ABSENT else reader.resolve(data.pieces)
    return model_response(data.provider, body, pieces)


def _exchange(
    reader: CaptureReader, request_event: LlmRequest, response_event: LlmResponse
) -> ModelExchange | Loss:
    request = request_of(reader, request_event)
    if request is None:
        return Loss(request_event.seq, "llm_request", None, "its body is of no known wire format")
    response = response_of(reader, response_event)
    if response is None:
        return Loss(response_event.seq, "llm_response", None, "it failed before there was an answer")
    return ModelExchange(request_event.data.callId, request_event.seq, request_event.ts, request, response)


class DerivedEvents:
    """Derives tool calls and results from the model traffic of a capture, event by event.

    Derives nothing if the capture has tool events, observed or derived by the recorder.
    """

    def __init__(self, reader: CaptureReader) -> None:
        self._reader = reader
        # Lines are canonical, so the type of an event is its last member but one.
        has_calls = any(line.endswith(b'"type":"tool_call","version":1}') for line in reader.lines())
        self._tools = None if has_calls else DerivedTools()

    def add_to(self, event: CaptureEvent) -> Iterator[CaptureEvent]:
        """*event* and those derived from it, in the order in which a recorder would have written them.

        Derived events have its number and its time.
        """
        if isinstance(event, LlmRequest) and self._tools is not None and self._tools.has_waiting:
            request = request_of(self._reader, event)
            for data in self._tools.derive_results(request) if request else ():
                yield _derived_event(event, "tool_result", data)
        yield event
        if isinstance(event, LlmResponse) and self._tools is not None:
            response = response_of(self._reader, event)
            for data in self._tools.derive_calls(response, event.data.callId) if response else ():
                yield _derived_event(event, "tool_call", data)


def read_with_derived(reader: CaptureReader) -> Iterator[CaptureEvent]:
    """All events of a capture, and the tool calls and results derived from its model traffic."""
    derived = DerivedEvents(reader)
    return (event for recorded in reader.events() for event in derived.add_to(recorded))


def _derived_event(event: CaptureEvent, kind: str, data: dict[str, JsonValue]) -> CaptureEvent:
    envelope = {name: getattr(event, name) for name in ("version", "captureId", "runId", "seq", "ts")}
    return event_codec.from_json({**envelope, "type": kind, "data": tag(data)})

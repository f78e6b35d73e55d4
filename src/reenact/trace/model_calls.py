"""What the model calls of a capture say: who was asked what, what came back, which tools were called."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple, cast
from urllib.parse import urlsplit

import msgspec

from reenact.canonical import JsonValue
from reenact.formats.bundle import Message
from reenact.formats.capture import CaptureEvent, LlmRequest, LlmResponse, event_codec
from reenact.formats.dialects.turn import Loss
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
    """What a resolved request asks; ``None`` where it is no known wire format, and nobody tells of it."""
    if not isinstance(request, dict) or not isinstance(request.get("url"), str):
        return read_neutral_request(request)
    return read_request(urlsplit(request["url"]).path, request.get("body"))


def input_messages(request: JsonValue) -> list[Message]:
    """The conversation that a resolved request carries; empty where it is no known wire format."""
    asked = model_request(request)
    if asked is None:
        return []
    system = [Message(role="system", content=asked.system)] if asked.system else []
    return system + [Message(role=message.role, content=_text(message)) for message in asked.messages]


def _text(message: ModelMessage) -> str:
    return "".join(part.text for part in message.parts if isinstance(part, Text))


def output_text(provider: str, response: object, pieces: object) -> str | None:
    """The text of a resolved answer, streamed or whole; ``None`` where the bytes are not at hand."""
    answer = model_response(provider, response, pieces)
    return None if answer is None else answer.text


def model_response(provider: str, response: object, pieces: object) -> ModelResponse | None:
    """What a resolved answer says, streamed or whole; ``None`` where the bytes are not at hand."""
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
    """The bytes of an answer in one of the wire formats; ``None`` where they are not at hand."""
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
    """The token counts of one answer under the names of traces; ``None`` where none were sent."""
    counts = {
        name: recorded[key] for key, name in _USAGE.items() if recorded and isinstance(recorded.get(key), int)
    }
    return counts or None


def total_usage(usages: Iterable[dict[str, int] | None]) -> dict[str, int] | None:
    """All counts together, with ``total_tokens``; ``None`` where no call had any."""
    totals: dict[str, int] = {}
    for usage in usages:
        for name, count in (usage or {}).items():
            totals[name] = totals.get(name, 0) + count
    if not totals:
        return None
    return totals | {"total_tokens": totals.get("input_tokens", 0) + totals.get("output_tokens", 0)}


def error_of(failure: object) -> dict[str, Any]:
    """A recorded failure as an ``error`` event says it; a class is named without its module."""
    facts = failure if isinstance(failure, dict) else {"message": str(failure)}
    name = str(facts.get("type") or "error").rpartition(":")[2]
    error = {"error_type": name, "message": str(facts.get("message") or "")}
    return error | ({"status": facts["status"]} if isinstance(facts.get("status"), int) else {})


def as_text(value: object) -> str:
    """An output as text: text as it is, anything else as JSON."""
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


class ModelExchange(NamedTuple):
    """One question to a model and its answer."""

    call_id: str
    seq: int
    """The event that asked."""
    asked_at_ms: int | float
    request: ModelRequest
    response: ModelResponse


def exchanges(reader: CaptureReader, on_loss: Callable[[Loss], None]) -> Iterator[ModelExchange]:
    """The exchanges in the order of their answers; a call that gives none goes to *on_loss*."""
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
    for asked in waiting.values():
        on_loss(Loss(asked.seq, "llm_request", None, "it was never answered"))


def request_of(reader: CaptureReader, asked: LlmRequest) -> ModelRequest | None:
    """What a model was asked; ``None`` where the request is of no known wire format."""
    stored = asked.data.request
    return None if stored is ABSENT else model_request(reader.resolve(stored))


def response_of(reader: CaptureReader, answered: LlmResponse) -> ModelResponse | None:
    """What a model answered; ``None`` where there was no answer, or of no known wire format."""
    data = answered.data
    body = None if data.response is ABSENT else reader.resolve(data.response)
    pieces = data.pieces if data.pieces is ABSENT else reader.resolve(data.pieces)
    return model_response(data.provider, body, pieces)


def _exchange(reader: CaptureReader, asked: LlmRequest, answered: LlmResponse) -> ModelExchange | Loss:
    request = request_of(reader, asked)
    if request is None:
        return Loss(asked.seq, "llm_request", None, "its body is of no known wire format")
    response = response_of(reader, answered)
    if response is None:
        return Loss(answered.seq, "llm_response", None, "it failed before there was an answer")
    return ModelExchange(asked.data.callId, asked.seq, asked.ts, request, response)


class DerivedEvents:
    """Takes the events of a capture in their order and tells what each shows of tools.

    It shows nothing where the recorder has written calls itself: seen at work, or derived already.
    """

    def __init__(self, reader: CaptureReader) -> None:
        self._reader = reader
        # Lines are canonical, so that the type of an event is its last member but one.
        has_calls = any(line.endswith(b'"type":"tool_call","version":1}') for line in reader.lines())
        self._tools = None if has_calls else DerivedTools()

    def around(self, event: CaptureEvent) -> Iterator[CaptureEvent]:
        """*event* among those it shows, in the order in which the recorder would have written them.

        They have its number and its time.
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


def _derived_event(event: CaptureEvent, kind: str, data: dict[str, JsonValue]) -> CaptureEvent:
    envelope = {name: getattr(event, name) for name in ("version", "captureId", "runId", "seq", "ts")}
    return event_codec.from_json({**envelope, "type": kind, "data": tag(data)})

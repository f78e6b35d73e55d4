"""Gemini generateContent and streamGenerateContent."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from reenact.testing.request import Message, ToolResult
from reenact.testing.wire.wire import (
    EVENT_STREAM,
    Json,
    Service,
    Wire,
    WireExchange,
    WireRequest,
    items,
    json_text,
    sse,
    text_of,
)

_PATH: Final = re.compile(r"/models/([^/:]+):(generateContent|streamGenerateContent)$")
_STOPS: Final = {"end": "STOP", "tool": "STOP", "length": "MAX_TOKENS", "refusal": "SAFETY"}
_ERRORS: Final = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    429: "RESOURCE_EXHAUSTED",
    503: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
}


def _read(path: str, body: Json) -> WireRequest:
    called = _PATH.search(path)
    model, verb = called.groups() if called else ("", "")
    messages = tuple(_message(item) for item in items(body.get("contents")))
    return WireRequest(model, verb.startswith("stream"), messages)


def _message(item: Json) -> Message:
    parts = items(item.get("parts"))
    answered = [part["functionResponse"] for part in parts if isinstance(part.get("functionResponse"), dict)]
    results = tuple(
        ToolResult(str(result.get("id") or result.get("name", "")), _result_text(result.get("response")))
        for result in answered
    )
    return Message("assistant" if item.get("role") == "model" else "user", text_of(parts), results)


def _result_text(response: object) -> str:
    """Unwrap a tool result, which the SDK sends as ``{"result": …}``."""
    if isinstance(response, dict) and set(response) == {"result"}:
        response = response["result"]
    return response if isinstance(response, str) else json_text(response)


def _whole(exchange: WireExchange) -> Json:
    reply = exchange.reply
    parts = [*_thoughts((reply.thinking,)), *_texts((reply.text,)), *_calls(exchange)]
    return _chunk(exchange, parts, last=True)


def _stream(exchange: WireExchange) -> Iterator[bytes]:
    reply = exchange.reply
    parts = [*_thoughts(reply.thinking_pieces), *_texts(reply.text_pieces), *_calls(exchange)] or [
        {"text": ""}
    ]
    for part in parts[:-1]:
        yield sse(_chunk(exchange, [part], last=False))
    yield sse(_chunk(exchange, parts[-1:], last=True))


def _thoughts(pieces: Sequence[str]) -> Iterator[Json]:
    return ({"text": piece, "thought": True} for piece in pieces if piece)


def _texts(pieces: Sequence[str]) -> Iterator[Json]:
    return ({"text": piece} for piece in pieces if piece)


def _calls(exchange: WireExchange) -> Iterator[Json]:
    for ordinal, call in enumerate(exchange.calls):
        part: Json = {"functionCall": {"id": call.id, "name": call.name, "args": dict(call.arguments)}}
        if exchange.reply.thinking and ordinal == 0:
            part["thoughtSignature"] = exchange.make_id("CqQB", length=64)
        yield part


def _chunk(exchange: WireExchange, parts: list[Json], *, last: bool) -> Json:
    candidate: Json = {"content": {"parts": parts, "role": "model"}, "index": 0}
    if last:
        candidate["finishReason"] = _STOPS.get(exchange.stop, exchange.stop)
    return {
        "candidates": [candidate],
        "usageMetadata": _usage(exchange) if last else {"promptTokenCount": exchange.input_tokens},
        "modelVersion": exchange.request.model,
        "responseId": exchange.id,
    }


def _usage(exchange: WireExchange) -> Json:
    thinking = exchange.thinking_tokens
    usage: Json = {
        "promptTokenCount": exchange.input_tokens,
        "candidatesTokenCount": exchange.output_tokens - thinking,
        "totalTokenCount": exchange.input_tokens + exchange.output_tokens,
    }
    return {**usage, "thoughtsTokenCount": thinking} if thinking else usage


def _error(status: int, message: str) -> Json:
    return {"error": {"code": status, "message": message, "status": _ERRORS.get(status, "INTERNAL")}}


def _models(names: Sequence[str], _created_at: int) -> Json:
    facts = {"supportedGenerationMethods": ["generateContent"]}
    return {"models": [{"name": f"models/{name}", "displayName": name, **facts} for name in names]}


GEMINI: Final = Service("gemini", "", "application/json; charset=UTF-8", None, _error, _models)
GENERATE: Final = Wire(
    name="gemini",
    service=GEMINI,
    path=_PATH,
    id_prefix="",
    call_prefix="call_",
    stream_type=EVENT_STREAM,
    read=_read,
    whole=_whole,
    stream=_stream,
)

"""Ollama chat."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from reenact.testing.request import Message, Role, ToolResult
from reenact.testing.wire.wire import (
    Json,
    Service,
    Wire,
    WireExchange,
    WireRequest,
    items,
    text_of,
    timestamp,
)

_ROLES: Final[dict[str, Role]] = {"assistant": "assistant", "system": "system"}
_STOPS: Final = {"end": "stop", "tool": "stop", "length": "length", "refusal": "stop"}


def _read(_path: str, body: Json) -> WireRequest:
    messages = tuple(_message(item) for item in items(body.get("messages")))
    # Only this format streams by default.
    return WireRequest(str(body.get("model", "")), body.get("stream") is not False, messages)


def _message(item: Json) -> Message:
    text = text_of(item.get("content"))
    if item.get("role") == "tool":
        return Message("tool", tool_results=(ToolResult(str(item.get("tool_name", "")), text),))
    return Message(_ROLES.get(str(item.get("role")), "user"), text)


def _whole(exchange: WireExchange) -> Json:
    reply = exchange.reply
    message: Json = {"role": "assistant", "content": reply.text}
    if reply.thinking:
        message["thinking"] = reply.thinking
    if exchange.calls:
        message["tool_calls"] = _calls(exchange)
    return {**_line(exchange, message), **_totals(exchange)}


def _stream(exchange: WireExchange) -> Iterator[bytes]:
    for message in _messages(exchange):
        yield _encode({**_line(exchange, message), "done": False})
    yield _encode({**_line(exchange, {"role": "assistant", "content": ""}), **_totals(exchange)})


def _messages(exchange: WireExchange) -> Iterator[Json]:
    for piece in exchange.reply.thinking_pieces:
        yield {"role": "assistant", "content": "", "thinking": piece}
    for piece in exchange.reply.text_pieces:
        yield {"role": "assistant", "content": piece}
    if exchange.calls:
        yield {"role": "assistant", "content": "", "tool_calls": _calls(exchange)}


def _encode(line: Json) -> bytes:
    return msgspec.json.encode(line) + b"\n"


def _calls(exchange: WireExchange) -> list[Json]:
    return [
        {"id": call.id, "function": {"index": index, "name": call.name, "arguments": dict(call.arguments)}}
        for index, call in enumerate(exchange.calls)
    ]


def _line(exchange: WireExchange, message: Json) -> Json:
    return {"model": exchange.request.model, "created_at": timestamp(exchange.created_at), "message": message}


def _totals(exchange: WireExchange) -> Json:
    return {
        "done": True,
        "done_reason": _STOPS.get(exchange.stop, exchange.stop),
        "total_duration": 3_000_000,
        "load_duration": 1_000_000,
        "prompt_eval_count": exchange.input_tokens,
        "prompt_eval_duration": 1_000_000,
        "eval_count": exchange.output_tokens,
        "eval_duration": 1_000_000,
    }


def _error(_status: int, message: str) -> Json:
    return {"error": message}


def _models(names: Sequence[str], created_at: int) -> Json:
    facts = {"modified_at": timestamp(created_at), "size": 0, "digest": "", "details": {"format": "gguf"}}
    return {"models": [{"name": name, "model": name, **facts} for name in names]}


OLLAMA: Final = Service("ollama", "", "application/json; charset=utf-8", None, _error, _models)
CHAT: Final = Wire(
    name="ollama",
    service=OLLAMA,
    path=re.compile(r"/api/chat$"),
    id_prefix="",
    call_prefix="call_",
    stream_type="application/x-ndjson",
    read=_read,
    whole=_whole,
    stream=_stream,
)

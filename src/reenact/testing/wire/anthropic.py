"""Anthropic Messages."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from reenact.testing.request import Message, ToolResult
from reenact.testing.turns import Reply, ToolCall
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
    timestamp,
)

_STOPS: Final = {"end": "end_turn", "tool": "tool_use", "length": "max_tokens", "refusal": "refusal"}
_ERRORS: Final = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    504: "timeout_error",
    529: "overloaded_error",
}


def _read(_path: str, body: Json) -> WireRequest:
    messages = tuple(_message(item) for item in items(body.get("messages")))
    return WireRequest(str(body.get("model", "")), body.get("stream") is True, messages)


def _message(item: Json) -> Message:
    content = item.get("content")
    results = tuple(
        ToolResult(str(block.get("tool_use_id", "")), text_of(block.get("content")))
        for block in items(content)
        if block.get("type") == "tool_result"
    )
    return Message("assistant" if item.get("role") == "assistant" else "user", text_of(content), results)


def _whole(exchange: WireExchange) -> Json:
    stop = _STOPS.get(exchange.stop, exchange.stop)
    return _envelope(exchange, [block.full for block in _blocks(exchange)], stop, exchange.output_tokens)


def _stream(exchange: WireExchange) -> Iterator[bytes]:
    yield _event("message_start", message=_envelope(exchange, [], None, 1))
    for index, block in enumerate(_blocks(exchange)):
        yield _event("content_block_start", index=index, content_block=block.start)
        if index == 0:
            yield _event("ping")
        for delta in block.deltas:
            yield _event("content_block_delta", index=index, delta=delta)
        yield _event("content_block_stop", index=index)
    stop = {"stop_reason": _STOPS.get(exchange.stop, exchange.stop), "stop_sequence": None}
    yield _event("message_delta", delta=stop, usage={"output_tokens": exchange.output_tokens})
    yield _event("message_stop")


def _event(kind: str, **fields: object) -> bytes:
    return sse({"type": kind, **fields}, kind)


def _envelope(exchange: WireExchange, content: list[Json], stop: str | None, output_tokens: int) -> Json:
    return {
        "id": exchange.id,
        "type": "message",
        "role": "assistant",
        "model": exchange.request.model,
        "content": content,
        "stop_reason": stop,
        "stop_sequence": None,
        "usage": {
            "input_tokens": exchange.input_tokens,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": 0,
            "output_tokens": output_tokens,
            "service_tier": "standard",
        },
    }


class _Block(NamedTuple):
    """A content block: complete, its opening in a stream, and its deltas."""

    full: Json
    start: Json
    deltas: list[Json]


def _blocks(exchange: WireExchange) -> Iterator[_Block]:
    if exchange.reply.thinking:
        yield _thinking(exchange.reply, signature=exchange.make_id("EqQB", length=64))
    if exchange.reply.text:
        deltas: list[Json] = [{"type": "text_delta", "text": piece} for piece in exchange.reply.text_pieces]
        yield _Block({"type": "text", "text": exchange.reply.text}, {"type": "text", "text": ""}, deltas)
    for call in exchange.calls:
        yield _tool_use(call, exchange.reply.argument_pieces(json_text(call.arguments)))


def _thinking(reply: Reply, signature: str) -> _Block:
    start = {"type": "thinking", "thinking": "", "signature": ""}
    deltas: list[Json] = [{"type": "thinking_delta", "thinking": piece} for piece in reply.thinking_pieces]
    deltas.append({"type": "signature_delta", "signature": signature})
    return _Block({**start, "thinking": reply.thinking, "signature": signature}, start, deltas)


def _tool_use(call: ToolCall, pieces: tuple[str, ...]) -> _Block:
    start: Json = {"type": "tool_use", "id": call.id, "name": call.name, "input": {}}
    # The real stream begins every input with an empty delta.
    deltas: list[Json] = [{"type": "input_json_delta", "partial_json": piece} for piece in ("", *pieces)]
    return _Block({**start, "input": dict(call.arguments)}, start, deltas)


def _error(status: int, message: str) -> Json:
    return {"type": "error", "error": {"type": _ERRORS.get(status, "api_error"), "message": message}}


def _models(names: Sequence[str], created_at: int) -> Json:
    facts = {"type": "model", "created_at": timestamp(created_at), "lifecycle": "active"}
    data = [{"id": name, "display_name": name, **facts} for name in names]
    ends = {"first_id": names[0], "last_id": names[-1]} if names else {"first_id": None, "last_id": None}
    return {"data": data, "has_more": False, **ends}


ANTHROPIC: Final = Service("anthropic", "", "application/json", "request-id", _error, _models)
MESSAGES: Final = Wire(
    name="anthropic",
    service=ANTHROPIC,
    path=re.compile(r"/messages$"),
    id_prefix="msg_01",
    call_prefix="toolu_01",
    stream_type=EVENT_STREAM,
    read=_read,
    whole=_whole,
    stream=_stream,
)

"""OpenAI Chat Completions, and the parts that the Responses API shares with it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from reenact.testing.request import Message, Role, ToolResult
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

_STOPS: Final = {"end": "stop", "tool": "tool_calls", "length": "length", "refusal": "content_filter"}
_ROLES: Final[dict[str, Role]] = {"assistant": "assistant", "system": "system", "developer": "system"}


def _read(_path: str, body: Json) -> WireRequest:
    messages = tuple(_message(item) for item in items(body.get("messages")))
    return WireRequest(str(body.get("model", "")), body.get("stream") is True, messages)


def _message(item: Json) -> Message:
    text = text_of(item.get("content"))
    if item.get("role") == "tool":
        return Message("tool", tool_results=(ToolResult(str(item.get("tool_call_id", "")), text),))
    return Message(_ROLES.get(str(item.get("role")), "user"), text)


def _whole(exchange: WireExchange) -> Json:
    reply = exchange.reply
    message: Json = {"role": "assistant", "content": reply.text or None, "refusal": None, "annotations": []}
    if reply.thinking:
        # Not a field of OpenAI, but of many servers with this format.
        message["reasoning_content"] = reply.thinking
    if exchange.calls:
        message["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": json_text(call.arguments)},
            }
            for call in exchange.calls
        ]
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": _finish(exchange)}
    return {**_envelope(exchange, "chat.completion"), "choices": [choice], "usage": _usage(exchange)}


def _stream(exchange: WireExchange) -> Iterator[bytes]:
    options = exchange.request.body.get("stream_options")
    with_usage = isinstance(options, dict) and options.get("include_usage") is True
    envelope = _envelope(exchange, "chat.completion.chunk")
    no_usage = {"usage": None} if with_usage else {}
    for delta, finish in _deltas(exchange):
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        yield sse({**envelope, "choices": [choice], **no_usage})
    if with_usage:
        yield sse({**envelope, "choices": [], "usage": _usage(exchange)})
    yield b"data: [DONE]\n\n"


def _deltas(exchange: WireExchange) -> Iterator[tuple[Json, str | None]]:
    reply = exchange.reply
    yield {"role": "assistant", "content": "" if reply.text or not exchange.calls else None}, None
    for piece in reply.thinking_pieces:
        yield {"reasoning_content": piece}, None
    for piece in reply.text_pieces:
        yield {"content": piece}, None
    for index, call in enumerate(exchange.calls):
        function = {"name": call.name, "arguments": ""}
        yield (
            {"tool_calls": [{"index": index, "id": call.id, "type": "function", "function": function}]},
            None,
        )
        for piece in reply.argument_pieces(json_text(call.arguments)):
            yield {"tool_calls": [{"index": index, "function": {"arguments": piece}}]}, None
    yield {}, _finish(exchange)


def _finish(exchange: WireExchange) -> str:
    return _STOPS.get(exchange.stop, exchange.stop)


def _envelope(exchange: WireExchange, kind: str) -> Json:
    return {
        "id": exchange.id,
        "object": kind,
        "created": exchange.created_at,
        "model": exchange.request.model,
        "service_tier": "default",
        "system_fingerprint": "fp_reenact",
    }


def _usage(exchange: WireExchange) -> Json:
    return {
        "prompt_tokens": exchange.input_tokens,
        "completion_tokens": exchange.output_tokens,
        "total_tokens": exchange.input_tokens + exchange.output_tokens,
        "prompt_tokens_details": {"cached_tokens": 0, "audio_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": exchange.thinking_tokens, "audio_tokens": 0},
    }


_KINDS: Final = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_exceeded"}


def _error(status: int, message: str) -> Json:
    kind = _KINDS.get(status, "server_error" if status >= 500 else "invalid_request_error")
    return {"error": {"message": message, "type": kind, "param": None, "code": None}}


def _models(names: Sequence[str], created_at: int) -> Json:
    facts = {"object": "model", "created": created_at, "owned_by": "reenact"}
    return {"object": "list", "data": [{"id": name, **facts} for name in names]}


OPENAI: Final = Service("openai", "/v1", "application/json", "x-request-id", _error, _models)

CHAT: Final = Wire(
    name="openai_chat",
    service=OPENAI,
    path=re.compile(r"/chat/completions$"),
    id_prefix="chatcmpl-",
    call_prefix="call_",
    stream_type=EVENT_STREAM,
    read=_read,
    whole=_whole,
    stream=_stream,
)

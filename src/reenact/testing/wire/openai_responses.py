"""OpenAI Responses."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import count
from typing import Final

from reenact.testing.request import Message, Role, ToolResult
from reenact.testing.turns import ToolCall
from reenact.testing.wire.openai_chat import OPENAI
from reenact.testing.wire.wire import (
    EVENT_STREAM,
    Json,
    Wire,
    WireExchange,
    WireRequest,
    items,
    json_text,
    sse,
    text_of,
)

_INCOMPLETE: Final = {"length": "max_output_tokens", "refusal": "content_filter"}
_ROLES: Final[dict[str, Role]] = {"user": "user", "system": "system", "developer": "system"}

_Events = Iterator[tuple[str, Json]]


def _read(_path: str, body: Json) -> WireRequest:
    said = body.get("input")
    messages = (Message("user", said),) if isinstance(said, str) else tuple(map(_message, items(said)))
    follows = str(body.get("previous_response_id") or "")
    return WireRequest(str(body.get("model", "")), body.get("stream") is True, messages, follows)


def _message(item: Json) -> Message:
    """Items other than messages and tool outputs (calls, reasoning) are from the model."""
    if str(item.get("type", "")).endswith("_call_output"):
        output = item.get("output")
        text = output if isinstance(output, str) else text_of(output)
        return Message("tool", tool_results=(ToolResult(str(item.get("call_id", "")), text),))
    return Message(_ROLES.get(str(item.get("role")), "assistant"), text_of(item.get("content")))


def _stream(exchange: WireExchange) -> Iterator[bytes]:
    for number, (kind, fields) in zip(count(), _events(exchange), strict=False):
        yield sse({"type": f"response.{kind}", **fields, "sequence_number": number}, f"response.{kind}")


def _events(exchange: WireExchange) -> _Events:
    begun = _response(exchange, "in_progress", [])
    yield "created", {"response": begun}
    yield "in_progress", {"response": begun}
    for index, (item, filling) in enumerate(_items(exchange)):
        yield "output_item.added", {"output_index": index, "item": _announce_item(item)}
        for kind, fields in filling:
            yield kind, {"item_id": item["id"], "output_index": index, **fields}
        yield "output_item.done", {"output_index": index, "item": item}
    done = _finished_response(exchange)
    yield done["status"], {"response": done}


def _items(exchange: WireExchange) -> Iterator[tuple[Json, _Events]]:
    """Each complete output item, with its events in a stream."""
    reply = exchange.reply
    if reply.thinking:
        yield _reasoning(exchange), _reasoning_events(reply.thinking, reply.thinking_pieces)
    if reply.text:
        yield _words(exchange), _words_events(reply.text, reply.text_pieces)
    for ordinal, call in enumerate(exchange.calls):
        arguments = json_text(call.arguments)
        item = _function_call(exchange, ordinal, call, arguments)
        yield item, _arguments_events(call.name, arguments, reply.argument_pieces(arguments))


def _announce_item(item: Json) -> Json:
    """*item* as a stream begins it: in progress and empty."""
    emptied: Json = {"arguments": "", "content": [], "summary": []}
    return {**item, **{key: emptied[key] for key in emptied if key in item}, "status": "in_progress"}


def _reasoning(exchange: WireExchange) -> Json:
    return {
        "id": exchange.make_id("rs_", length=50),
        "type": "reasoning",
        "summary": [{"type": "summary_text", "text": exchange.reply.thinking}],
        "encrypted_content": exchange.make_id("gAAAA", length=64),
        "status": "completed",
    }


def _reasoning_events(text: str, pieces: tuple[str, ...]) -> _Events:
    at = {"summary_index": 0}
    yield "reasoning_summary_part.added", {**at, "part": {"type": "summary_text", "text": ""}}
    for piece in pieces:
        yield "reasoning_summary_text.delta", {**at, "delta": piece}
    yield "reasoning_summary_text.done", {**at, "text": text}
    yield "reasoning_summary_part.done", {**at, "part": {"type": "summary_text", "text": text}}


def _words(exchange: WireExchange) -> Json:
    return {
        "id": exchange.make_id("msg_", length=50),
        "type": "message",
        "role": "assistant",
        "status": "completed",
        "content": [_part(exchange.reply.text)],
    }


def _words_events(text: str, pieces: tuple[str, ...]) -> _Events:
    at: Json = {"content_index": 0}
    yield "content_part.added", {**at, "part": _part("")}
    for piece in pieces:
        yield "output_text.delta", {**at, "delta": piece, "logprobs": []}
    yield "output_text.done", {**at, "text": text, "logprobs": []}
    yield "content_part.done", {**at, "part": _part(text)}


def _part(text: str) -> Json:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


def _function_call(exchange: WireExchange, ordinal: int, call: ToolCall, arguments: str) -> Json:
    return {
        "id": exchange.make_id("fc_", ordinal, length=50),
        "type": "function_call",
        "call_id": call.id,
        "name": call.name,
        "arguments": arguments,
        "status": "completed",
    }


def _arguments_events(name: str, arguments: str, pieces: tuple[str, ...]) -> _Events:
    for piece in pieces:
        yield "function_call_arguments.delta", {"delta": piece}
    yield "function_call_arguments.done", {"name": name, "arguments": arguments}


def _finished_response(exchange: WireExchange) -> Json:
    stop = exchange.stop
    output = [item for item, _ in _items(exchange)]
    if stop in ("end", "tool"):
        response = _response(exchange, "completed", output)
    else:
        response = _response(exchange, "incomplete", output)
        response["incomplete_details"] = {"reason": _INCOMPLETE.get(stop, stop)}
    return {**response, "usage": _usage(exchange)}


def _response(exchange: WireExchange, status: str, output: list[Json]) -> Json:
    body = exchange.request.body
    return {
        "id": exchange.id,
        "object": "response",
        "created_at": exchange.created_at,
        "status": status,
        "error": None,
        "incomplete_details": None,
        "instructions": body.get("instructions"),
        "max_output_tokens": body.get("max_output_tokens"),
        "metadata": body.get("metadata") or {},
        "model": exchange.request.model,
        "output": output,
        "parallel_tool_calls": body.get("parallel_tool_calls", True),
        "previous_response_id": body.get("previous_response_id"),
        "store": body.get("store", True),
        "temperature": body.get("temperature", 1.0),
        "text": {"format": {"type": "text"}},
        "tool_choice": body.get("tool_choice", "auto"),
        "tools": body.get("tools") or [],
        "top_p": body.get("top_p", 1.0),
        "truncation": "disabled",
        "usage": None,
    }


def _usage(exchange: WireExchange) -> Json:
    return {
        "input_tokens": exchange.input_tokens,
        "input_tokens_details": {"cache_write_tokens": 0, "cached_tokens": 0},
        "output_tokens": exchange.output_tokens,
        "output_tokens_details": {"reasoning_tokens": exchange.thinking_tokens},
        "total_tokens": exchange.input_tokens + exchange.output_tokens,
    }


RESPONSES: Final = Wire(
    name="openai_responses",
    service=OPENAI,
    path=re.compile(r"/responses$"),
    id_prefix="resp_",
    call_prefix="call_",
    stream_type=EVENT_STREAM,
    read=_read,
    whole=_finished_response,
    stream=_stream,
)

"""An empty answer in each wire format, complete or as a stream."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final, NamedTuple, TypeAlias
from urllib.parse import urlsplit

import msgspec

from reenact.providers.meaning import Provider
from reenact.providers.registry import request_fields

Json: TypeAlias = dict[str, Any]

_ID: Final = "reenact_empty"
_EVENTS: Final = "text/event-stream; charset=utf-8"
_JSON: Final = "application/json"


class EmptyAnswer(NamedTuple):
    """A body and its ``content-type``."""

    content_type: str
    body: bytes


def empty_answer(provider: Provider, url: str, body: Json) -> EmptyAnswer | None:
    """An empty answer to the request *body*; ``None`` for framings other than plain HTTP."""
    fields = request_fields(provider, urlsplit(url).path, body)
    if url.partition("?")[0].endswith("/invoke-with-response-stream"):
        return None
    return _MAKERS[provider](fields["model"] or "", url, body, fields["stream"])


def _openai_chat(model: str, _url: str, body: Json, is_streamed: bool) -> EmptyAnswer:
    usage = {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}
    head = {"id": f"chatcmpl-{_ID}", "created": 0, "model": model}
    if not is_streamed:
        message = {"role": "assistant", "content": "", "refusal": None}
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": "stop"}
        return _whole({**head, "object": "chat.completion", "choices": [choice], "usage": usage})
    head["object"] = "chat.completion.chunk"
    deltas: tuple[tuple[Json, str | None], ...] = (({"role": "assistant", "content": ""}, None), ({}, "stop"))
    chunks: list[Json] = [
        {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}
        for delta, finish in deltas
    ]
    options = body.get("stream_options")
    if isinstance(options, dict) and options.get("include_usage"):
        chunks.append({**head, "choices": [], "usage": usage})
    events = _events((None, chunk) for chunk in chunks)
    return EmptyAnswer(_EVENTS, events.body + b"data: [DONE]\n\n")


def _openai_responses(model: str, _url: str, body: Json, is_streamed: bool) -> EmptyAnswer:
    part = {"type": "output_text", "text": "", "annotations": [], "logprobs": []}
    item = {"id": f"msg_{_ID}", "type": "message", "role": "assistant"}
    done = {**item, "status": "completed", "content": [part]}
    details = {"input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}
    response: Json = {
        "id": f"resp_{_ID}",
        "object": "response",
        "created_at": 0,
        "status": "completed",
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "metadata": {},
        "model": model,
        "output": [done],
        "parallel_tool_calls": True,
        "temperature": 1.0,
        "tool_choice": "auto",
        "tools": body.get("tools") or [],
        "top_p": 1.0,
        "usage": {"input_tokens": 0, "output_tokens": 0, "total_tokens": 0, **details},
    }
    if not is_streamed:
        return _whole(response)
    begun = {**response, "status": "in_progress", "output": [], "usage": None}
    at = {"item_id": item["id"], "output_index": 0, "content_index": 0}
    events: list[tuple[str, Json]] = [
        ("created", {"response": begun}),
        ("output_item.added", {"output_index": 0, "item": {**item, "status": "in_progress", "content": []}}),
        ("content_part.added", {**at, "part": part}),
        ("output_text.done", {**at, "text": "", "logprobs": []}),
        ("content_part.done", {**at, "part": part}),
        ("output_item.done", {"output_index": 0, "item": done}),
        ("completed", {"response": response}),
    ]
    return _events(
        (f"response.{kind}", {"type": f"response.{kind}", **fields, "sequence_number": number})
        for number, (kind, fields) in enumerate(events)
    )


def _anthropic(model: str, _url: str, _body: Json, is_streamed: bool) -> EmptyAnswer:
    block = {"type": "text", "text": ""}
    message: Json = {
        "id": f"msg_{_ID}",
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": [block],
        "stop_reason": "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": 0, "output_tokens": 0},
    }
    if not is_streamed:
        return _whole(message)
    end = {"stop_reason": "end_turn", "stop_sequence": None}
    events: list[tuple[str, Json]] = [
        ("message_start", {"message": {**message, "content": [], "stop_reason": None}}),
        ("content_block_start", {"index": 0, "content_block": block}),
        ("content_block_stop", {"index": 0}),
        ("message_delta", {"delta": end, "usage": {"output_tokens": 0}}),
        ("message_stop", {}),
    ]
    return _events((kind, {"type": kind, **fields}) for kind, fields in events)


def _gemini(model: str, url: str, _body: Json, is_streamed: bool) -> EmptyAnswer:
    content = {"role": "model", "parts": [{"text": ""}]}
    answer = {
        "candidates": [{"index": 0, "content": content, "finishReason": "STOP"}],
        "usageMetadata": {"promptTokenCount": 0, "candidatesTokenCount": 0, "totalTokenCount": 0},
        "modelVersion": model,
        "responseId": _ID,
    }
    if not is_streamed:
        return _whole(answer)
    if "alt=sse" in urlsplit(url).query:
        return _events([(None, answer)])
    return EmptyAnswer(_JSON, msgspec.json.encode([answer]))


def _ollama(model: str, _url: str, body: Json, is_streamed: bool) -> EmptyAnswer:
    message: Json = (
        {"response": ""} if "prompt" in body else {"message": {"role": "assistant", "content": ""}}
    )
    line = {
        "model": model,
        "created_at": "1970-01-01T00:00:00Z",
        **message,
        "done": True,
        "done_reason": "stop",
    }
    counts = {"total_duration": 0, "prompt_eval_count": 0, "eval_count": 0}
    text = msgspec.json.encode(line | counts)
    return EmptyAnswer("application/x-ndjson", text + b"\n") if is_streamed else EmptyAnswer(_JSON, text)


_MAKERS: Final[dict[Provider, Callable[[str, str, Json, bool], EmptyAnswer]]] = {
    "anthropic": _anthropic,
    "gemini": _gemini,
    "ollama": _ollama,
    "openai_chat": _openai_chat,
    "openai_responses": _openai_responses,
}


def _whole(answer: Json) -> EmptyAnswer:
    return EmptyAnswer(_JSON, msgspec.json.encode(answer))


def _events(events: Iterable[tuple[str | None, Json]]) -> EmptyAnswer:
    """Server-sent events, with names if they have any."""
    texts = (
        (f"event: {name}\n".encode() if name else b"") + b"data: " + msgspec.json.encode(data) + b"\n\n"
        for name, data in events
    )
    return EmptyAnswer(_EVENTS, b"".join(texts))

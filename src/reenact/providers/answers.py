"""Writing an answer of a model in each wire format, complete or as a stream."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple, TypeAlias
from urllib.parse import urlsplit

import msgspec

from reenact.providers.meaning import ModelReply, Provider, Refusal, Text, TokenUsage, ToolCallPart
from reenact.providers.registry import request_fields
from reenact.providers.streams import write_stream

Json: TypeAlias = dict[str, Any]

_ID: Final = "reenact_empty"
_EVENTS: Final = "text/event-stream; charset=utf-8"
_JSON: Final = "application/json"
_LINES: Final = "application/x-ndjson"
_LENGTHS: Final = frozenset({"length", "max_tokens", "MAX_TOKENS", "max_output_tokens", "incomplete"})
"""How the formats name the end of an answer that became too long."""


class WrittenAnswer(NamedTuple):
    """A body and its ``content-type``."""

    content_type: str
    body: bytes


def write_answer(provider: Provider, url: str, body: Json, reply: ModelReply) -> WrittenAnswer | None:
    """*reply* as the answer to the request *body*; ``None`` for framings other than plain HTTP.

    Thinking is left out: providers take it back only with their own signature.
    """
    fields = request_fields(provider, urlsplit(url).path, body)
    if url.partition("?")[0].endswith("/invoke-with-response-stream"):
        return None
    answer = _WRITERS[provider](fields["model"] or "", body, _Answer.of(reply))
    if not fields["stream"]:
        return WrittenAnswer(_JSON, _encode(answer))
    if provider == "openai_chat" and not _wants_usage(body):
        del answer["usage"]
    is_array = provider == "gemini" and "alt=sse" not in urlsplit(url).query
    stream = write_stream(provider, answer, b"[" if is_array else b"")
    return WrittenAnswer(_JSON if is_array else _LINES if provider == "ollama" else _EVENTS, stream)


def empty_answer(provider: Provider, url: str, body: Json) -> WrittenAnswer | None:
    """An empty answer to the request *body*; ``None`` for framings other than plain HTTP."""
    return write_answer(provider, url, body, ModelReply(parts=(Text(text=""),)))


class _Answer(NamedTuple):
    id: str
    text: str | None
    """``None`` if it only calls tools."""
    calls: list[ToolCallPart]
    is_cut: bool
    """Whether it ended because it became too long."""
    usage: TokenUsage

    @classmethod
    def of(cls, reply: ModelReply) -> _Answer:
        texts = [part.text for part in reply.parts if isinstance(part, Text | Refusal)]
        calls = [
            part if part.id else msgspec.structs.replace(part, id=f"call_{reply.id or _ID}_{number}")
            for number, part in enumerate((part for part in reply.parts if isinstance(part, ToolCallPart)), 1)
        ]
        text = "".join(texts) if texts or not calls else None
        is_cut = reply.stop_reason in _LENGTHS
        return cls(reply.id or _ID, text, calls, is_cut, reply.usage or TokenUsage())

    @property
    def counts(self) -> tuple[int, int]:
        """The tokens that went in and came out."""
        return self.usage.input_tokens or 0, self.usage.output_tokens or 0


def _wants_usage(body: Json) -> bool:
    options = body.get("stream_options")
    return isinstance(options, dict) and bool(options.get("include_usage"))


def _arguments_text(call: ToolCallPart) -> str:
    if call.arguments_text is not None:
        return call.arguments_text
    return call.arguments if isinstance(call.arguments, str) else _encode(call.arguments).decode()


def _arguments_object(call: ToolCallPart) -> object:
    return call.arguments if isinstance(call.arguments, dict) else {}


def _openai_chat(model: str, _body: Json, answer: _Answer) -> Json:
    message: Json = {"role": "assistant", "content": answer.text, "refusal": None}
    if answer.calls:
        message["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": _arguments_text(call)},
            }
            for call in answer.calls
        ]
    finish = "length" if answer.is_cut else "tool_calls" if answer.calls else "stop"
    asked, answered = answer.counts
    return {
        "id": f"chatcmpl-{answer.id}",
        "object": "chat.completion",
        "created": 0,
        "model": model,
        "choices": [{"index": 0, "message": message, "logprobs": None, "finish_reason": finish}],
        "usage": {
            "prompt_tokens": asked,
            "completion_tokens": answered,
            "total_tokens": asked + answered,
        },
    }


def _openai_responses(model: str, body: Json, answer: _Answer) -> Json:
    output: list[Json] = []
    if answer.text is not None:
        part = {"type": "output_text", "text": answer.text, "annotations": [], "logprobs": []}
        said = {"id": f"msg_{answer.id}", "type": "message", "role": "assistant"}
        output.append(said | {"status": "completed", "content": [part]})
    offered = body.get("tools")
    free_text = {
        tool.get("name")
        for tool in (offered if isinstance(offered, list) else ())
        if isinstance(tool, dict) and tool.get("type") == "custom"
    }
    for number, call in enumerate(answer.calls, 1):
        known = {"call_id": call.id, "name": call.name, "status": "completed"}
        if call.name in free_text:
            item = {"id": f"ctc_{answer.id}_{number}", "type": "custom_tool_call"}
            output.append(item | known | {"input": _arguments_text(call)})
        else:
            item = {"id": f"fc_{answer.id}_{number}", "type": "function_call"}
            output.append(item | known | {"arguments": _arguments_text(call)})
    asked, answered = answer.counts
    cached, thought = answer.usage.cached_input_tokens or 0, answer.usage.reasoning_tokens or 0
    return {
        "id": f"resp_{answer.id}",
        "object": "response",
        "created_at": 0,
        "status": "incomplete" if answer.is_cut else "completed",
        "error": None,
        "incomplete_details": {"reason": "max_output_tokens"} if answer.is_cut else None,
        "instructions": None,
        "metadata": {},
        "model": model,
        "output": output,
        "parallel_tool_calls": True,
        "temperature": 1.0,
        "tool_choice": "auto",
        "tools": offered or [],
        "top_p": 1.0,
        "usage": {
            "input_tokens": asked,
            "output_tokens": answered,
            "total_tokens": asked + answered,
            "input_tokens_details": {"cached_tokens": cached},
            "output_tokens_details": {"reasoning_tokens": thought},
        },
    }


def _anthropic(model: str, _body: Json, answer: _Answer) -> Json:
    blocks: list[Json] = [] if answer.text is None else [{"type": "text", "text": answer.text}]
    blocks += [
        {"type": "tool_use", "id": call.id, "name": call.name, "input": _arguments_object(call)}
        for call in answer.calls
    ]
    asked, answered = answer.counts
    return {
        "id": f"msg_{answer.id}",
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": blocks,
        "stop_reason": "max_tokens" if answer.is_cut else "tool_use" if answer.calls else "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": asked, "output_tokens": answered},
    }


def _gemini(model: str, _body: Json, answer: _Answer) -> Json:
    parts: list[Json] = [] if answer.text is None else [{"text": answer.text}]
    parts += [
        {"functionCall": {"id": call.id, "name": call.name, "args": _arguments_object(call)}}
        for call in answer.calls
    ]
    asked, answered = answer.counts
    return {
        "candidates": [
            {
                "index": 0,
                "content": {"role": "model", "parts": parts},
                "finishReason": "MAX_TOKENS" if answer.is_cut else "STOP",
            }
        ],
        "usageMetadata": {
            "promptTokenCount": asked,
            "candidatesTokenCount": answered,
            "totalTokenCount": asked + answered,
        },
        "modelVersion": model,
        "responseId": answer.id,
    }


def _ollama(model: str, body: Json, answer: _Answer) -> Json:
    text = answer.text or ""
    said: Json = (
        {"response": text} if "prompt" in body else {"message": {"role": "assistant", "content": text}}
    )
    if answer.calls and "message" in said:
        said["message"]["tool_calls"] = [
            {"id": call.id, "function": {"name": call.name, "arguments": _arguments_object(call)}}
            for call in answer.calls
        ]
    asked, answered = answer.counts
    return {
        "model": model,
        "created_at": "1970-01-01T00:00:00Z",
        **said,
        "done": True,
        "done_reason": "length" if answer.is_cut else "stop",
        "total_duration": 0,
        "prompt_eval_count": asked,
        "eval_count": answered,
    }


_WRITERS: Final[dict[Provider, Callable[[str, Json, _Answer], Json]]] = {
    "anthropic": _anthropic,
    "gemini": _gemini,
    "ollama": _ollama,
    "openai_chat": _openai_chat,
    "openai_responses": _openai_responses,
}
_encode: Final = msgspec.json.Encoder().encode

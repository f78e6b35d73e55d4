"""OpenAI Chat Completions, and other servers with this format."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final
from urllib.parse import unquote

from reenact.canonical import JsonValue
from reenact.providers.meaning import (
    Conversation,
    ModelMessage,
    ModelReply,
    Part,
    Provider,
    Refusal,
    Text,
    Thinking,
    Tool,
    ToolCallPart,
    ToolResultPart,
)
from reenact.providers.reading import (
    Growth,
    has_messages,
    integer_of,
    media,
    object_of,
    objects_of,
    other,
    path_segments,
    read_params,
    read_usage,
    split_system,
    text_of,
    tool_call,
)

NAME: Final[Provider] = "openai_chat"

_CONVERSATION: Final = frozenset({"model", "messages", "tools", "functions", "stream", "stream_options"})
_RENAMED: Final = {"max_completion_tokens": "max_tokens"}
_USAGE: Final = {
    "input_tokens": "prompt_tokens",
    "output_tokens": "completion_tokens",
    "cached_input_tokens": "prompt_tokens_details.cached_tokens",
    "cache_write_tokens": "prompt_tokens_details.cache_write_tokens",
    "reasoning_tokens": "completion_tokens_details.reasoning_tokens",
}
_PLAIN: Final = {"role", "content"}
_SENT_ONCE: Final = frozenset({"role", "id", "type", "name", "index", "format"})
"""Texts of a delta that are not pieces: some servers repeat them in every chunk."""


def recogniser(url_path: str) -> Callable[[dict[str, JsonValue]], bool] | None:
    return has_messages if path_segments(url_path)[-2:] == ("chat", "completions") else None


def model_in(url_path: str) -> str | None:
    """Azure names the deployment in the path."""
    segments = path_segments(url_path)
    return unquote(segments[-3]) if segments[-4:-3] == ("deployments",) else None


def streams(url_path: str, body: dict[str, JsonValue]) -> bool:  # noqa: ARG001 - all wires have this shape
    return body.get("stream") is True


def read_conversation(body: dict[str, JsonValue]) -> Conversation:
    system, messages = split_system(map(_read_message, objects_of(body, "messages")))
    tools = objects_of(body, "tools") or objects_of(body, "functions")
    return Conversation(
        system=system,
        messages=messages,
        tools=tuple(map(read_tool, tools)),
        params=read_params(body, without=_CONVERSATION, renamed=_RENAMED),
    )


def read_tool(tool: dict[str, JsonValue]) -> Tool:
    """A tool of Chat Completions or Ollama, also as the older flat ``functions``."""
    spec = object_of(tool, "function") or object_of(tool, "custom") or tool
    return Tool(
        name=text_of(spec, "name") or text_of(spec, "type") or "",
        description=text_of(spec, "description"),
        schema=spec.get("parameters"),
    )


def _read_message(message: dict[str, JsonValue]) -> ModelMessage:
    role = text_of(message, "role") or ""
    if role in ("tool", "function"):
        result = ToolResultPart(
            call_id=text_of(message, "tool_call_id"),
            name=text_of(message, "name"),
            content=message.get("content"),
        )
        return ModelMessage(role=role, parts=(result,))
    return ModelMessage(role=role, parts=tuple(_read_parts(message)))


def _read_parts(message: dict[str, JsonValue]) -> Iterator[Part]:
    text = text_of(message, "content")
    if text and not any(map(message.get, message.keys() - _PLAIN)):  # most messages have nothing else
        yield Text(text=text)
        return
    yield from _read_thinking(message)
    if text:
        yield Text(text=text)
    yield from map(_read_part, objects_of(message, "content"))
    refusal = text_of(message, "refusal")
    if refusal:
        yield Refusal(text=refusal)
    for call in objects_of(message, "tool_calls"):
        custom = object_of(call, "custom")
        if custom:
            text = text_of(custom, "input") or ""
            name = text_of(custom, "name") or ""
            yield ToolCallPart(id=text_of(call, "id"), name=name, arguments=None, arguments_text=text)
        else:
            function = object_of(call, "function")
            yield tool_call(text_of(function, "name"), function.get("arguments"), call_id=text_of(call, "id"))
    older = object_of(message, "function_call")
    if older:
        yield tool_call(text_of(older, "name"), older.get("arguments"), call_id=None)


def _read_thinking(message: dict[str, JsonValue]) -> Iterator[Thinking]:
    """Extensions: ``reasoning_details`` of OpenRouter, plain texts of DeepSeek and vLLM."""
    details = objects_of(message, "reasoning_details")
    for detail in details:
        yield Thinking(
            text=text_of(detail, "text") or text_of(detail, "summary") or "",
            id=text_of(detail, "id"),
            signature=text_of(detail, "signature"),
            sealed=text_of(detail, "data"),
        )
    text = text_of(message, "reasoning_content") or text_of(message, "reasoning")
    if text and not details:
        yield Thinking(text=text)


def _read_part(part: dict[str, JsonValue]) -> Part:
    match part.get("type"):
        case "text":
            return Text(text=text_of(part, "text") or "")
        case "refusal":
            return Refusal(text=text_of(part, "refusal") or "")
        case "image_url":
            return media(url=text_of(object_of(part, "image_url"), "url") or text_of(part, "image_url"))
        case "input_audio":
            audio = object_of(part, "input_audio")
            return media(f"audio/{text_of(audio, 'format') or 'unknown'}", data=text_of(audio, "data"))
        case "file":
            file = object_of(part, "file")
            return media(url=text_of(file, "file_data"), file_id=text_of(file, "file_id"))
    return other(part)


def read_body(body: dict[str, JsonValue]) -> ModelReply:
    choice = next(iter(objects_of(body, "choices")), {})
    return ModelReply(
        id=text_of(body, "id"),
        model=text_of(body, "model"),
        stop_reason=text_of(choice, "finish_reason"),
        usage=read_usage(object_of(body, "usage"), _USAGE),
        parts=tuple(_read_parts(object_of(choice, "message"))),
    )


def fold(chunks: list[dict[str, JsonValue]]) -> dict[str, JsonValue]:
    """Build the completion from its chunks."""
    body: dict[str, JsonValue] = {}
    choices: dict[int, dict[str, JsonValue]] = {}
    growth = Growth()
    for chunk in chunks:
        body |= {key: value for key, value in chunk.items() if key != "choices" and value is not None}
        for choice in objects_of(chunk, "choices"):
            index = integer_of(choice, "index") or 0
            _merge_choice(choices.setdefault(index, {"index": index, "message": {}}), choice, growth)
    growth.write_texts()
    if body or choices:
        body["object"] = "chat.completion"
        body["choices"] = [_without_call_indexes(choices[index]) for index in sorted(choices)]
    return body


def _merge_choice(into: dict[str, JsonValue], choice: dict[str, JsonValue], growth: Growth) -> None:
    _merge(_object_in(into, "message"), object_of(choice, "delta"), growth)
    for key, value in choice.items():
        if key == "logprobs" and isinstance(value, dict):
            _merge(_object_in(into, key), value, growth)
        elif key not in ("delta", "message", "index") and (value is not None or key not in into):
            into[key] = value


def _merge(into: dict[str, JsonValue], delta: dict[str, JsonValue], growth: Growth) -> None:
    for key, value in delta.items():
        if isinstance(value, dict):
            _merge(_object_in(into, key), value, growth)
        elif isinstance(value, list):
            items = into.get(key)
            if not isinstance(items, list):
                into[key] = items = []
            _merge_items(items, value, growth)
        elif isinstance(value, str) and key not in _SENT_ONCE:
            growth.add(into, key, value)
        elif value or key not in into:
            into[key] = value


def _object_in(into: dict[str, JsonValue], key: str) -> dict[str, JsonValue]:
    """The member *key*, replaced by an empty object if it is not an object."""
    known = into.get(key)
    if not isinstance(known, dict):
        into[key] = known = {}
    return known


def _merge_items(into: list[JsonValue], items: list[JsonValue], growth: Growth) -> None:
    """Items with an index or a function come in pieces, all others whole."""
    for item in items:
        if isinstance(item, dict) and ("index" in item or "function" in item):
            known = _find_begun_item(into, item)
            if known is None:
                into.append(known := {})
            _merge(known, item, growth)
        else:
            into.append(item)


def _find_begun_item(items: list[JsonValue], piece: dict[str, JsonValue]) -> dict[str, JsonValue] | None:
    """The item that *piece* continues; another id is another call, because some servers send no index."""
    for item in reversed(items):
        if isinstance(item, dict) and item.get("index") == piece.get("index"):
            is_other = bool(piece.get("id")) and item.get("id") not in (None, "", piece["id"])
            return None if is_other else item
    return None


def _without_call_indexes(choice: dict[str, JsonValue]) -> dict[str, JsonValue]:
    for call in objects_of(choice["message"], "tool_calls"):
        call.pop("index", None)
    return choice

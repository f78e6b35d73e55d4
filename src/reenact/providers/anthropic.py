"""Anthropic Messages, also as Vertex AI and Bedrock carry it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final
from urllib.parse import unquote

from reenact.canonical import JsonValue
from reenact.providers.meaning import (
    Conversation,
    ModelMessage,
    ModelReply,
    Part,
    Provider,
    Text,
    Thinking,
    Tool,
    ToolResultPart,
)
from reenact.providers.reading import (
    Growth,
    has_messages,
    integer_of,
    join_system,
    last_segment,
    list_of,
    loads,
    media,
    object_of,
    objects_of,
    other,
    path_segments,
    read_params,
    read_usage,
    text_of,
    tool_call,
)

NAME: Final[Provider] = "anthropic"

_CONVERSATION: Final = frozenset({"model", "messages", "system", "tools", "stream"})
_RENAMED: Final = {"stop_sequences": "stop"}
_USAGE: Final = {
    "input_tokens": "input_tokens",
    "output_tokens": "output_tokens",
    "cached_input_tokens": "cache_read_input_tokens",
    "cache_write_tokens": "cache_creation_input_tokens",
    "reasoning_tokens": "output_tokens_details.thinking_tokens",
}
_GROWING: Final = {"text_delta": "text", "thinking_delta": "thinking", "compaction_delta": "content"}
_INPUT_TEXT: Final = "\u2061input"
"""An internal key for the pieces of a tool's input until it is complete."""


def recogniser(url_path: str) -> Callable[[dict[str, JsonValue]], bool] | None:
    if last_segment(url_path) == "messages":
        return _has_bounded_messages
    if model_in(url_path) is not None:
        return lambda body: "anthropic_version" in body and _has_bounded_messages(body)
    return None


def _has_bounded_messages(body: dict[str, JsonValue]) -> bool:
    return has_messages(body) and "max_tokens" in body


def model_in(url_path: str) -> str | None:
    """Vertex AI and Bedrock name the model in the path."""
    match path_segments(url_path)[-3:]:
        case [*_, "model", model, "invoke" | "invoke-with-response-stream"]:
            return unquote(model)
        case [*_, last] if last.endswith((":rawPredict", ":streamRawPredict")):
            return unquote(last.rpartition(":")[0])
    return None


def streams(url_path: str, body: dict[str, JsonValue]) -> bool:
    return body.get("stream") is True or last_segment(url_path) == "invoke-with-response-stream"


def read_conversation(body: dict[str, JsonValue]) -> Conversation:
    system = text_of(body, "system") or join_system(
        text_of(block, "text") for block in objects_of(body, "system")
    )
    messages = (
        ModelMessage(role=text_of(message, "role") or "", parts=tuple(_read_content(message)))
        for message in objects_of(body, "messages")
    )
    return Conversation(
        system=system,
        messages=tuple(messages),
        tools=tuple(_read_tool(tool) for tool in objects_of(body, "tools")),
        params=read_params(body, without=_CONVERSATION, renamed=_RENAMED),
    )


def _read_tool(tool: dict[str, JsonValue]) -> Tool:
    name = text_of(tool, "name") or text_of(tool, "type") or ""
    return Tool(name=name, description=text_of(tool, "description"), schema=tool.get("input_schema"))


def _read_content(message: dict[str, JsonValue]) -> Iterable[Part]:
    text = text_of(message, "content")
    if text is not None:
        return [Text(text=text)]
    return map(_read_block, objects_of(message, "content"))


def _read_block(block: dict[str, JsonValue]) -> Part:
    match block.get("type"):
        case "text":
            return Text(text=text_of(block, "text") or "")
        case "thinking":
            return Thinking(text=text_of(block, "thinking") or "", signature=text_of(block, "signature"))
        case "redacted_thinking":
            return Thinking(text="", sealed=text_of(block, "data"))
        case "tool_use":
            return tool_call(text_of(block, "name"), block.get("input"), call_id=text_of(block, "id"))
        case "tool_result":
            return ToolResultPart(
                call_id=text_of(block, "tool_use_id"),
                content=block.get("content"),
                is_error=block.get("is_error") is True,
            )
        case "image" | "document":
            source = object_of(block, "source")
            return media(
                text_of(source, "media_type"),
                url=text_of(source, "url"),
                data=text_of(source, "data"),
                file_id=text_of(source, "file_id"),
            )
    return other(block)


def read_body(body: dict[str, JsonValue]) -> ModelReply:
    return ModelReply(
        id=text_of(body, "id"),
        model=text_of(body, "model"),
        stop_reason=text_of(body, "stop_reason"),
        usage=read_usage(object_of(body, "usage"), _USAGE),
        parts=tuple(_read_content(body)),
    )


def fold(events: list[dict[str, JsonValue]]) -> dict[str, JsonValue]:
    """Build the message from its events."""
    message: dict[str, JsonValue] = {}
    blocks: dict[int, dict[str, JsonValue]] = {}
    growth = Growth()
    for event in events:
        index = integer_of(event, "index") or 0
        match event.get("type"):
            case "message_start":
                message = dict(object_of(event, "message"))
            case "content_block_start":
                blocks[index] = dict(object_of(event, "content_block"))
            case "content_block_delta" if index in blocks:
                _grow_block(blocks[index], object_of(event, "delta"), growth)
            case "message_delta":
                message |= object_of(event, "delta")
                message["usage"] = object_of(message, "usage") | _drop_nulls(object_of(event, "usage"))
    growth.write_texts()
    if message or blocks:
        message["content"] = [_with_input(blocks[index]) for index in sorted(blocks)]
    return message


def _grow_block(block: dict[str, JsonValue], delta: dict[str, JsonValue], growth: Growth) -> None:
    match delta.get("type"):
        case "input_json_delta":
            growth.add(block, _INPUT_TEXT, delta.get("partial_json"))
        case "signature_delta":
            block["signature"] = delta.get("signature")
        case "citations_delta":
            block["citations"] = [*list_of(block, "citations"), delta.get("citation")]
        case str() as kind if kind in _GROWING:
            growth.add(block, _GROWING[kind], delta.get(_GROWING[kind]))


def _with_input(block: dict[str, JsonValue]) -> dict[str, JsonValue]:
    """*block* with its tool input decoded; input that is not complete JSON stays text."""
    text = block.pop(_INPUT_TEXT, "")
    if isinstance(text, str) and text:
        value = loads(text)
        block["input"] = text if value is None else value
    return block


def _drop_nulls(usage: dict[str, JsonValue]) -> dict[str, JsonValue]:
    """Later counts replace earlier ones, but a null does not."""
    return {name: count for name, count in usage.items() if count is not None}

"""OpenAI Responses."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

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
    first_present,
    integer_of,
    join_system,
    list_of,
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

NAME: Final[Provider] = "openai_responses"

_CONVERSATION: Final = frozenset({"model", "input", "instructions", "tools", "stream", "stream_options"})
_RENAMED: Final = {"max_output_tokens": "max_tokens"}
_USAGE: Final = {
    "input_tokens": "input_tokens",
    "output_tokens": "output_tokens",
    "cached_input_tokens": "input_tokens_details.cached_tokens",
    "cache_write_tokens": "input_tokens_details.cache_write_tokens",
    "reasoning_tokens": "output_tokens_details.reasoning_tokens",
}
_WITHOUT_INPUT: Final = ("previous_response_id", "prompt", "conversation")
"""With any of these a request may leave out its input."""
_ENDED: Final = frozenset({"completed", "failed", "incomplete", "cancelled"})


def recogniser(url_path: str) -> Callable[[dict[str, JsonValue]], bool] | None:
    return _asks if path_segments(url_path)[-1:] == ("responses",) else None


def _asks(body: dict[str, JsonValue]) -> bool:
    has_input = isinstance(body.get("input"), str | list)
    return (has_input and "model" in body) or any(body.get(key) for key in _WITHOUT_INPUT)


def model_in(url_path: str) -> str | None:  # noqa: ARG001 - all wires have this shape
    return None


def streams(url_path: str, body: dict[str, JsonValue]) -> bool:  # noqa: ARG001
    return body.get("stream") is True


def read_conversation(body: dict[str, JsonValue]) -> Conversation:
    text = text_of(body, "input")
    items = objects_of(body, "input")
    if text is not None:
        items = [{"role": "user", "content": text}]
    system, messages = split_system(map(_read_item, items))
    return Conversation(
        system=join_system([text_of(body, "instructions"), system]),
        messages=messages,
        tools=tuple(_read_tool(tool) for tool in objects_of(body, "tools")),
        params=read_params(body, without=_CONVERSATION, renamed=_RENAMED),
    )


def _read_tool(tool: dict[str, JsonValue]) -> Tool:
    name = text_of(tool, "name") or text_of(tool, "type") or ""
    return Tool(name=name, description=text_of(tool, "description"), schema=tool.get("parameters"))


def _read_item(item: dict[str, JsonValue]) -> ModelMessage:
    parts = tuple(_read_parts(item))
    role = "tool" if any(isinstance(part, ToolResultPart) for part in parts) else "assistant"
    return ModelMessage(role=text_of(item, "role") or role, parts=parts)


def _read_parts(item: dict[str, JsonValue]) -> Iterator[Part]:
    """The parts of one item: a message has several, everything else is one."""
    kind, call_id = text_of(item, "type") or "message", text_of(item, "call_id")
    if kind == "message":
        text = text_of(item, "content")
        if text is not None:
            yield Text(text=text)
        yield from map(_read_content, objects_of(item, "content"))
    elif kind == "reasoning":
        yield _read_reasoning(item)
    elif kind.endswith("_call_output") and call_id:
        yield ToolResultPart(call_id=call_id, content=item.get("output"))
    elif kind.endswith("_call") and call_id:
        # Only what the client has to run carries a call id.
        yield _read_call(kind, call_id, item)
    else:
        yield other(item)


def _read_content(part: dict[str, JsonValue]) -> Part:
    match part.get("type"):
        case "input_text" | "output_text" | "text":
            return Text(text=text_of(part, "text") or "")
        case "refusal":
            return Refusal(text=text_of(part, "refusal") or "")
        case "input_image":
            return media(url=text_of(part, "image_url"), file_id=text_of(part, "file_id"))
        case "input_file":
            url = text_of(part, "file_url") or text_of(part, "file_data")
            return media(url=url, file_id=text_of(part, "file_id"))
    return other(part)


def _read_reasoning(item: dict[str, JsonValue]) -> Thinking:
    texts = [text_of(part, "text") or "" for key in ("summary", "content") for part in objects_of(item, key)]
    return Thinking(
        text="\n\n".join(texts), id=text_of(item, "id"), sealed=text_of(item, "encrypted_content")
    )


def _read_call(kind: str, call_id: str, item: dict[str, JsonValue]) -> ToolCallPart:
    name = text_of(item, "name") or kind.removesuffix("_call")
    if kind == "custom_tool_call":
        text = text_of(item, "input") or ""
        return ToolCallPart(id=call_id, name=name, arguments=None, arguments_text=text)
    return tool_call(
        name, first_present(item, "arguments", "action", "actions", "operation"), call_id=call_id
    )


def read_body(body: dict[str, JsonValue]) -> ModelReply:
    return ModelReply(
        id=text_of(body, "id"),
        model=text_of(body, "model"),
        stop_reason=_stop_reason(body),
        usage=read_usage(object_of(body, "usage"), _USAGE),
        parts=tuple(part for item in objects_of(body, "output") for part in _read_parts(item)),
    )


def _stop_reason(body: dict[str, JsonValue]) -> str | None:
    """The reason for an incomplete response, else its status once that is final."""
    status = text_of(body, "status")
    return text_of(object_of(body, "incomplete_details"), "reason") or (status if status in _ENDED else None)


def fold(events: list[dict[str, JsonValue]]) -> dict[str, JsonValue]:
    """Build the response from its events; a final event has all of it."""
    body: dict[str, JsonValue] = {}
    output = _Output()
    for event in events:
        body |= object_of(event, "response")
        output.add(event)
    items = output.finish()
    # Some servers leave the output out of the final event.
    if items and not objects_of(body, "output"):
        body["output"] = list(items)
    return body


_PARTS_ADDED: Final = {
    "response.content_part.added": ("content", "content_index"),
    "response.reasoning_summary_part.added": ("summary", "summary_index"),
}
_PARTS_GROWING: Final = {
    "response.output_text.delta": ("content", "content_index", "output_text", "text"),
    "response.refusal.delta": ("content", "content_index", "refusal", "refusal"),
    "response.reasoning_text.delta": ("content", "content_index", "reasoning_text", "text"),
    "response.reasoning_summary_text.delta": ("summary", "summary_index", "summary_text", "text"),
}
"""List of the item, member of the event that counts in it, type of the part, member that grows."""
_ITEMS_GROWING: Final = {
    "response.function_call_arguments.delta": "arguments",
    "response.custom_tool_call_input.delta": "input",
    "response.mcp_call_arguments.delta": "arguments",
    "response.code_interpreter_call_code.delta": "code",
}


class _Output:
    """The output items, while they grow."""

    def __init__(self) -> None:
        self._items: dict[int, dict[str, JsonValue]] = {}
        self._parts: dict[tuple[int, str, int], dict[str, JsonValue]] = {}
        self._growth = Growth()

    def add(self, event: dict[str, JsonValue]) -> None:
        kind, index = text_of(event, "type") or "", integer_of(event, "output_index")
        if index is None:
            return
        if kind in ("response.output_item.added", "response.output_item.done"):
            self._items[index] = dict(object_of(event, "item"))
        elif kind in _PARTS_ADDED:
            into, counter = _PARTS_ADDED[kind]
            self._part(index, into, integer_of(event, counter) or 0, object_of(event, "part"))
        elif kind in _PARTS_GROWING:
            into, counter, part_type, member = _PARTS_GROWING[kind]
            part = self._part(index, into, integer_of(event, counter) or 0, {"type": part_type, member: ""})
            self._growth.add(part, member, event.get("delta"))
        elif kind in _ITEMS_GROWING and index in self._items:
            self._growth.add(self._items[index], _ITEMS_GROWING[kind], event.get("delta"))

    def _part(self, index: int, into: str, place: int, fresh: dict[str, JsonValue]) -> dict[str, JsonValue]:
        if (index, into, place) not in self._parts:
            part = self._parts[index, into, place] = dict(fresh)
            item = self._items.setdefault(index, {})
            item[into] = [*list_of(item, into), part]
        return self._parts[index, into, place]

    def finish(self) -> list[dict[str, JsonValue]]:
        self._growth.write_texts()
        return [self._items[index] for index in sorted(self._items)]

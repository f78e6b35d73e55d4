"""Ollama's own API: ``/api/chat`` and ``/api/generate``."""

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
    Text,
    Thinking,
    ToolResultPart,
)
from reenact.providers.openai_chat import read_tool
from reenact.providers.reading import (
    Growth,
    has_messages,
    join_system,
    list_of,
    media,
    object_of,
    objects_of,
    path_segments,
    read_params,
    read_usage,
    split_system,
    text_of,
    tool_call,
)

NAME: Final[Provider] = "ollama"

_CONVERSATION: Final = frozenset(
    {"model", "messages", "prompt", "system", "images", "tools", "options", "stream"}
)
_RENAMED: Final = {"num_predict": "max_tokens"}
_USAGE: Final = {"input_tokens": "prompt_eval_count", "output_tokens": "eval_count"}
_TEXTS: Final = ("content", "response", "thinking")


def recogniser(url_path: str) -> Callable[[dict[str, JsonValue]], bool] | None:
    match path_segments(url_path)[-2:]:
        case ["api", "chat"]:
            return lambda body: isinstance(body.get("model"), str) and has_messages(body)
        case ["api", "generate"]:
            return lambda body: isinstance(body.get("model"), str) and isinstance(body.get("prompt"), str)
    return None


def model_in(url_path: str) -> str | None:  # noqa: ARG001 - all wires have this shape
    return None


def streams(url_path: str, body: dict[str, JsonValue]) -> bool:  # noqa: ARG001
    """Streaming is the default here."""
    return body.get("stream") is not False


def read_conversation(body: dict[str, JsonValue]) -> Conversation:
    prompt = text_of(body, "prompt")
    sent = objects_of(body, "messages")
    if prompt is not None:
        sent = [{"role": "user", "content": prompt, "images": list_of(body, "images")}]
    system, messages = split_system(map(_read_message, sent))
    return Conversation(
        system=join_system([text_of(body, "system"), system]),
        messages=messages,
        tools=tuple(map(read_tool, objects_of(body, "tools"))),
        params=read_params({**body, **object_of(body, "options")}, without=_CONVERSATION, renamed=_RENAMED),
    )


def _read_message(message: dict[str, JsonValue]) -> ModelMessage:
    role = text_of(message, "role") or ""
    if role != "tool":
        return ModelMessage(role=role, parts=tuple(_read_parts(message)))
    result = ToolResultPart(
        call_id=text_of(message, "tool_call_id"),
        name=text_of(message, "tool_name") or text_of(message, "name"),
        content=message.get("content"),
    )
    return ModelMessage(role=role, parts=(result,))


def _read_parts(message: dict[str, JsonValue]) -> Iterator[Part]:
    thinking = text_of(message, "thinking")
    if thinking:
        yield Thinking(text=thinking)
    text = text_of(message, "content")
    if text:
        yield Text(text=text)
    for image in list_of(message, "images"):
        if isinstance(image, str):
            yield media("image/*", data=image)
    for call in objects_of(message, "tool_calls"):
        function = object_of(call, "function")
        yield tool_call(text_of(function, "name"), function.get("arguments"), call_id=text_of(call, "id"))


def read_body(body: dict[str, JsonValue]) -> ModelReply:
    """``/api/generate`` has the members of the message at the top, and calls its content *response*."""
    message = object_of(body, "message") or {
        "content": body.get("response"),
        "thinking": body.get("thinking"),
    }
    done = "done" if body.get("done") is True else None
    has_counts = any(name in body for name in _USAGE.values())
    return ModelReply(
        model=text_of(body, "model"),
        stop_reason=text_of(body, "done_reason") or done,
        usage=read_usage(_counts(body), _USAGE) if has_counts else None,
        parts=tuple(_read_parts(message)),
    )


def _counts(body: dict[str, JsonValue]) -> dict[str, JsonValue]:
    return {name: value for name, value in body.items() if name.endswith(("_count", "_duration"))}


def fold(lines: list[dict[str, JsonValue]]) -> dict[str, JsonValue]:
    """Build the response from its lines."""
    body: dict[str, JsonValue] = {}
    message: dict[str, JsonValue] = {}
    growth = Growth()
    for line in lines:
        body |= {key: value for key, value in line.items() if key not in ("message", *_TEXTS)}
        _add(body, {key: line[key] for key in _TEXTS if key in line}, growth)
        _add(message, object_of(line, "message"), growth)
    growth.write_texts()
    return body | {"message": message} if message else body


def _add(into: dict[str, JsonValue], piece: dict[str, JsonValue], growth: Growth) -> None:
    for key, value in piece.items():
        if key in _TEXTS:
            growth.add(into, key, value)
        elif isinstance(value, list):
            into[key] = [*list_of(into, key), *value]
        else:
            into[key] = value

"""Model calls in the neutral form, for captures without bytes of a provider: events and imports.

A request is ``{"messages": [...], "after": "c3"}``: what is new since the call *after*, each message with
``role`` and ``content``, and where it has them ``tool_calls``, ``tool_call_id`` and ``is_error``. An answer
is ``{"text", "reasoning", "tool_calls"}``; a tool call has ``id``, ``name`` and ``arguments``.
"""

from __future__ import annotations

from typing import cast

from reenact.canonical import JsonValue, digest
from reenact.errors import FormatError
from reenact.providers.meaning import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    Part,
    Provider,
    Text,
    Thinking,
    ToolCallPart,
    ToolResultPart,
)


def read_neutral_request(request: object) -> ModelRequest | None:
    """Read a request in the neutral form; ``None`` for any other."""
    if not isinstance(request, dict) or "url" in request or not isinstance(request.get("messages"), list):
        return None
    given = [message for message in request["messages"] if isinstance(message, dict)]
    system = "\n".join(_text(message.get("content")) for message in given if message.get("role") == "system")
    messages = tuple(
        ModelMessage(role=str(message.get("role") or "user"), parts=tuple(_parts(message)))
        for message in given
        if message.get("role") != "system"
    )
    try:
        input_hash = digest(request)
    except FormatError:
        input_hash = digest(None)
    return ModelRequest(
        provider=cast(Provider, "unknown"),
        model=None,
        stream=False,
        input_hash=input_hash,
        messages=messages,
        system=system or None,
    )


def read_neutral_response(provider: str, response: object) -> ModelResponse | None:
    """Read an answer in the neutral form; ``None`` for any other."""
    if not isinstance(response, dict) or not response.keys() <= {"text", "reasoning", "tool_calls"}:
        return None
    parts: list[Part] = []
    if isinstance(reasoning := response.get("reasoning"), str):
        parts.append(Thinking(text=reasoning))
    if isinstance(text := response.get("text"), str):
        parts.append(Text(text=text))
    parts += _calls(response.get("tool_calls"))
    return ModelResponse(provider=cast(Provider, provider), status=200, complete=True, parts=tuple(parts))


def _parts(message: dict[str, JsonValue]) -> list[Part]:
    content = message.get("content")
    call_id = message.get("tool_call_id")
    if message.get("role") == "tool" or call_id is not None:
        named = message.get("name")
        is_error = message.get("is_error") is True
        return [
            ToolResultPart(
                content=content,
                call_id=None if call_id is None else str(call_id),
                name=named if isinstance(named, str) else None,
                is_error=is_error,
            )
        ]
    found: list[Part] = [Text(text=text)] if (text := _text(content)) else []
    return found + _calls(message.get("tool_calls"))


def _calls(calls: object) -> list[Part]:
    return [
        ToolCallPart(
            name=str(call.get("name") or "unknown"),
            arguments=call.get("arguments"),
            id=call["id"] if isinstance(call.get("id"), str) else None,
        )
        for call in (calls if isinstance(calls, list) else ())
        if isinstance(call, dict)
    ]


def _text(content: object) -> str:
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(filter(None, map(_text, content)))
    if isinstance(content, dict) and isinstance(content.get("text"), str):
        return str(content["text"])
    return ""

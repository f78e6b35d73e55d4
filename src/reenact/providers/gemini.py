"""Gemini ``generateContent``, of AI Studio and of Vertex AI."""

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
    Text,
    Thinking,
    Tool,
    ToolResultPart,
)
from reenact.providers.reading import (
    Growth,
    first_present,
    integer_of,
    join_system,
    last_segment,
    media,
    object_of,
    objects_of,
    other,
    read_params,
    read_usage,
    text_of,
    tool_call,
)

NAME: Final[Provider] = "gemini"

_VERBS: Final = frozenset({"generateContent", "streamGenerateContent"})
_CONVERSATION: Final = frozenset(
    {
        "model",
        "contents",
        "systemInstruction",
        "system_instruction",
        "tools",
        "generationConfig",
        "generation_config",
    }
)
_RENAMED: Final = {
    "maxOutputTokens": "max_tokens",
    "max_output_tokens": "max_tokens",
    "topP": "top_p",
    "topK": "top_k",
    "stopSequences": "stop",
    "stop_sequences": "stop",
}
_USAGE: Final = {
    "input_tokens": "promptTokenCount",
    "output_tokens": "candidatesTokenCount",
    "cached_input_tokens": "cachedContentTokenCount",
    "reasoning_tokens": "thoughtsTokenCount",
}


def recogniser(url_path: str) -> Callable[[dict[str, JsonValue]], bool] | None:
    _, verb = _model_and_verb(url_path)
    return (lambda body: isinstance(body.get("contents"), list)) if verb in _VERBS else None


def model_in(url_path: str) -> str | None:
    model, _ = _model_and_verb(url_path)
    return unquote(model) or None


def _model_and_verb(url_path: str) -> tuple[str, str]:
    model, _, verb = last_segment(url_path).rpartition(":")
    return model, verb


def streams(url_path: str, body: dict[str, JsonValue]) -> bool:  # noqa: ARG001 - all wires have this shape
    return _model_and_verb(url_path)[1] == "streamGenerateContent"


def read_conversation(body: dict[str, JsonValue]) -> Conversation:
    """Members may be in camelCase or snake_case: protobuf accepts both."""
    system = first_present(body, "systemInstruction", "system_instruction")
    texts = [system] if isinstance(system, str) else [text_of(part, "text") for part in _parts(system)]
    config = object_of(body, "generationConfig") or object_of(body, "generation_config")
    return Conversation(
        system=join_system(texts),
        messages=tuple(map(_read_content, objects_of(body, "contents"))),
        tools=tuple(tool for group in objects_of(body, "tools") for tool in _read_tools(group)),
        params=read_params({**body, **config}, without=_CONVERSATION, renamed=_RENAMED),
    )


def _parts(content: JsonValue) -> list[dict[str, JsonValue]]:
    return objects_of(content, "parts")


def _read_content(content: dict[str, JsonValue]) -> ModelMessage:
    role = text_of(content, "role") or "user"
    return ModelMessage(
        role="assistant" if role == "model" else role, parts=tuple(map(_read_part, _parts(content)))
    )


def _read_tools(group: dict[str, JsonValue]) -> Iterator[Tool]:
    for kind, value in group.items():
        if kind in ("functionDeclarations", "function_declarations"):
            yield from map(_read_function, objects_of(group, kind))
        elif value is not None:
            yield Tool(name=kind)


def _read_function(function: dict[str, JsonValue]) -> Tool:
    return Tool(
        name=text_of(function, "name") or "",
        description=text_of(function, "description"),
        schema=first_present(function, "parameters", "parametersJsonSchema", "parameters_json_schema"),
    )


def _read_part(part: dict[str, JsonValue]) -> Part:
    signature = first_present(part, "thoughtSignature", "thought_signature")
    signature = signature if isinstance(signature, str) else None
    text = text_of(part, "text")
    if text is not None:
        if part.get("thought") is True:
            return Thinking(text=text, signature=signature)
        return Text(text=text, signature=signature)
    call = first_present(part, "functionCall", "function_call")
    if isinstance(call, dict):
        return tool_call(
            text_of(call, "name"), call.get("args") or {}, call_id=text_of(call, "id"), signature=signature
        )
    return _read_result_or_media(part)


def _read_result_or_media(part: dict[str, JsonValue]) -> Part:
    result = first_present(part, "functionResponse", "function_response")
    if isinstance(result, dict):
        response = result.get("response")
        return ToolResultPart(
            call_id=text_of(result, "id"),
            name=text_of(result, "name"),
            content=response,
            is_error=isinstance(response, dict) and response.get("error") is not None,
        )
    blob = first_present(part, "inlineData", "inline_data", "fileData", "file_data")
    if isinstance(blob, dict):
        media_type, url = (
            first_present(blob, "mimeType", "mime_type"),
            first_present(blob, "fileUri", "file_uri"),
        )
        return media(_text(media_type), url=_text(url), data=text_of(blob, "data"))
    return other({"type": next(iter(part), "empty"), **part})


def _text(value: JsonValue) -> str | None:
    return value if isinstance(value, str) else None


def read_body(body: dict[str, JsonValue]) -> ModelReply:
    candidate = next(iter(objects_of(body, "candidates")), {})
    blocked = text_of(object_of(body, "promptFeedback"), "blockReason")
    return ModelReply(
        id=text_of(body, "responseId"),
        model=text_of(body, "modelVersion"),
        stop_reason=text_of(candidate, "finishReason") or blocked,
        usage=read_usage(object_of(body, "usageMetadata"), _USAGE),
        parts=tuple(map(_read_part, _parts(object_of(candidate, "content")))),
    )


def fold(chunks: list[dict[str, JsonValue]]) -> dict[str, JsonValue]:
    """Build the response from its chunks: parts are appended, everything else is replaced."""
    body: dict[str, JsonValue] = {}
    candidates: dict[int, dict[str, JsonValue]] = {}
    growth = Growth()
    for chunk in chunks:
        body |= chunk
        for candidate in objects_of(chunk, "candidates"):
            into = candidates.setdefault(integer_of(candidate, "index") or 0, {})
            _add_content(into, object_of(candidate, "content"), growth)
            into |= {key: value for key, value in candidate.items() if key != "content"}
    growth.write_texts()
    if candidates:
        body["candidates"] = [candidates[index] for index in sorted(candidates)]
    return body


def _add_content(into: dict[str, JsonValue], content: dict[str, JsonValue], growth: Growth) -> None:
    if not content:
        return
    known = into.setdefault("content", {"parts": []})
    assert isinstance(known, dict)  # created here
    parts = known["parts"]
    assert isinstance(parts, list)
    known |= {key: value for key, value in content.items() if key != "parts"}
    for part in _parts(content):
        last = parts[-1] if parts else None
        if isinstance(last, dict) and _continues(last, part):
            growth.add(last, "text", part["text"])
            last |= {key: value for key, value in part.items() if key != "text"}
        else:
            parts.append(dict(part))


def _continues(last: dict[str, JsonValue], part: dict[str, JsonValue]) -> bool:
    """Whether a part continues the last one: not after a signature, or between thinking and text."""
    both_text = "text" in last and isinstance(part.get("text"), str)
    return both_text and last.get("thought") == part.get("thought") and "thoughtSignature" not in last

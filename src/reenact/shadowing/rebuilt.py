"""Requests of a run that was imported from a transcript, rebuilt in a wire format so that they can be asked.

A transcript tells what was said and which tools were called. It does not tell the instructions, the schemas
of the tools and the settings: a tool is described by the arguments that it was called with in the whole run.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Final, NamedTuple, TypeAlias

from reenact.providers import Provider
from reenact.store.reader import CaptureReader
from reenact.trace.to_conversations import ChatMessage, reported_questions

_Object: TypeAlias = dict[str, object]
_Schemas: TypeAlias = dict[str, _Object]
"""By the name of a tool."""

_MAX_TOKENS: Final = 8192
"""Anthropic's messages need a limit."""
_TYPES: Final = {
    bool: "boolean",
    int: "integer",
    float: "number",
    str: "string",
    list: "array",
    dict: "object",
}


class RebuiltRequest(NamedTuple):
    """A model request that was never sent in this form, but has what the model was given."""

    provider: Provider
    url: str
    headers: dict[str, str]
    """With the name of the header that takes the key."""
    body: _Object


def rebuild_requests(reader: CaptureReader) -> dict[str, RebuiltRequest]:
    """By call id: the model requests of a transcript whose conversation is known as a whole."""
    questions = reported_questions(reader)
    tools = _describe_tools(question.answer for question in questions.values())
    found: dict[str, RebuiltRequest] = {}
    for call_id, question in questions.items():
        rebuild = _rebuild_anthropic if question.provider == "anthropic" else _rebuild_openai
        found[call_id] = rebuild(question.model, question.messages, tools)
    return found


def _describe_tools(answers: Iterable[ChatMessage]) -> _Schemas:
    """By name: a schema of the arguments that a tool was ever called with."""
    found: _Schemas = {}
    for answer in answers:
        for call in answer.get("tool_calls", ()):
            function = call["function"]
            properties = found.setdefault(function["name"], {})
            for name, value in _arguments(function["arguments"]).items():
                kind = _TYPES.get(type(value))
                properties[name] = {} if kind is None else {"type": kind}
    return {name: {"type": "object", "properties": found[name]} for name in sorted(found)}


def _arguments(value: object) -> _Object:
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            return {}
    return value if isinstance(value, dict) else {}


def _rebuild_openai(model: str, messages: list[ChatMessage], tools: _Schemas) -> RebuiltRequest:
    said = []
    for message in messages:
        kept = {key: value for key, value in message.items() if key not in ("reasoning_content", "name")}
        if "tool_calls" in kept:
            kept["tool_calls"] = [
                call | {"function": call["function"] | {"arguments": _as_json(call["function"]["arguments"])}}
                for call in kept["tool_calls"]
            ]
        said.append(kept)
    body: _Object = {"model": model, "messages": said}
    if tools:
        body["tools"] = [
            {"type": "function", "function": {"name": name, "parameters": schema}}
            for name, schema in tools.items()
        ]
    url = "https://api.openai.com/v1/chat/completions"
    return RebuiltRequest("openai_chat", url, {"authorization": ""}, body)


def _as_json(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _rebuild_anthropic(model: str, messages: list[ChatMessage], tools: _Schemas) -> RebuiltRequest:
    said: list[tuple[str, list[_Object]]] = []  # roles take turns
    system = [message["content"] for message in messages if message["role"] == "system"]
    for message in messages:
        if message["role"] == "system":
            continue
        role = "assistant" if message["role"] == "assistant" else "user"
        blocks = _blocks_of(message)
        if said and said[-1][0] == role:
            said[-1][1].extend(blocks)
        elif blocks:
            said.append((role, blocks))
    turns = [{"role": role, "content": blocks} for role, blocks in said]
    body: _Object = {"model": model, "max_tokens": _MAX_TOKENS, "messages": turns}
    if system:
        body["system"] = "\n".join(system)
    if tools:
        body["tools"] = [{"name": name, "input_schema": schema} for name, schema in tools.items()]
    return RebuiltRequest("anthropic", "https://api.anthropic.com/v1/messages", {"x-api-key": ""}, body)


def _blocks_of(message: ChatMessage) -> list[_Object]:
    if message["role"] == "tool":
        result: _Object = {"type": "tool_result", "tool_use_id": str(message.get("tool_call_id", ""))}
        return [result | {"content": message["content"]}]
    blocks: list[_Object] = [{"type": "text", "text": message["content"]}] if message["content"] else []
    for call in message.get("tool_calls", ()):
        function = call["function"]
        used = {"type": "tool_use", "id": call["id"], "name": function["name"]}
        blocks.append(used | {"input": _arguments(function["arguments"])})
    return blocks

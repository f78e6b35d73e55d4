"""The capsule ``agent.action.replay.v1``, which validates one action of an agent.

Also converts an exchange with a model to an action.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import orjson

from reenact.canonical import JsonValue, encode, is_double
from reenact.check.actions.capsule import Capsule, Findings, Manifest
from reenact.check.actions.schema import (
    AnySchema,
    ArraySchema,
    BooleanSchema,
    Field,
    NumberSchema,
    ObjectSchema,
    Problem,
    StringSchema,
    compile_schema,
    item_path,
    member_path,
)
from reenact.errors import UsageError
from reenact.formats.action import ACTION_ID
from reenact.providers import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    Part,
    Refusal,
    Text,
    TokenUsage,
    ToolCallPart,
    ToolResultPart,
)

_MODEL: Final = ObjectSchema(
    "The model that answered",
    (
        Field("provider", "Who serves the model, such as openai, anthropic or local", StringSchema("A name")),
        Field("name", "The model's name", StringSchema("A name")),
        Field("version", "The exact version, where it is known", StringSchema("A version"), required=False),
    ),
)

PARAMS: Final = ObjectSchema(
    "How the answer was to be generated",
    (
        Field("temperature", "Sampling temperature", NumberSchema("0 to 2", 0, 2), required=False),
        Field("top_p", "Share of probability sampled from", NumberSchema("0 to 1", 0, 1), required=False),
        Field("max_tokens", "Limit of tokens in the answer", NumberSchema("0 or more", 0), required=False),
        Field("seed", "Seed of the sampling", NumberSchema("Any number"), required=False),
        Field(
            "stop",
            "Texts at which the answer ends",
            ArraySchema("Stop texts", StringSchema("A text")),
            required=False,
        ),
    ),
    extras=True,
)

_MESSAGE: Final = ObjectSchema(
    "One message of the conversation",
    (
        Field("role", "Who speaks", StringSchema("A role, such as user")),
        Field("content", "What is said", StringSchema("A text")),
    ),
    extras=True,
)

_INPUT: Final = ObjectSchema(
    "What the model saw",
    (
        Field("messages", "The conversation so far", ArraySchema("In order", _MESSAGE, minimum=1)),
        Field(
            "tools",
            "The tools the model could call",
            ArraySchema("Tools", AnySchema("A tool as it was described")),
            required=False,
        ),
    ),
    extras=True,
)

_USAGE: Final = ObjectSchema(
    "Tokens used, as reported",
    (
        Field("input_tokens", "Tokens read", NumberSchema("0 or more", 0), required=False),
        Field("output_tokens", "Tokens written", NumberSchema("0 or more", 0), required=False),
    ),
    extras=True,
)

_OUTPUT: Final = ObjectSchema(
    "What the model answered",
    (
        Field("content", "The answer's text", StringSchema("A text"), required=False),
        Field(
            "tool_calls",
            "The tools it wants called",
            ArraySchema("Tool calls", AnySchema("A call: a name and arguments")),
            required=False,
        ),
        Field("finish_reason", "Why the answer ended", StringSchema("A reason"), required=False),
        Field("usage", "What the answer cost", _USAGE, required=False),
    ),
    extras=True,
)

_ACTION: Final = ObjectSchema(
    "One action of an agent: a model's answer to a conversation",
    (
        Field("agent_id", "Which agent acted", StringSchema("An id that stays the same")),
        Field("action_id", "Which of its actions this is", StringSchema("An id used once")),
        Field(
            "occurred_at_unix_ms",
            "When, in milliseconds since 1970",
            StringSchema("A decimal number as text, so that every reader hashes the same"),
        ),
        Field("model", "The model that answered", _MODEL),
        Field("params", "How the answer was to be generated", PARAMS, required=False),
        Field("input", "What the model saw", _INPUT),
        Field("output", "What the model answered", _OUTPUT),
        Field("context", "Whatever helps to find the action again", AnySchema("Anything"), required=False),
    ),
)

_COUNT: Final = NumberSchema("0 or more", 0)

_SUMMARY: Final = ObjectSchema(
    "The action in numbers",
    (
        Field("message_count", "How many messages the model saw", _COUNT),
        Field("tool_calls_emitted", "How many tool calls it answered with", _COUNT),
        Field("had_content", "Whether it answered with text", BooleanSchema("True or false")),
        Field("had_tool_calls", "Whether it answered with tool calls", BooleanSchema("True or false")),
        Field("finish_reason", "Why the answer ended", StringSchema("A reason"), required=False),
    ),
)

_DATA: Final = ObjectSchema(
    "What a list of actions shows of each",
    (
        Field("agent_id", "Which agent acted", StringSchema("As in the action")),
        Field("action_id", "Which of its actions this is", StringSchema("As in the action")),
        Field("occurred_at_unix_ms", "When", StringSchema("As in the action")),
        Field(
            "model_full_name", "The model in one word", StringSchema("provider/name, and /version if known")
        ),
        Field("summary", "The action in numbers", _SUMMARY),
    ),
)


def _judge(value: JsonValue) -> Findings:
    """The rules that the schema cannot express; *value* may be anything."""
    action = _object(value)
    output = _object(action.get("output"))
    content = _text(output.get("content"))
    tool_call_count = _length(output.get("tool_calls"))
    data = {
        "agent_id": _text(action.get("agent_id")) or None,
        "action_id": _text(action.get("action_id")) or None,
        "occurred_at_unix_ms": _text(action.get("occurred_at_unix_ms")) or None,
        "model_full_name": _full_name(_object(action.get("model"))),
        "summary": {
            "message_count": _length(_object(action.get("input")).get("messages")),
            "tool_calls_emitted": tool_call_count,
            "had_content": bool(content),
            "had_tool_calls": tool_call_count > 0,
            "finish_reason": _text(output.get("finish_reason")),
        },
    }
    empty = [key for key in _NEVER_EMPTY if action.get(key) == ""]
    problems = [Problem("empty_field", key, "must not be empty") for key in empty]
    if not content and not tool_call_count:
        problems.append(Problem("empty_output", "output", _NO_ANSWER))
    problems += [Problem("invalid_type", path, _NO_DOUBLE) for path in sorted(_inexact_integers(value))]
    return Findings(problems, data)


_NO_DOUBLE: Final = "is an integer that no double holds, so records of it would not agree; write it as text"


def _inexact_integers(value: Any) -> Iterator[str]:
    """The paths of integers that RFC 8785 cannot represent; a fast check first shows if there are any."""
    try:
        orjson.dumps(value, None, orjson.OPT_STRICT_INTEGER)
    except TypeError:
        yield from _search_inexact(value, "")


def _search_inexact(value: JsonValue, path: str) -> Iterator[str]:
    if type(value) is dict:
        for key, child in value.items():
            yield from _search_inexact(child, member_path(path, key))
    elif type(value) is list:
        for index, child in enumerate(value):
            yield from _search_inexact(child, item_path(path, index))
    elif type(value) is int and not is_double(value):
        yield path


_NO_ANSWER: Final = "has neither content nor tool_calls; an action needs one of them"
_NEVER_EMPTY: Final = ("agent_id", "action_id", "occurred_at_unix_ms")


def _full_name(model: dict[str, JsonValue]) -> str | None:
    provider, name = _text(model.get("provider")), _text(model.get("name"))
    if provider is None or name is None:
        return None
    version = _text(model.get("version"))
    return f"{provider}/{name}" if version is None else f"{provider}/{name}/{version}"


def _object(value: JsonValue) -> dict[str, JsonValue]:
    return value if type(value) is dict else {}


def _text(value: JsonValue) -> str | None:
    return value if type(value) is str else None


def _length(value: JsonValue) -> int:
    return len(value) if type(value) is list else 0


ACTION: Final = Capsule(
    Manifest(
        id=ACTION_ID,
        name="Agent action",
        version="1.0",
        profile="agent-replay",
        summary="One action of an agent: which model saw what, and what it answered.",
        logic_version="1",
        tags=("agent", "replay", "audit"),
        input_schema=_ACTION,
        output_schema=_DATA,
    ),
    _judge,
)


_VENDORS: Final = {"openai_chat": "openai", "openai_responses": "openai"}
_ACCEPTS_PARAM: Final = {field.name: compile_schema(field.schema) for field in PARAMS.fields}


def action_from_exchange(
    request: ModelRequest,
    response: ModelResponse,
    *,
    agent_id: str,
    action_id: str,
    occurred_at_unix_ms: int,
    provider: str | None = None,
    context: object = None,
) -> dict[str, object] | None:
    """The action of *request* and *response*, which the capsule accepts; ``None`` if there is none.

    There is none without messages, or without text and tool calls in the answer. *provider* is who serves
    the model, if that is not the vendor of the wire format.
    """
    if not agent_id or not action_id:
        raise UsageError(f"{'action' if agent_id else 'agent'}_id is empty; an action needs both ids")
    messages, output = _messages(request), _output(response)
    if not messages or not (output.get("content") or output.get("tool_calls")):
        return None
    action = {
        "agent_id": agent_id,
        "action_id": action_id,
        "occurred_at_unix_ms": str(occurred_at_unix_ms),
        "model": _model(provider or _VENDORS.get(request.provider, request.provider), request, response),
        "params": _params(request.params),
        "input": {"messages": messages, **_tools(request)},
        "output": output,
        "context": context,
    }
    action = {key: value for key, value in action.items() if value not in (None, {})}
    return _with_text_integers(action) if any(_inexact_integers(action)) else action


def _with_text_integers(value: object) -> Any:
    """*value* with every integer that a double cannot represent as text."""
    if type(value) is dict:
        return {key: _with_text_integers(child) for key, child in value.items()}
    if type(value) is list:
        return [_with_text_integers(child) for child in value]
    return str(value) if type(value) is int and not is_double(value) else value


def _model(provider: str, request: ModelRequest, response: ModelResponse) -> dict[str, Any]:
    """The requested model; if the answer has a longer name, the rest of it is the version."""
    name = request.model or response.model or "unknown"
    model = {"provider": provider, "name": name}
    version = (response.model or "").removeprefix(f"{name}-")
    return model if version in ("", response.model) else {**model, "version": version}


def _params(sent: dict[str, Any]) -> dict[str, JsonValue]:
    """The parameters as sent; those that the format does not allow are under ``sent``."""
    given = {name: value for name, value in sent.items() if value is not None}
    if isinstance(given.get("stop"), str):
        given["stop"] = [given["stop"]]
    beyond = {
        name: given.pop(name) for name, ok in _ACCEPTS_PARAM.items() if name in given and not ok(given[name])
    }
    return {**given, "sent": beyond} if beyond else given


def _tools(request: ModelRequest) -> dict[str, JsonValue]:
    return {"tools": [tool.to_json() for tool in request.tools]} if request.tools else {}


def _messages(request: ModelRequest) -> list[dict[str, Any]]:
    system = [{"role": "system", "content": request.system}] if request.system else []
    return system + [_message(message) for message in request.messages]


def _message(message: ModelMessage) -> dict[str, JsonValue]:
    content = "\n".join(filter(None, map(_words, message.parts)))
    return {"role": message.role, "content": content, **_all_parts(message.parts, Text)}


def _output(response: ModelResponse) -> dict[str, object]:
    refusal = "".join(part.text for part in response.parts if isinstance(part, Refusal))
    output = {
        "content": response.text or refusal,
        "tool_calls": [_call(call) for call in response.tool_calls],
        "finish_reason": response.stop_reason,
        "usage": _usage(response.usage),
        **_all_parts(response.parts, Text, ToolCallPart),
    }
    return {key: value for key, value in output.items() if value}


def _all_parts(parts: tuple[Part, ...], *plain: type[Part]) -> dict[str, JsonValue]:
    """All parts unchanged, unless all of them are *plain*."""
    if all(isinstance(part, plain) for part in parts):
        return {}
    return {"parts": [part.to_json() for part in parts]}


def _words(part: Part) -> str:
    if isinstance(part, Text | Refusal):
        return part.text
    if isinstance(part, ToolResultPart):
        return part.content if isinstance(part.content, str) else encode(part.content).decode()
    return ""


def _call(call: ToolCallPart) -> dict[str, JsonValue]:
    arguments = call.arguments if call.arguments_text is None else call.arguments_text
    identity = {} if call.id is None else {"id": call.id}
    return {**identity, "name": call.name, "arguments": arguments}


def _usage(usage: TokenUsage | None) -> dict[str, JsonValue]:
    counts = (
        {} if usage is None else {"input_tokens": usage.input_tokens, "output_tokens": usage.output_tokens}
    )
    return {name: count for name, count in counts.items() if count is not None and count >= 0}

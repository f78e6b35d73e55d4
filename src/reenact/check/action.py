"""The capsule ``agent.action.replay.v1``: is this one well-formed action of an agent?"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import orjson

from reenact.canonical import is_double
from reenact.check.capsule import Capsule, Findings, Manifest
from reenact.check.problem import Problem, item_path, member_path
from reenact.check.schema_language import (
    AnySchema,
    ArraySchema,
    BooleanSchema,
    Field,
    NumberSchema,
    ObjectSchema,
    StringSchema,
)
from reenact.formats.action import ACTION_ID

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


def _judge(value: Any) -> Findings:
    """The rules that types cannot state; *value* may be anything."""
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
    problems += [Problem("invalid_type", path, _NO_DOUBLE) for path in _inexact_integers(value)]
    return Findings(problems, data)


_NO_DOUBLE: Final = "is an integer that no double holds, so records of it would not agree; write it as text"


def _inexact_integers(value: Any) -> Iterator[str]:
    """Where integers stand that RFC 8785 has no text for; mostly none, which one look at C speed shows."""
    try:
        orjson.dumps(value, None, orjson.OPT_STRICT_INTEGER)
    except TypeError:
        yield from _search_inexact(value, "")


def _search_inexact(value: Any, path: str) -> Iterator[str]:
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


def _full_name(model: dict[str, Any]) -> str | None:
    provider, name = _text(model.get("provider")), _text(model.get("name"))
    if provider is None or name is None:
        return None
    version = _text(model.get("version"))
    return f"{provider}/{name}" if version is None else f"{provider}/{name}/{version}"


def _object(value: Any) -> dict[str, Any]:
    return value if type(value) is dict else {}


def _text(value: Any) -> str | None:
    return value if type(value) is str else None


def _length(value: Any) -> int:
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

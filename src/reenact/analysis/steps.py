"""Steps as they are listed and shown: facts from the index, and texts from the events."""

from __future__ import annotations

from contextlib import suppress
from typing import Any, Final

import msgspec

from reenact.analysis.brief import brief, brief_arguments, brief_failure, plural, size, unquote
from reenact.analysis.index import State, Tokens
from reenact.canonical import JsonValue
from reenact.errors import ReenactError
from reenact.formats.event import RunEvent
from reenact.formats.workspace import WORKSPACE
from reenact.providers import Text, ToolCallPart, read_text_parts
from reenact.trace.sources.source import RunSource


class RunStep(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, kw_only=True):
    """A step on one line; its texts are short and not escaped."""

    seq: int
    """The number of its first event, which names it in links and on the command line."""
    place: int
    """Among the steps of the run, from 0."""
    outcome_seq: int | None = None
    """``None`` if there is no outcome, or it was not read yet; *seq* if both are one event."""
    kind: str
    """``tool``, ``model``, ``state``, ``message``, or the source of a value: ``clock``, ``rng``, …"""
    name: str
    derived: bool = False
    """Whether it was derived from the model traffic, not observed."""
    lane: str
    """The logical task that made the call; ``0.1`` is the first task that ``0`` started."""
    depth: int = 0
    """The number of calls around it."""
    parent_seq: int | None = None
    """The call directly around it."""
    column: int = 0
    """The lowest column that no overlapping call has."""
    beside: tuple[int, ...] = ()
    """The columns in which other calls were open when this step began."""
    at_ms: int | float
    """Since the first event."""
    took_ms: int | float | None = None
    state: State
    tokens: Tokens | None = None
    cost: float | None = None
    """In the currency of the price table; ``None`` without a price for the model."""
    utility: float | None = None
    asked: str = ""
    """The request, shortened."""
    came: str = ""
    """The outcome, shortened."""


class ConversationView(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, kw_only=True):
    """The conversation of a model call; messages and parts are those of :mod:`reenact.providers.meaning`."""

    model: str | None = None
    system: str | None = None
    messages: list[dict[str, Any]] = []
    """``{"role": …, "parts": [{"kind": "text", "text": …}, {"kind": "tool_call", …}, …]}``."""
    tools: list[dict[str, JsonValue]] = []
    params: dict[str, JsonValue] = {}
    answer: list[dict[str, Any]] = []
    """The parts of the answer."""
    stop_reason: str | None = None


class StepPayloads(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, kw_only=True):
    """The recorded data of a step, with references resolved and without type tags."""

    request: Any = None
    """The arguments of a tool, the request of a model call, or the change of some state."""
    response: Any = None
    """The result of a tool, a response, or a value; in a published log its digest."""
    error: Any = None
    pieces: list[Any] | None = None
    """The chunks of a stream."""
    conversation: ConversationView | None = None
    """For a model call in a known wire format."""


class Detail(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, kw_only=True):
    """A step in full."""

    step: RunStep
    payloads: StepPayloads
    events: list[Any]
    """The events of the step as in the artifact, with references resolved."""
    problems: list[str] = []
    """One for each reference that could not be resolved."""


CONVERSATION: Final = ("messages", "input", "contents", "prompt")
"""The members of wire formats with the conversation."""
_CONTENT: Final = ("then", "content", "parts", "text", "output")
"""The members with the text of a conversation, message or part; ``then`` follows a reference."""


def _describe_answer(data: dict[str, JsonValue]) -> str:
    """The text and the tool calls of an ``llm_response``; without any, its stop reason."""
    if "modelError" in data:
        return brief(data["modelError"])
    response = unquote(data.get("response"))
    text, calls = "", []
    for part in read_text_parts(data.get("provider"), response, unquote(data.get("pieces"))) or ():
        if isinstance(part, Text):
            text += part.text
        elif isinstance(part, ToolCallPart):
            calls.append(f"{part.name}({brief_arguments(part.arguments)})")
    if text or calls:
        return ", ".join([brief(text), *calls] if text else calls)
    return _describe_neutral_answer(response) or str(data.get("stopReason") or "")


def _describe_neutral_answer(response: object) -> str:
    """An answer in the neutral form."""
    if not isinstance(response, dict) or not {"text", "tool_calls"} & response.keys():
        return ""
    listed = [call for call in response.get("tool_calls") or () if isinstance(call, dict)]
    calls = [f"{call.get('name')}({brief_arguments(call.get('arguments'))})" for call in listed]
    return ", ".join([*([brief(response["text"])] if response.get("text") else []), *calls])


def _last_message(value: JsonValue) -> JsonValue:
    """The last message of a conversation: the last item of a list, the content of an object."""
    while isinstance(value, list | dict) and value:
        if isinstance(value, list):
            value = value[-1]
            continue
        for key in _CONTENT:
            if value.get(key):
                value = value[key]
                break
        else:
            return value
    return value


_HASHES: Final = 19
"""The shown length of a digest: its algorithm and twelve digits."""


def describe_request(event: RunEvent) -> str:
    """The request in the first event of a step, shortened."""
    data = event.data
    if event.type == "tool_call":
        return brief_arguments(data["args"]) if "args" in data else _short_digest(data.get("argsHash"))
    if event.type == "llm_request":
        request = data.get("request")
        body = request.get("body", request) if isinstance(request, dict) else {}
        for key in CONVERSATION:
            if isinstance(body, dict) and key in body:
                return brief(_last_message(body[key]))
        return ""
    if event.type == "state_mutation":
        return str(data.get("path") or "")
    request = data.get("request")
    if isinstance(request, dict) and "url" in request:  # the name of the step has the rest
        request = request.get("body")
    return brief(request) if request is not None else ""


def describe_outcome(event: RunEvent) -> str:
    """The outcome in the last event of a step, shortened."""
    data = event.data
    if data.get("cancelled"):
        text = "cancelled"
    elif event.failure is not None:
        text = brief_failure(event.failure)
    elif data.get("ok") is False:
        text = "failed"
    elif event.type == "tool_result":
        result = data.get("result")
        text = brief(result) if result is not None else _short_digest(data.get("resultHash"))
    elif event.type == "llm_response":
        text = brief(data["text"]) if data.get("text") else _describe_answer(data)
    else:
        text = _describe_value(event)
    pieces = unquote(data.get("pieces"))
    if isinstance(pieces, list):
        text = f"{plural(len(pieces), 'piece')} {text}".rstrip()
    return text


def _describe_value(event: RunEvent) -> str:
    data = event.data
    value = unquote(data.get("value"))
    if event.type == "nondeterministic" and isinstance(value, dict) and "status" in value:
        return f"{value['status']} {value.get('reason', '')} {size(value.get('bytes', 0))}"
    if event.type == "state_mutation":
        if data.get("type") == WORKSPACE:
            return _count_changed_lines(data.get("details"))
        value = next((data[name] for name in ("value", "content", "details") if name in data), None)
    return brief(value) if value is not None else ""


def _count_changed_lines(diff: JsonValue) -> str:
    """The number of lines that a diff adds and removes; the call has the names of the files."""
    lines = [line[:1] for line in diff if isinstance(line, str)] if isinstance(diff, list) else []
    added, removed = lines.count("+"), lines.count("-")
    return f"+{added} -{removed}" if added or removed else ""


def _short_digest(digest: JsonValue) -> str:
    """A digest, which a published log has instead of a value, shortened."""
    return f"‹{digest[:_HASHES]}…›" if isinstance(digest, str) else ""


_MODEL_EVENTS: Final = ("llm_request", "llm_response")
_STORED: Final = ("request", "response", "pieces")


def event_with_blobs(source: RunSource, seq: int) -> RunEvent:
    """An event, with the payload of a model call read from its blob."""
    event = source.event(seq)
    assert event is not None
    for name in _STORED if event.type in _MODEL_EVENTS else ():
        value = event.data.get(name)
        if isinstance(value, dict) and "$blob" in value:
            with suppress(ReenactError, msgspec.DecodeError):
                event.data[name] = msgspec.json.decode(source.blob(value["$blob"]))
    return event

"""A step in full, and its content without place and time, in the form in which two runs are compared.

A model call is compared by its conversation and answer in the neutral form, with ids replaced by the order of
their appearance, because they differ in every run. Headers, times and sizes are left out. Values of which a
published log has only the digest are compared by their digests.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import repeat
from typing import Any, Final, NamedTuple

from reenact.analysis.index import STATES, State, StepIndex
from reenact.analysis.steps import ConversationView, Detail, RunStep, StepPayloads
from reenact.canonical import JsonValue, digest
from reenact.errors import FormatError, StoreError
from reenact.formats.event import RunEvent
from reenact.formats.record import ABSENT
from reenact.providers import read_conversation
from reenact.trace.model_calls import model_reply
from reenact.trace.sources.source import RunSource
from reenact.values.tags import strip_tags

_ASKED: Final = {"tool_call": ("args", "argsHash"), "llm_request": ("request",)}
_CAME: Final = {"tool_result": ("result", "resultHash"), "llm_response": ("response", "text")}
_CHANGE: Final = ("type", "path", "source", "group_id", "content", "details")


def detail_of(source: RunSource, step: RunStep) -> Detail:
    """*step* with all its recorded data."""
    reading = _Reading(source)
    first, last = _events_of(source, step.seq, step.outcome_seq)
    payloads = reading.payloads(first, last)
    events = [*reading.events(step)]
    return Detail(step=step, payloads=payloads, events=events, problems=reading.problems)


def _events_of(source: RunSource, seq: int, outcome_seq: int | None) -> tuple[RunEvent, RunEvent | None]:
    """The events that began and ended a step."""
    first = source.event(seq)
    assert first is not None
    return first, source.event(outcome_seq) if outcome_seq else None


class _Reading:
    """Collects the data of one step; references that cannot be resolved stay, with a problem for each."""

    def __init__(self, source: RunSource) -> None:
        self._source = source
        self.problems: list[str] = []

    def payloads(self, first: RunEvent, last: RunEvent | None, *, has_wire: bool = True) -> StepPayloads:
        """Without *has_wire*, a model call has only its conversation, if its wire format is known."""
        request = self._first(first, _ASKED.get(first.type, ("request",)))
        outcome = last.data if last else {}
        response = self._first(last, _CAME.get(last.type, ("value",))) if last else None
        pieces = self._resolve(outcome.get("pieces"))
        failure = outcome.get("modelError") if last is None or last.failure is None else last.failure
        conversation = _conversation(first, request, outcome, response, pieces)
        if conversation is not None and not has_wire:
            request = None
            if conversation.answer:
                response = pieces = None
        return StepPayloads(
            request=self._change(first) if first.type == "state_mutation" else strip_tags(request),
            response=strip_tags(response),
            error=strip_tags(self._resolve(failure)),
            pieces=strip_tags(pieces) if isinstance(pieces, list) else None,
            conversation=conversation,
        )

    def events(self, step: RunStep) -> Iterator[JsonValue]:
        for seq in sorted({step.seq, step.outcome_seq or step.seq}):
            raw = self._source.raw(seq)
            yield raw | {"data": self._resolve(raw["data"])} if "data" in raw else raw

    def _change(self, event: RunEvent) -> dict[str, JsonValue]:
        return {name: strip_tags(self._resolve(event.data[name])) for name in _CHANGE if name in event.data}

    def _first(self, event: RunEvent, names: tuple[str, ...]) -> object:
        for name in names:
            if event.data.get(name) is not None:
                return self._resolve(event.data[name])
        return None

    def _resolve(self, value: object) -> object:
        try:
            return self._source.resolve(value)
        except (FormatError, StoreError) as error:
            if str(error) not in self.problems:
                self.problems.append(str(error))
            return value


def _conversation(
    first: RunEvent, request: object, outcome: dict[str, JsonValue], response: object, pieces: object
) -> ConversationView | None:
    """The conversation of a model call; ``None`` if its wire format is unknown."""
    if first.type != "llm_request":
        return None
    conversation = read_conversation(request)
    answer = model_reply(str(outcome.get("provider")), response, ABSENT if pieces is None else pieces)
    if conversation is None and answer is None:
        return None
    sent = conversation.to_json() if conversation else {}
    got = answer.to_json() if answer else {}
    return ConversationView(
        model=first.data.get("model"),
        system=sent.get("system"),
        messages=sent.get("messages", []),
        tools=sent.get("tools", []),
        params=sent.get("params", {}),
        answer=got.get("parts", []),
        stop_reason=got.get("stopReason"),
    )


_IDS: Final = frozenset({"id", "callId", "signature", "sealed"})
_OF_OTHERS: Final = frozenset({"arguments", "content", "schema"})
"""Members with values of the agent; ids in them are not ids of the conversation."""
_TRANSPORT: Final = frozenset({"headers", "bytes", "elapsed"})


class Content(NamedTuple):
    """The request and the outcome of one step."""

    asked: dict[str, Any]
    came: dict[str, Any]
    is_chance: bool
    """Whether the outcome is from a clock or a random source, and expected to differ."""

    @property
    def request_digest(self) -> str:
        """The digest of the request; for a tool call, of its arguments, as in published logs."""
        if "argumentsHash" in self.asked:
            return str(self.asked["argumentsHash"])
        return _digest(self.asked.get("arguments", self.asked))

    @property
    def outcome_digest(self) -> str:
        return _digest(self.came)


def common_content(one: Content, other: Content) -> Content:
    """*one* in the form of *other*, if that has only the digest of arguments, or no reason of a failure."""
    asked, came = one.asked, one.came
    if "argumentsHash" in other.asked and "arguments" in asked:
        asked = {"argumentsHash": one.request_digest}
    if came["state"] == other.came["state"] == "error" and "error" not in other.came:
        came = {name: value for name, value in came.items() if name != "error"}
    return one._replace(asked=asked, came=came)


def content_of(source: RunSource, index: StepIndex, place: int) -> Content:
    """The content of the step at *place* of *index*."""
    first, last = _events_of(source, index.seq[place], index.outcome_seq[place])
    payloads = _Reading(source).payloads(first, last, has_wire=False)
    is_chance = first.type == "nondeterministic" and "callId" not in first.data
    outcome = _outcome_content(payloads, last, STATES[index.state[place]])
    return Content(_request_content(payloads, first), outcome, is_chance)


def _request_content(payloads: StepPayloads, first: RunEvent) -> dict[str, JsonValue]:
    conversation, request = payloads.conversation, payloads.request
    if conversation is not None:
        members = {
            "model": conversation.model,
            "system": conversation.system,
            "messages": _renumber_ids(conversation.messages, {}),
            "tools": conversation.tools,
            "params": conversation.params,
        }
        return {name: value for name, value in members.items() if value}
    if first.type == "state_mutation":
        return {name: request[name] for name in ("type", "path", "source") if name in request}
    if first.type == "tool_call":
        return {"arguments" if "args" in first.data else "argumentsHash": request}
    if request is not None:
        return {"request": _without_transport(request)}
    return {"value": payloads.response} if first.type not in _VALUED else {}


_VALUED: Final = ("nondeterministic", "llm_request")
"""Events whose value is their outcome; the value of all others is their content."""


def _outcome_content(payloads: StepPayloads, last: RunEvent | None, state: State) -> dict[str, object]:
    outcome: dict[str, object] = {"state": state}
    if state == "error":
        return outcome if payloads.error is None else outcome | {"error": _failure(payloads.error)}
    conversation = payloads.conversation
    if conversation is not None and conversation.answer:
        return outcome | {
            "answer": _renumber_ids(conversation.answer, {}),
            "stopReason": conversation.stop_reason,
        }
    if payloads.pieces is not None:
        outcome["pieces"] = payloads.pieces
    if last is not None and last.type == "state_mutation":
        change = payloads.request
        outcome |= {name: change[name] for name in ("content", "details") if name in change}
    if payloads.response is None:
        return outcome
    name = "resultHash" if last is not None and "resultHash" in last.data else "result"
    return outcome | {name: _without_transport(payloads.response)}


def _failure(error: JsonValue) -> JsonValue:
    """Class and message of an exception; its other members differ from run to run."""
    if not isinstance(error, dict):
        return error
    return {name: error[name] for name in ("type", "message", "status") if name in error}


def _without_transport(value: JsonValue) -> JsonValue:
    if isinstance(value, dict) and ("status" in value or "url" in value):
        return {name: child for name, child in value.items() if name not in _TRANSPORT}
    return value


def _renumber_ids(value: object, numbers: dict[str, str]) -> Any:
    """*value* with ids replaced by ``#1``, ``#2`` in the order of appearance, kept in *numbers*."""
    if isinstance(value, list):
        return list(map(_renumber_ids, value, repeat(numbers)))
    if not isinstance(value, dict):
        return value
    members: dict[str, object] = {}
    for name, child in value.items():
        if name in _IDS and isinstance(child, str):
            members[name] = numbers.setdefault(child, f"#{len(numbers) + 1}")
        else:
            members[name] = child if name in _OF_OTHERS else _renumber_ids(child, numbers)
    return members


def _digest(value: JsonValue) -> str:
    try:
        return digest(value)
    except FormatError:  # not canonical JSON: compared by its Python text
        return repr(value)

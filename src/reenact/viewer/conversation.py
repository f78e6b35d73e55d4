"""A run read as a conversation: what was newly said in each model call, and the answer."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any, Final

import msgspec

from reenact.analysis.artifact import Artifact
from reenact.analysis.steps import ConversationView, Detail
from reenact.formats.capture import NO_MODEL

_SPEAKING: Final = ("model", "message", "tool")
_TRAFFIC: Final = ("capture", "events")


class ConversationTurn(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, kw_only=True):
    """Something said, or handed over."""

    seq: int
    """The event that says it."""
    lane: str
    role: str
    """``system``, ``user``, ``assistant``, ``tool``, or the artifact's own word."""
    parts: list[dict[str, Any]]
    """As :mod:`reenact.providers.meaning` writes them."""


class ConversationTurns(msgspec.Struct, frozen=True, rename="camel"):
    rows: list[ConversationTurn]
    next: int | None
    """The place of the step to go on with; ``None`` at the end."""


def read_turns(artifact: Artifact, start: int, count: int, seconds: float = 1.0) -> ConversationTurns:
    """The turns of the steps from place *start*: about *count* of them, or what is found in so long."""
    deadline = time.monotonic() + seconds
    reading = _Reading(artifact)
    rows: list[ConversationTurn] = []
    place = start
    while place < len(artifact) or not artifact.index(0):
        if len(rows) >= count or time.monotonic() > deadline:
            return ConversationTurns(rows, place)
        if place < len(artifact):
            rows.extend(reading.turns(place))
            place += 1
    return ConversationTurns(rows, None)


class _Reading:
    """One pass over an artifact, which remembers what was said last in each lane."""

    def __init__(self, artifact: Artifact) -> None:
        self._artifact = artifact
        self._said: dict[int, ConversationView | None] = {}
        header = artifact.header()
        # What tools were asked and gave is in the model traffic already, where that is recorded.
        has_models = header.model not in (None, NO_MODEL.model)
        self._passed_over = ("tool",) if header.kind in _TRAFFIC and has_models else ()

    def turns(self, place: int) -> Iterator[ConversationTurn]:
        rows = self._artifact.rows
        kind = rows.kinds[rows.kind[place]]
        if kind not in _SPEAKING or kind in self._passed_over:
            return
        detail = self._artifact.detail(rows.seq[place])
        if detail.payloads.conversation is not None:
            yield from _model_turns(detail, self._before(place))
            self._said[rows.lane[place]] = detail.payloads.conversation
        elif kind == "tool":
            yield from _tool_turns(detail)
        else:
            yield _message_turn(detail)

    def _before(self, place: int) -> ConversationView | None:
        """The conversation that the model call at *place* may go on with: the last one of its lane."""
        rows = self._artifact.rows
        own = rows.kind[place], rows.lane[place]
        if own[1] in self._said:
            return self._said[own[1]]
        earlier = range(place - 1, -1, -1)
        found = next((one for one in earlier if (rows.kind[one], rows.lane[one]) == own), None)
        return None if found is None else self._artifact.detail(rows.seq[found]).payloads.conversation


def _model_turns(detail: Detail, before: ConversationView | None) -> Iterator[ConversationTurn]:
    conversation, error, step = detail.payloads.conversation, detail.payloads.error, detail.step
    assert conversation is not None
    if conversation.system and (before is None or before.system != conversation.system):
        yield _turn(detail, "system", [{"kind": "text", "text": conversation.system}])
    for message in conversation.messages[_count_repeated(before, conversation) :]:
        yield _turn(detail, _role(message), message["parts"])
    if step.outcome_seq and (conversation.answer or error is not None):
        failure = [] if error is None else [{"kind": "failure", "value": error}]
        yield _turn(detail, "assistant", [*conversation.answer, *failure], seq=step.outcome_seq)


def _count_repeated(before: ConversationView | None, now: ConversationView) -> int:
    """How many of the messages were in the conversation before, its answer included; 0 for a new one."""
    if before is None:
        return 0
    known = len(before.messages)
    if now.messages[:known] != before.messages:
        return 0
    # The answer comes back in the agent's words: another order of members, no signature.
    is_answered = len(now.messages) > known and now.messages[known]["role"] == "assistant"
    return known + is_answered


def _role(message: dict[str, Any]) -> str:
    """Results are sent in the user's name by some providers; they are the tools' all the same."""
    kinds = {part["kind"] for part in message["parts"]}
    return "tool" if kinds == {"tool_result"} else str(message["role"])


def _tool_turns(detail: Detail) -> Iterator[ConversationTurn]:
    step, payloads = detail.step, detail.payloads
    call = {"kind": "tool_call", "name": step.name, "arguments": payloads.request}
    yield _turn(detail, "assistant", [call])
    if step.outcome_seq:
        failed = payloads.error is not None
        content = payloads.error if failed else payloads.response
        result = {"kind": "tool_result", "name": step.name, "content": content, "isError": failed}
        yield _turn(detail, "tool", [result], seq=step.outcome_seq)


def _message_turn(detail: Detail) -> ConversationTurn:
    payloads = detail.payloads
    value = payloads.response if payloads.response is not None else payloads.request
    part = {"kind": "text", "text": value} if isinstance(value, str) else {"kind": "data", "value": value}
    role = "assistant" if detail.step.kind == "model" else detail.step.name or detail.step.kind
    return _turn(detail, role, [part])


def _turn(
    detail: Detail, role: str, parts: list[dict[str, Any]], *, seq: int | None = None
) -> ConversationTurn:
    return ConversationTurn(seq=seq or detail.step.seq, lane=detail.step.lane, role=role, parts=parts)

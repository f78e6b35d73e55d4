"""A run as a conversation: the new messages of each model call, and the answer."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any, Final

import msgspec

from reenact.analysis.artifact import Artifact
from reenact.analysis.steps import ConversationView, Detail
from reenact.canonical import JsonField
from reenact.formats.capture import NO_MODEL

_SPEAKING: Final = ("model", "message", "tool")
_TRAFFIC: Final = ("capture", "events")


class ConversationTurn(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, kw_only=True):
    """A message, or a tool result."""

    seq: int
    """The event that contains it."""
    lane: str
    role: str
    """``system``, ``user``, ``assistant``, ``tool``, or another role of the artifact."""
    parts: list[dict[str, JsonField]]
    """As :mod:`reenact.providers.meaning` writes them."""


class ConversationTurns(msgspec.Struct, frozen=True, rename="camel"):
    rows: list[ConversationTurn]
    next: int | None
    """The place of the next step; ``None`` at the end."""


def read_turns(artifact: Artifact, start: int, count: int, seconds: float = 1.0) -> ConversationTurns:
    """The turns of the steps from place *start*: about *count*, or as many as are found in time."""
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
    """One pass over an artifact, which keeps the last conversation of each lane."""

    def __init__(self, artifact: Artifact) -> None:
        self._artifact = artifact
        self._said: dict[int, ConversationView | None] = {}
        header = artifact.header()
        # Recorded model traffic already contains the tool calls and results.
        has_models = header.model not in (None, NO_MODEL.model)
        self._passed_over = ("tool",) if header.kind in _TRAFFIC and has_models else ()

    def turns(self, place: int) -> Iterator[ConversationTurn]:
        rows = self._artifact.rows
        kind = rows.kinds[rows.kind[place]]
        if kind not in _SPEAKING or kind in self._passed_over:
            return
        detail = self._artifact.detail(rows.seq[place])
        if detail.payloads.conversation is not None:
            yield from _model_turns(detail, self._find_earlier(place))
            self._said[rows.lane[place]] = detail.payloads.conversation
        elif kind == "tool":
            yield from _tool_turns(detail)
        else:
            yield _message_turn(detail)

    def _find_earlier(self, place: int) -> ConversationView | None:
        """The conversation that the model call at *place* may continue: the last one of its lane."""
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
    """The number of messages that repeat the conversation and its answer; 0 for a new one."""
    if before is None:
        return 0
    known = len(before.messages)
    if now.messages[:known] != before.messages:
        return 0
    # The agent sends the answer back in another form: other order of members, no signature.
    is_answered = len(now.messages) > known and now.messages[known]["role"] == "assistant"
    return known + is_answered


def _role(message: dict[str, Any]) -> str:
    """The role; some providers send tool results with the role of the user."""
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

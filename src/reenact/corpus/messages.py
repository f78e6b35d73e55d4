"""What is said to models and by them, as rows of ``messages``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, NamedTuple, Protocol, TypeAlias, get_args

import msgspec

from reenact.corpus.tables import TableRows, clean_text, text_or_none
from reenact.errors import FormatError, StoreError
from reenact.formats.record import ABSENT
from reenact.providers import read_conversation
from reenact.providers.meaning import (
    Conversation,
    Media,
    ModelMessage,
    Other,
    Part,
    Text,
    ToolCallPart,
    ToolResultPart,
)
from reenact.trace.model_calls import model_reply

_CONVERSATION: Final = ("messages", "input", "contents", "prompt")
"""Where the wire formats keep what is said to the model."""
_MessageRow: TypeAlias = tuple[str, int, str, int, int, str | None, str, str | None, str | None, str | None]


_KINDS: Final = {kind: str(kind.__struct_config__.tag) for kind in get_args(Part)}


class PayloadSource(Protocol):
    """Where payloads are whole."""

    def resolve(self, value: object) -> object: ...

    def blob(self, digest: object) -> bytes: ...


class AnswerAsStored(NamedTuple):
    """What came from a model, as it is stored."""

    provider: str
    response: Any
    pieces: Any
    text: Any
    """As logs tell it."""
    is_whole: bool
    """Whether it surely refers to nothing."""


class ExchangeAsStored(NamedTuple):
    """A model call, as it is stored."""

    seq: int
    lane: str
    request: Any
    marks: int | None
    """How many members of the request may refer to something; ``None`` where nobody counted."""
    answer: AnswerAsStored | None


def add_messages(
    name: str, exchanges: Iterable[ExchangeAsStored], run: PayloadSource, into: TableRows
) -> None:
    """What is new in each model call of the run called *name*."""
    rows: list[_MessageRow] = []
    before: dict[str, tuple[ModelMessage, ...]] = {}
    system: dict[str, str | None] = {}
    for seq, lane, request, marks, answer in exchanges:
        sent, is_shared = _read_request(run, request, marks)
        new: list[ModelMessage] = []
        if sent is not None:
            if sent.system and sent.system != system.get(lane):
                new.append(ModelMessage(role="system", parts=(Text(text=sent.system),)))
                system[lane] = sent.system
            shared = 0 if is_shared else _common_prefix(before.get(lane, ()), sent.messages)
            new += sent.messages[shared:]
            if not is_shared:
                before[lane] = sent.messages
        for number, message in enumerate(new):
            role = text_or_none(message.role)
            for place, part in enumerate(message.parts):
                rows.append((name, seq, "request", number, place, role, *_part_cells(part, into)))
        if answer is not None:
            for place, part in enumerate(_read_answer(run, answer)):
                rows.append((name, seq, "answer", 0, place, "assistant", *_part_cells(part, into)))
    into.extend("messages", rows)


def _read_request(run: PayloadSource, request: object, marks: int | None) -> tuple[Conversation | None, bool]:
    """What a request with so many *marks* says, and whether only what no earlier one of the run has said."""
    try:
        if isinstance(request, dict) and "$blob" in request:
            request, marks = msgspec.json.decode(run.blob(request["$blob"])), None
        body = request.get("body") if isinstance(request, dict) else None
        if not isinstance(request, dict) or not isinstance(body, dict):
            return read_conversation(run.resolve(request)), False
        # A reference says what was sent before: following it would make a chat of N turns cost N * N.
        shared = [key for key in _CONVERSATION if isinstance(body.get(key), dict) and "$ref" in body[key]]
        body = {key: value for key, value in body.items() if key != "tools"}
        for key in shared:
            body[key] = body[key].get("then", [])
        request = request | {"body": body}
        has_more = marks != len(shared)
        return read_conversation(run.resolve(request) if has_more else request), bool(shared)
    except (FormatError, StoreError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None, False  # what it refers to is gone; `events` has the request as it is stored


def _read_answer(run: PayloadSource, answer: AnswerAsStored) -> tuple[Part, ...]:
    response, pieces = answer.response, answer.pieces
    try:
        if not answer.is_whole:
            response, pieces = run.resolve(response), run.resolve(pieces)
        reply = model_reply(answer.provider, response, ABSENT if pieces is None else pieces)
    except (FormatError, StoreError):
        return ()  # likewise
    if reply is None:
        return (Text(text=answer.text),) if isinstance(answer.text, str) else ()
    return reply.parts


def _common_prefix(one: tuple[ModelMessage, ...], other: tuple[ModelMessage, ...]) -> int:
    pairs = zip(one, other, strict=False)
    return next((place for place, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))


def _part_cells(part: Part, into: TableRows) -> tuple[str, str | None, str | None, str | None]:
    """Kind, text, tool and the model's id of the call."""
    kind = _KINDS[type(part)]
    match part:
        case ToolCallPart():
            text = part.arguments_text
            text = into.add_json(part.arguments) if text is None else into.add_text(clean_text(text))
            return kind, text, text_or_none(part.name), text_or_none(part.id)
        case ToolResultPart():
            content = part.content
            text = into.add_text(clean_text(content)) if isinstance(content, str) else into.add_json(content)
            return kind, text, text_or_none(part.name), text_or_none(part.call_id)
        case Other():
            return kind, into.add_json(part.value), None, None
        case Media():
            return kind, into.add_json(part.to_json()), None, None
        case _:
            return kind, into.add_text(clean_text(part.text)), None, None

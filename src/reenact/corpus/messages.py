"""Makes the rows of ``messages`` from model requests and answers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import lru_cache
from typing import Annotated, Any, Final, Literal, NamedTuple, Protocol, TypeAlias, get_args
from urllib.parse import urlsplit

import msgspec

from reenact.corpus.tables import short_json, short_text, text_or_none
from reenact.errors import FormatError, StoreError
from reenact.formats.record import ABSENT
from reenact.providers import read_conversation, recognise
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
from reenact.providers.reading import loads
from reenact.trace.model_calls import model_reply

_CONVERSATION: Final = ("messages", "input", "contents", "prompt")
"""The members for the conversation in the wire formats."""
MessageRow: TypeAlias = tuple[str, int, str, int, int, str | None, str, str | None, str | None, str | None]
"""In the order of the columns."""
_KINDS: Final = {kind: str(kind.__struct_config__.tag) for kind in get_args(Part)}


class PayloadSource(Protocol):
    """Resolves the references in stored payloads."""

    def resolve(self, value: object) -> object: ...

    def blob(self, digest: object) -> bytes: ...


class AnswerAsStored(NamedTuple):
    """A model's answer as it is stored, possibly with references."""

    provider: str
    response: Any
    pieces: Any
    text: Any
    """The answer's text, in formats that have only that."""
    is_whole: bool
    """Whether it certainly has no references."""


class ExchangeAsStored(NamedTuple):
    """A model call as it is stored."""

    seq: int
    lane: str
    request: Any
    """The request, or the result of :func:`read_new_texts`."""
    marks: int | None
    """The number of members of the request that may be references; ``None`` if it was not counted."""
    answer: AnswerAsStored | str | None
    """The answer, or the result of :func:`read_answer_text`."""


def message_rows(name: str, exchanges: Iterable[ExchangeAsStored], run: PayloadSource) -> list[MessageRow]:
    """The new messages of each model call in the run *name*."""
    rows: list[MessageRow] = []
    lanes: dict[str, _Lane] = {}
    for seq, lane, request, marks, answer in exchanges:
        if isinstance(request, NewTexts):
            for number, said in enumerate(request.then):
                text = short_text(said.content)
                rows.append((name, seq, "request", number, 0, said.role, "text", text, None, None))
        else:
            sent, is_shared = _read_request(run, request, marks)
            new = () if sent is None else lanes.setdefault(lane, _Lane()).take_new(sent, is_shared=is_shared)
            for number, message in enumerate(new):
                role = text_or_none(message.role)
                for place, part in enumerate(message.parts):
                    rows.append((name, seq, "request", number, place, role, *_part_cells(part)))
        if isinstance(answer, str):
            rows.append((name, seq, "answer", 0, 0, "assistant", "text", short_text(answer), None, None))
        elif answer is not None:
            for place, part in enumerate(_read_answer(run, answer)):
                rows.append((name, seq, "answer", 0, place, "assistant", *_part_cells(part)))
    return rows


class _Lane:
    """The messages sent to models in one lane of a run."""

    def __init__(self) -> None:
        self._system: str | None = None
        self._messages: tuple[ModelMessage, ...] = ()

    def take_new(self, sent: Conversation, *, is_shared: bool) -> Sequence[ModelMessage]:
        """The messages of *sent* that are new; all of them if earlier ones were left out (*is_shared*)."""
        shared = 0 if is_shared else _common_prefix(self._messages, sent.messages)
        if not is_shared:
            self._messages = sent.messages
        if not sent.system or sent.system == self._system:
            return sent.messages[shared:]
        self._system = sent.system
        return ModelMessage(role="system", parts=(Text(text=sent.system),)), *sent.messages[shared:]


def _read_request(run: PayloadSource, request: object, marks: int | None) -> tuple[Conversation | None, bool]:
    """Read a request with *marks* possible references; also says whether earlier messages were left out."""
    try:
        if isinstance(request, dict) and "$blob" in request:
            request, marks = msgspec.json.decode(run.blob(request["$blob"])), None
        body = request.get("body") if isinstance(request, dict) else None
        if not isinstance(request, dict) or not isinstance(body, dict):
            return read_conversation(run.resolve(request)), False
        # A reference is to messages sent before: resolving it would make a chat of N turns cost N * N.
        shared = [key for key in _CONVERSATION if isinstance(body.get(key), dict) and "$ref" in body[key]]
        body = {key: value for key, value in body.items() if key != "tools"}
        for key in shared:
            body[key] = body[key].get("then", [])
        request = request | {"body": body}
        has_more = marks != len(shared)
        return read_conversation(run.resolve(request) if has_more else request), bool(shared)
    except (FormatError, StoreError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None, False  # a reference is broken; `events` has the request as it is stored


def _read_answer(run: PayloadSource, answer: AnswerAsStored) -> tuple[Part, ...]:
    response, pieces = answer.response, answer.pieces
    try:
        if not answer.is_whole:
            response, pieces = run.resolve(response), run.resolve(pieces)
        reply = model_reply(answer.provider, response, ABSENT if pieces is None else pieces)
    except (FormatError, StoreError):
        return ()  # a reference is broken
    if reply is None:
        return (Text(text=answer.text),) if isinstance(answer.text, str) else ()
    return reply.parts


def _common_prefix(one: tuple[ModelMessage, ...], other: tuple[ModelMessage, ...]) -> int:
    pairs = zip(one, other, strict=False)
    return next((place for place, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))


def _part_cells(part: Part) -> tuple[str, str | None, str | None, str | None]:
    """Kind, text, tool and the model's id of the call."""
    kind = _KINDS[type(part)]
    match part:
        case ToolCallPart():
            text = part.arguments_text
            text = short_json(part.arguments) if text is None else short_text(text)
            return kind, text, text_or_none(part.name), text_or_none(part.id)
        case ToolResultPart():
            content = part.content
            text = short_text(content) if isinstance(content, str) else short_json(content)
            return kind, text, text_or_none(part.name), text_or_none(part.call_id)
        case Other():
            return kind, short_json(part.value), None, None
        case Media():
            return kind, short_json(part.to_json()), None, None
        case _:
            return kind, short_text(part.text), None, None


# A fast path for chats of text only, in which each request refers to the one before: a quarter of the time


class _SaidText(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    """A message that has only text, in each of these wire formats."""

    content: Annotated[str, msgspec.Meta(min_length=1)]
    role: Literal["user", "assistant"]


class NewTexts(msgspec.Struct, gc=False):
    """The messages of a request after the ones it refers to."""

    ref: msgspec.Raw = msgspec.field(name="$ref")
    then: list[_SaidText] = []


class _TextBody(msgspec.Struct, gc=False):
    messages: NewTexts
    system: None = None


class _TextRequest(msgspec.Struct, gc=False):
    body: _TextBody
    url: str


class _TextResponse(msgspec.Struct, gc=False):
    body: str
    status: int = 200


_read_text_request: Final = msgspec.json.Decoder(_TextRequest).decode
_read_text_response: Final = msgspec.json.Decoder(_TextResponse).decode


def read_new_texts(request: msgspec.Raw) -> NewTexts | None:
    """The new messages of a request; ``None`` unless they are only text."""
    # There is one reference, the one to the earlier messages.
    if bytes(request).count(b'"$') == 1:
        with suppress(msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            found = _read_text_request(request)
            return found.body.messages if _asks_in_texts(found.url) else None
    return None


@lru_cache(maxsize=256)
def _asks_in_texts(url: str) -> bool:
    return recognise("POST", urlsplit(url).path, {"messages": []}) in ("openai_chat", "anthropic")


def read_answer_text(provider: str | None, response: msgspec.Raw) -> str | None:
    """The answer of a model; ``None`` unless it is one text."""
    if provider != "openai_chat" or b'"$' in bytes(response):
        return None
    with suppress(msgspec.DecodeError, UnicodeDecodeError, RecursionError, LookupError, TypeError):
        found = _read_text_response(response)
        message: Any = loads(found.body)["choices"][0]["message"]  # type: ignore[call-overload,index]
        text = message["content"]
        if found.status < 400 and message.keys() <= _TEXT_ONLY and isinstance(text, str) and text:
            return text
    return None


_TEXT_ONLY: Final = {"role", "content"}

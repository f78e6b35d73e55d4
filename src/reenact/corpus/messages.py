"""Makes the rows of ``messages`` from model requests and answers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Annotated, Any, Final, Literal, NamedTuple, Protocol, TypeAlias, TypeVar, get_args
from urllib.parse import urlsplit

import msgspec

from reenact.analysis.steps import CONVERSATION
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
from reenact.trace.model_calls import model_reply

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
    """The request, or one of the results of :func:`read_request_texts`."""
    marks: int | None
    """The number of members of the request that may be references; ``None`` if it was not counted."""
    answer: AnswerAsStored | str | None
    """The answer, or one of the results of :func:`read_answer_texts`."""


def message_rows(name: str, exchanges: Iterable[ExchangeAsStored], run: PayloadSource) -> list[MessageRow]:
    """The new messages of each model call in the run *name*."""
    rows: list[MessageRow] = []
    lanes: dict[str, _Lane] = {}
    for exchange in exchanges:
        seq, answer = exchange.seq, exchange.answer
        rows += _request_rows(name, exchange, lanes, run)
        if isinstance(answer, str):
            rows.append((name, seq, "answer", 0, 0, "assistant", "text", short_text(answer), None, None))
        elif answer is not None:
            for place, part in enumerate(_read_answer(run, answer)):
                rows.append((name, seq, "answer", 0, place, "assistant", *_part_cells(part)))
    return rows


def _request_rows(
    name: str, exchange: ExchangeAsStored, lanes: dict[str, _Lane], run: PayloadSource
) -> list[MessageRow]:
    seq, lane, request, marks, _ = exchange
    if isinstance(request, AllTexts) and lane in lanes:
        request, marks = request.decode(), 0
    if isinstance(request, _TEXTS):
        if isinstance(request, AllTexts):
            lanes[lane] = _Lane(request)
        return [
            (name, seq, "request", number, 0, said.role, "text", short_text(said.content), None, None)
            for number, said in enumerate(request.then)
        ]
    sent, is_shared = _read_request(run, request, marks)
    new = () if sent is None else lanes.setdefault(lane, _Lane()).take_new(sent, is_shared=is_shared)
    return [
        (name, seq, "request", number, place, text_or_none(message.role), *_part_cells(part))
        for number, message in enumerate(new)
        for place, part in enumerate(message.parts)
    ]


class _Lane:
    """The messages sent to models in one lane of a run."""

    def __init__(self, first: AllTexts | None = None) -> None:
        self._first = first
        """The first request, as long as no later one was compared with it."""
        self._system: str | None = None
        self._messages: tuple[ModelMessage, ...] = ()

    def take_new(self, sent: Conversation, *, is_shared: bool) -> Sequence[ModelMessage]:
        """The messages of *sent* that are new; all of them if earlier ones were left out (*is_shared*)."""
        if self._first is not None:
            conversation = read_conversation(self._first.decode())
            self._messages = () if conversation is None else conversation.messages
            self._first = None
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
        shared = [key for key in CONVERSATION if isinstance(body.get(key), dict) and "$ref" in body[key]]
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


# A fast path for chats of text only: a quarter of the time


class _SaidText(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    """A message that has only text, in each of these wire formats."""

    content: Annotated[str, msgspec.Meta(min_length=1)]
    role: Literal["user", "assistant"]


class NewTexts(msgspec.Struct, gc=False):
    """The messages of a request after the ones it refers to."""

    ref: msgspec.Raw = msgspec.field(name="$ref")
    then: list[_SaidText] = []


class AllTexts(NamedTuple):
    """A request that refers to no other, with all of its messages."""

    then: list[_SaidText]
    request: msgspec.Raw

    def decode(self) -> object:
        """The whole request."""
        return msgspec.json.decode(self.request)


_TEXTS: Final = (NewTexts, AllTexts)


class _TextChat(msgspec.Struct, gc=False):
    messages: NewTexts | list[_SaidText]
    system: None = None


class _TextRequest(msgspec.Struct, gc=False):
    body: _TextChat
    url: str


class _TextResponse(msgspec.Struct, gc=False):
    body: str
    status: int = 200


class _AnswerText(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    content: Annotated[str, msgspec.Meta(min_length=1)]
    role: msgspec.Raw = msgspec.Raw()


class _TextChoice(msgspec.Struct, gc=False):
    message: _AnswerText


class _TextBody(msgspec.Struct, gc=False):
    choices: list[_TextChoice]


_UNREADABLE: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
_read_text_requests: Final = msgspec.json.Decoder(_TextRequest).decode_lines
_read_text_responses: Final = msgspec.json.Decoder(_TextResponse).decode_lines
_read_text_body: Final = msgspec.json.Decoder(_TextBody).decode


def read_request_texts(requests: Sequence[msgspec.Raw]) -> list[NewTexts | AllTexts | None]:
    """The messages of each request; ``None`` unless they are only text."""
    text = b"\n".join(requests)
    try:
        found = _read_text_requests(text)
    except _UNREADABLE:
        found = []
    # The only references are those to earlier messages.
    references = sum([isinstance(each.body.messages, NewTexts) for each in found])
    if len(found) != len(requests) or text.count(b'"$') != references:
        return [None] if len(requests) == 1 else _read_in_halves(read_request_texts, requests)
    return [
        None
        if not _asks_in_texts(each.url)
        else each.body.messages
        if isinstance(each.body.messages, NewTexts)
        else AllTexts(each.body.messages, request)
        for each, request in zip(found, requests, strict=True)
    ]


@lru_cache(maxsize=256)
def _asks_in_texts(url: str) -> bool:
    return recognise("POST", urlsplit(url).path, {"messages": []}) in ("openai_chat", "anthropic")


def read_answer_texts(responses: Sequence[msgspec.Raw]) -> list[str | None]:
    """The answer in each response of ``openai_chat``; ``None`` unless it is one text."""
    text = b"\n".join(responses)
    try:
        found = [] if b'"$' in text else _read_text_responses(text)
    except _UNREADABLE:
        found = []
    if len(found) != len(responses):
        return [None] if len(responses) == 1 else _read_in_halves(read_answer_texts, responses)
    return [_answer_text(each) for each in found]


_Said = TypeVar("_Said")


def _read_in_halves(
    read: Callable[[Sequence[msgspec.Raw]], list[_Said]], texts: Sequence[msgspec.Raw]
) -> list[_Said]:
    """What *read* returns for each of *texts*, at least one of which it cannot read with the others."""
    half = len(texts) // 2
    return [*read(texts[:half]), *read(texts[half:])]


def _answer_text(response: _TextResponse) -> str | None:
    if response.status >= 400:
        return None
    try:
        return _read_text_body(response.body).choices[0].message.content
    except (*_UNREADABLE, LookupError):
        return None

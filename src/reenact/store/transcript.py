"""``transcript.md``: the messages, calls and results of a run, for people who review a changed recording.

It is made from the events alone, so it is redacted as they are, and equal events make equal texts. It has no
ids, times or lanes, which differ in every run, and does not repeat earlier messages. Long texts are cut, more
so in a long run; a digest of the whole text shows changes in the part that was cut. With its transcript a
long chat takes at most twice the bytes of its messages.
"""

from __future__ import annotations

import json
from base64 import b64decode
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from itertools import accumulate, repeat
from typing import Any, Final

import msgspec

from reenact.canonical import JsonValue, digest_of_bytes
from reenact.errors import ReenactError
from reenact.providers import (
    Part,
    Text,
    ToolCallPart,
    ToolResultPart,
    read_conversation,
    read_neutral_response,
    read_text_parts,
)
from reenact.store.reader import EventReader

TRANSCRIPT: Final = "transcript.md"
_TITLE: Final = "# Transcript\n\nMade by reenact from events.jsonl, for review; do not edit.\n"
_TEXT_CHARACTERS: Final = (4_000, 2_000, 1_000, 500, 250, 125, 60)
"""How much of a text is shown; the first limit is used with which the transcript is small enough."""
_SHARE_OF_EVENTS: Final = 1 / 8
_SMALL_BYTES: Final = 24_000
"""A transcript up to this size is never cut further."""
MAX_CHARACTERS: Final = 250_000
"""How much text is read for a transcript: nobody reviews more, and finishing a long run stays cheap."""
EARLIER_MAX_CHARACTERS: Final = 2_000_000
"""The limit up to reenact 0.1; a transcript made with it is still valid."""
_OUTSIDE: Final = ("network", "process", "file")
"""Sources of nondeterminism that are shown; clocks and random values mean nothing to a reviewer."""
UNREADABLE_EVENT: Final = "an event with content that events of its type do not have"
_UNREADABLE: Final = (ReenactError, LookupError, TypeError, ValueError, AttributeError, RecursionError)
_decode: Final = msgspec.json.Decoder().decode
_dump: Final = json.JSONEncoder(ensure_ascii=False).encode


def transcript_of(log: EventReader) -> bytes:
    """The transcript of the events in *log*."""
    return make_transcript(log.lines(), log.resolve, size_bytes=log.size_bytes)


def make_transcript(
    lines: Iterable[bytes],
    resolve: Callable[[object], Any],
    *,
    size_bytes: int,
    max_characters: int = MAX_CHARACTERS,
) -> bytes:
    """The transcript of the events in *lines*, which have *size_bytes* in all.

    *resolve* replaces the references in a value of an event by what they refer to.
    """
    sections: list[_Section] = []
    lengths: list[int] = []
    characters, rest = 0, ""
    for section in _Writer(lines, resolve).sections():
        if characters > max_characters:
            rest = "\n## …\n\nThe rest is too long for a transcript.\n"
            break
        sections.append(section)
        lengths.append(len(section.excerpt.text))
        characters += len(section.title) + len(section.excerpt.text)
    max_bytes = max(_SMALL_BYTES, size_bytes * _SHARE_OF_EVENTS)
    text = b""
    lengths.sort()
    sums = [0, *accumulate(lengths)]
    for limit in _TEXT_CHARACTERS:
        # A text that must be too large is not built: a character takes at least a byte.
        short = bisect_right(lengths, limit)
        shown = sums[short] + limit * (len(lengths) - short)
        if limit > _TEXT_CHARACTERS[-1] and shown > max_bytes:
            continue
        text = "\n".join([_TITLE, *map(_Section.to_text, sections, repeat(limit))]).encode() + rest.encode()
        if len(text) <= max_bytes:
            break
    return text


# No named tuples: making one runs eval(), and where this module is first imported after an unhandled
# KeyboardInterrupt, that makes Python forget the interrupt and end with status 1 instead of 130.
class _Excerpt(msgspec.Struct, frozen=True, gc=False):
    """As much of a text as is ever shown, with the length and the digest of the whole."""

    text: str
    length: int
    digest: str


class _Section(msgspec.Struct, frozen=True, gc=False):
    """A heading and the text below it."""

    title: str
    excerpt: _Excerpt

    def to_text(self, limit: int) -> str:
        """The section as Markdown; its text is cut at *limit*, and indented so that it cannot end early."""
        text = self.excerpt.text[:limit]
        if self.excerpt.length > limit:
            text += f"\n… {self.excerpt.length - limit:,} further characters ({self.excerpt.digest[:8]})"
        title, lines = self.title, text.split("\n") if text else []
        if not "".join((title, *lines)).replace("\t", "").isprintable():
            title, *lines = map(_escape_controls, (title, *lines))
        shown = f"## {title}\n" if text else f"## {title}"
        return "\n".join([shown, *map(str.rstrip, map("    ".__add__, lines)), ""])


def _section(title: str, text: str) -> _Section:
    is_short = len(text) <= _TEXT_CHARACTERS[-1]
    proof = "" if is_short else digest_of_bytes(text.encode("utf-8", "replace")).removeprefix("sha256:")
    return _Section(title, _Excerpt(text[: _TEXT_CHARACTERS[0]], len(text), proof))


class _Writer(msgspec.Struct):
    """Makes the sections of a transcript, event by event."""

    lines: Iterable[bytes]
    resolve: Callable[[object], Any]
    messages: Counter[_Section] = msgspec.field(default_factory=Counter)
    """The messages of the latest request to a model, and how often each occurs."""
    known: dict[tuple[str, str], _Section] = {}
    """The same by title and text, because the next request repeats most of them."""
    has_references: bool = False
    """Whether the event may have references to other events or blobs."""
    has_marks: bool = False
    """Whether values may have marks of Python types."""
    shown: set[_Excerpt] = set()
    """The answers and results so far, which the next request repeats."""
    names: dict[str, str] = {}
    """The names of tools by call id, for the headings of results."""

    def sections(self) -> Iterator[_Section]:
        for line in self.lines:
            self.has_references = b"$" in line
            self.has_marks = b"$py" in line or b"$blob" in line or self.has_marks
            try:
                event = _decode(line)
                data: dict[str, Any] = event["data"]
                match event["type"]:
                    case "llm_request":
                        yield from self._request_sections(data)
                    case "llm_response":
                        yield self._outcome("answer", self._answer(data))
                    case "tool_call":
                        self.names[data["callId"]] = data["tool"]
                        yield _section(f"tool {data['tool']}", _json(self._value(data["args"])))
                    case "tool_result":
                        name = self.names.get(data["callId"], "a tool")
                        yield self._outcome(f"result of {name}", self._outcome_text(data, "result"))
                    case "nondeterministic" if data["source"] in _OUTSIDE:
                        yield from self._outside(data)
                    case "state_mutation":
                        shown = ("path", "content", "details", "value")
                        known = {key: data[key] for key in shown if key in data}
                        yield _section(str(data["type"]), _json(self._value(known)))
                    case "run_end" if "finalOutput" in data or "error" in data:
                        yield _section("end", self._outcome_text(data, "finalOutput"))
            except _UNREADABLE:
                yield _section("unreadable", UNREADABLE_EVENT)

    def _outcome(self, title: str, text: str) -> _Section:
        section = _section(title, text)
        self.shown.add(section.excerpt)
        return section

    def _value(self, stored: object) -> Any:
        if not self.has_references:
            return stored
        value = self.resolve(stored)
        return _plain(value) if self.has_marks else value

    def _outcome_text(self, data: dict[str, JsonValue], member: str) -> str:
        if data.get("cancelled"):
            return "cancelled"
        if data.get("error") is not None:
            return _failure(self._value(data["error"]))
        if "pieces" in data and not data.get(member):
            return _json(self._value(data["pieces"]))
        return _json(self._value(data.get(member)))

    def _outside(self, data: dict[str, JsonValue]) -> Iterator[_Section]:
        name = f"{data['source']} {data['key']}"
        if "request" in data:
            request = self._value(data["request"])
            shown = request.get("body") if isinstance(request, dict) and "url" in request else request
            yield _section(name, _json(shown) if shown is not None else "")
        else:
            yield self._outcome(f"outcome of {name}", self._outside_text(data))

    def _outside_text(self, data: dict[str, JsonValue]) -> str:
        """The status and body of an HTTP answer; its headers have dates and ids that differ in every run."""
        value = self._value(data.get("value"))
        if data.get("cancelled") or data.get("error") is not None or not isinstance(value, dict):
            return self._outcome_text(data, "value")
        if "status" not in value or "headers" not in value:
            return _json({key: each for key, each in value.items() if key != "pid"})
        pieces = self.resolve(data.get("pieces"))
        body = _join(pieces) if pieces else value.get("body", "")
        return f"{value['status']}\n{_indent(body) if isinstance(body, str) else _json(body)}".rstrip()

    def _request_sections(self, data: dict[str, JsonValue]) -> Iterator[_Section]:
        """The new messages of a request; chat histories repeat the earlier ones, answers and results."""
        request: Any = self._value(data["request"])
        conversation = read_conversation(request)
        if conversation is None:
            texts = [*_items(request.get("body", request) if isinstance(request, dict) else request)]
        else:
            texts = [("system", conversation.system)] if conversation.system else []
            for message in conversation.messages:
                texts.append((message.role, "\n".join(filter(None, map(_part, message.parts)))))
        messages: list[_Section] = []
        known: dict[tuple[str, str], _Section] = {}
        for key in texts:
            known[key] = known.get(key) or self.known.get(key) or _section(*key)
            messages.append(known[key])
        self.known = known
        before, self.messages = self.messages, Counter(messages)
        yield _section(f"model {data.get('model') or data.get('provider')}", "")
        for section in messages:
            if before[section] > 0:
                before[section] -= 1
            elif section.excerpt not in self.shown:
                yield section

    def _answer(self, data: dict[str, JsonValue]) -> str:
        if data.get("cancelled") or data.get("error") is not None:
            return self._outcome_text(data, "response")
        if data.get("modelError") is not None:
            return _json(self._value(data["modelError"]))
        response, pieces = self._value(data.get("response")), self._value(data.get("pieces"))
        has_bytes = pieces is not None or (isinstance(response, dict) and response.get("body") is not None)
        if has_bytes:
            parts = read_text_parts(data.get("provider"), response, pieces)
        else:
            neutral = read_neutral_response(str(data.get("provider")), response)
            parts = None if neutral is None else neutral.parts
        if parts is None:
            return _json(response)
        text, calls = "", []
        for part in parts:
            if isinstance(part, Text):
                text += part.text
            elif isinstance(part, ToolCallPart):
                calls.append(_part(part))
        return "\n".join([text, *calls] if text else calls) or str(data.get("stopReason"))


def _items(body: Any) -> Iterator[tuple[str, str]]:
    """The titles and texts of a request in an unknown format; lists by item, because they grow."""
    lists = (
        {key: value for key, value in body.items() if isinstance(value, list)}
        if isinstance(body, dict)
        else {}
    )
    rest = {key: value for key, value in body.items() if key not in lists} if lists else body
    if rest or not lists:
        yield "asked", _json(rest)
    for key, items in lists.items():
        yield from ((key, _json(item)) for item in items)


def _part(part: Part) -> str:
    match part:
        case Text(text=text):
            return text
        case ToolCallPart(name=name, arguments=arguments):
            return f"calls {name} with {_json(arguments)}"
        case ToolResultPart():
            return _json(_plain(part.to_json().get("content")))
        case _:
            return f"({type(part).__name__.lower()})"


def _plain(value: object) -> object:
    """A recorded value without the marks that keep its Python type."""
    if isinstance(value, list):
        return [_plain(child) for child in value]
    if not isinstance(value, dict):
        return value
    if "$py" in value:
        return _plain(value["value"]) if "value" in value else f"({value.get('type', value['$py'])})"
    return {key: _plain(child) for key, child in value.items()}


def _failure(error: JsonValue) -> str:
    if not isinstance(error, dict) or "type" not in error:
        return f"failed: {_json(error)}"
    name = str(error["type"]).rpartition(":")[2]
    return f"failed: {name}: {error.get('message', '')}".removesuffix(": ")


def _json(value: object) -> str:
    if isinstance(value, str):
        return value
    text = _dump(value)
    # The length of Python's notation decides; for plain ASCII it is the length of the JSON text.
    is_same_length = text.isascii() and "\\" not in text and "\x7f" not in text
    is_short = len(text if is_same_length else str(value)) < 80
    # The json module indents in Python; msgspec makes the same text in C.
    return text if is_short else msgspec.json.format(text, indent=2)


def _join(pieces: list[Any]) -> str:
    """The pieces of a stream, which are texts or bytes, as one text."""
    joined = b"".join(
        piece.encode("utf-8", "surrogateescape") if isinstance(piece, str) else b64decode(piece["value"])
        for piece in pieces
    )
    return joined.decode("utf-8", "backslashreplace")


def _indent(text: str) -> str:
    """A long JSON text with a line for each member; any other text unchanged."""
    if len(text) < 80 or not text.lstrip().startswith(("{", "[")):
        return text
    try:
        return msgspec.json.format(text, indent=2)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return text


def _escape_controls(line: str) -> str:
    return "".join(
        sign if sign.isprintable() or sign == "\t" else sign.encode("unicode_escape", "replace").decode()
        for sign in line
    )

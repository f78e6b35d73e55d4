"""Payloads as they stand in events: without secrets, large ones in a blob, nothing written twice."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from hashlib import sha256
from typing import Any, Final, NamedTuple

import msgspec
from orjson import Fragment

from reenact.boundary import Call
from reenact.canonical import JsonValue, digest_of_bytes, encode_clean
from reenact.recorder.sink import CaptureSink
from reenact.redaction import Redactor
from reenact.values.codec import (
    dump_sorted,
    embed,
    failure_text,
    is_canonical,
    is_deep,
    is_in_order,
    is_plain,
    object_text,
    plain_text,
    to_ordered_text,
    to_text,
)

_MEMBERS: Final = frozenset(
    {"args", "content", "details", "error", "pieces", "request", "response", "result", "value"}
)
"""The members of an event's data that may be too large for its line."""

REF: Final = "$ref"
THEN: Final = "then"
_MIN_BYTES: Final = 200
"""Smaller values are cheaper to repeat than to refer to."""
_SMALL_CHARS: Final = _MIN_BYTES // len(b"\\u0000") - 1
"""A string of so many characters is smaller than that, whatever they are; a number always is."""
_Raw = msgspec.Raw
_decode: Final = msgspec.json.Decoder().decode
_decode_members: Final = msgspec.json.Decoder(dict[str, _Raw]).decode

_ASKED_BYTES: Final = 8_000
"""Of source code one event in seventy is suspect: with more at once, most would be asked about twice."""

ReportedEvent = tuple[str, dict[str, Any], int]
"""An event that a source tells of: its type, its data, and when it was, in ms."""


class StoredAnswer(msgspec.Struct, frozen=True):
    """A payload that an agent gets back."""

    stored: msgspec.Raw
    """As it stands in its event."""
    text: bytes
    """The whole of it."""
    is_redacted: bool = False


class RedactedModelCall(NamedTuple):
    """A call that asks a model, as it may be written."""

    text: bytes
    """The canonical text of what is asked."""
    request: object
    """What that text says."""
    facts: dict[str, Any]
    """What is recorded beside it; each is itself or its text."""


class Payloads:
    """Makes the payloads of one run; what it returns may be written."""

    def __init__(self, redactor: Redactor, sink: CaptureSink, *, threshold_bytes: int) -> None:
        self._redactor = redactor
        self._sink = sink
        self._threshold_bytes = threshold_bytes

    def redact_request(self, value: object, *, is_json: bool = False) -> msgspec.Raw:
        """What was asked, to be compared in replay."""
        text = self._redactor.redact_json(to_text(value, is_json=is_json))
        return _Raw(text) if len(text) <= self._threshold_bytes else self.store(text)

    def redact_model_call(self, call: Call) -> RedactedModelCall:
        """A call that asks a model; its request itself, only to be read, where nothing in that changes."""
        facts, headers = _split_facts(call)
        plain = text = to_text(call.request, is_json=call.is_json)
        plain_facts = facts_text = object_text(facts, is_json=call.is_json)
        # Both in one search: there is hardly ever something to hide in either.
        if self._redactor.is_suspect(plain + b"\n" + plain_facts):
            text = self._redactor.redact_json(plain)
            facts_text = self._redactor.redact_json(plain_facts)
        is_itself = call.is_json and text is plain and is_plain(text)
        if facts_text is not plain_facts or not is_plain(facts_text):
            facts = _decode_members(facts_text)
        return RedactedModelCall(
            text, call.request if is_itself else _decode(text), facts | self._redact_headers(headers)
        )

    def answer(self, value: object) -> StoredAnswer:
        """What was answered; the agent gets it back in replay with its members in order."""
        plain = to_ordered_text(value)
        text = self._redactor.redact_ordered_json(plain)
        if text is plain and len(text) <= self._threshold_bytes:
            return StoredAnswer(_Raw(embed(text, value)), text)
        return StoredAnswer(self.store_answer(text), text, text is not plain)

    def whole(self, data: dict[str, object], answer: str, *, is_json: bool = False) -> bytes | None:
        """The text of an event's data if it can be written as it is: small, in order, nothing to hide."""
        text = plain_text(data, is_json=is_json)
        if text is None or len(text) > self._threshold_bytes or not is_in_order(data[answer], text):
            return None
        return None if self._redactor.is_suspect(text) else text

    def reported_lines(
        self, events: Sequence[ReportedEvent], *, is_json: bool
    ) -> Iterator[tuple[bytes, bytes, int]]:
        """Events that a source tells of, as they can be written: type, data and time of each.

        They are encoded and looked through many at once; one in which something may have to be hidden, kept
        in a blob or in its own order is made by itself.
        """
        encoded = _encode_reported(events) if is_json else None
        suspects = self._find_suspects([given for _, given in encoded or ()])
        most_bytes = self._threshold_bytes
        for number, (event_type, data, time_ms) in enumerate(events):
            if encoded is not None:
                text, given = encoded[number]
                if (
                    len(text) <= most_bytes
                    and is_canonical(given)
                    and is_plain(given)
                    and number not in suspects
                    and not is_deep(text)
                    and (event_type != "llm_response" or is_in_order(data["response"], text))
                ):
                    yield event_type.encode(), text, time_ms
                    continue
            yield event_type.encode(), self.reported_line(event_type, data, is_json=is_json), time_ms

    def _find_suspects(self, texts: Sequence[bytes]) -> set[int]:
        """Which of *texts* may hold something to hide: many are asked about at once, most have nothing."""
        is_suspect = self._redactor.is_suspect
        found: set[int] = set()
        asked: dict[int, bytes] = {}
        size_bytes = 0
        for number, text in enumerate(texts):
            asked[number] = text
            size_bytes += len(text)
            if size_bytes > _ASKED_BYTES or number == len(texts) - 1:
                if is_suspect(b"\n".join(asked.values())):
                    found.update(each for each, text in asked.items() if is_suspect(text))
                asked, size_bytes = {}, 0
        return found

    def reported_line(self, event_type: str, data: dict[str, object], *, is_json: bool) -> bytes:
        """The same of one event: without secrets, what is large in a blob."""
        if event_type == "llm_response":  # whose members keep their order
            text = self._redactor.redact_ordered_json(to_ordered_text(data["response"], is_json=is_json))
            rest = {name: value for name, value in data.items() if name != "response"}
            return encode_clean(self.redact_members(rest) | {"response": self.store_answer(text)})
        if event_type == "llm_request":
            text = self._redactor.redact_json(to_text(data["request"], is_json=is_json))
            rest = self.redact_members({name: value for name, value in data.items() if name != "request"})
            digest = digest_of_bytes(text)
            hashes = {"inputHash": digest, "requestHash": digest}
            return encode_clean(rest | hashes | {"request": self.store(text)})
        text = self._redactor.redact_json(object_text(data, is_json=is_json))
        return text if len(text) <= self._threshold_bytes else encode_clean(self._store_members(text))

    def redact_members(self, data: dict[str, object], *, is_json: bool = False) -> dict[str, Any]:
        """An event's data, or part of it, as it can be written: each member is itself or its text."""
        plain = object_text(data, is_json=is_json)
        text = self._redactor.redact_json(plain)
        if text is plain and is_plain(text) and len(text) <= self._threshold_bytes:
            return {**data}
        return self._store_members(text) if len(text) > self._threshold_bytes else _decode_members(text)

    def _store_members(self, text: bytes) -> dict[str, JsonValue]:
        members: dict[str, Any] = _decode_members(text)
        return members | {name: self.store(bytes(members[name])) for name in members.keys() & _MEMBERS}

    def redact_facts(self, call: Call) -> dict[str, Any]:
        """What is recorded beside a call."""
        facts, headers = _split_facts(call)
        return self.redact_members(facts, is_json=call.is_json) | self._redact_headers(headers)

    def _redact_headers(self, headers: dict[str, str] | None) -> dict[str, msgspec.Raw]:
        """HTTP headers one by one, for clients send most of them again."""
        if headers is None:
            return {}
        try:
            return {"headers": _Raw(self._redactor.redact_header_object(headers))}
        except UnicodeEncodeError:
            return self.redact_members({"headers": headers})

    def store(self, text: bytes) -> msgspec.Raw:
        """*text* itself, or a reference to its blob."""
        if len(text) <= self._threshold_bytes:
            return _Raw(text)
        return _Raw(encode_clean({"$blob": self._sink.put_blob(text), "bytes": len(text)}))

    def store_answer(self, ordered_text: bytes) -> msgspec.Raw:
        """The same for a text whose members are not in canonical order."""
        is_small = len(ordered_text) <= self._threshold_bytes
        return _Raw(embed(ordered_text)) if is_small else self.store(ordered_text)

    def failure(self, error: BaseException) -> msgspec.Raw:
        """What was raised."""
        return self.store(self._redactor.redact_json(failure_text(error)))

    def pieces_text(self, pieces: list[Any]) -> bytes:
        """A stream's pieces; a secret that was cut between two of them is found on the joined text."""
        if pieces and all(isinstance(piece, bytes) for piece in pieces):
            return to_ordered_text(self._redactor.redact_chunks(pieces))
        if pieces and all(isinstance(piece, str) for piece in pieces):
            return self._redactor.redact_ordered_json(to_ordered_text(self._redact_strings(pieces)))
        lines = self._redact_lines([_piece_text(piece) for piece in pieces])
        return self._redactor.redact_ordered_json(b"[%b]" % b",".join(lines))

    def _redact_strings(self, pieces: list[str]) -> list[str]:
        chunks = [piece.encode("utf-8", "surrogatepass") for piece in pieces]
        redacted = self._redactor.redact_chunks(chunks)
        return pieces if redacted == chunks else [chunk.decode("utf-8", "replace") for chunk in redacted]

    def _redact_lines(self, texts: list[bytes]) -> list[bytes]:
        """JSON texts redacted as the lines of one stream, as far as they stay JSON texts that way."""
        lines = self._redactor.redact_chunks([text + b"\n" for text in texts])
        try:
            for line in lines:
                _decode(line)
        except msgspec.DecodeError:
            return texts
        return [line.removesuffix(b"\n") for line in lines]


def _split_facts(call: Call) -> tuple[dict[str, Any], dict[str, str] | None]:
    """What is recorded beside *call*, and apart from it the HTTP headers, if there are any."""
    facts = {**(call.facts() if callable(call.facts) else call.facts)}
    headers = facts.pop("headers", None)
    if headers is None or isinstance(headers, dict):
        return facts, headers
    return facts | {"headers": headers}, None


def _encode_reported(events: Sequence[ReportedEvent]) -> list[tuple[bytes, bytes]] | None:
    """The data of *events* as it is written and as it was given, secrets and all.

    ``None`` where one of them is not plain.
    """
    encoded = []
    try:
        for event_type, data, _ in events:
            given = dump_sorted(data)
            encoded.append((_with_digest(data) if event_type == "llm_request" else given, given))
        return encoded
    except MemoryError:
        raise
    except Exception:  # too deep, or a number that is too large
        return None


def _with_digest(asked: dict[str, JsonValue]) -> bytes:
    """The data of a model call with the digest of its request; there is nothing to hide in that."""
    request = dump_sorted(asked["request"])
    digest = digest_of_bytes(request)
    return dump_sorted({**asked, "inputHash": digest, "request": Fragment(request), "requestHash": digest})


def frozen_piece(value: object) -> object:
    """*value* as it is now: the agent may change what it was handed."""
    return value if isinstance(value, str | bytes) else _Raw(to_ordered_text(value))


def _piece_text(piece: object) -> bytes:
    return bytes(piece) if isinstance(piece, _Raw) else to_ordered_text(piece)


class _Place(NamedTuple):
    call_id: str
    path: tuple[str, ...]
    items: int | None

    def reference(self) -> dict[str, object]:
        where: dict[str, object] = {"call": self.call_id, "path": list(self.path)}
        if self.items is not None:
            where["items"] = self.items
        return {REF: where}


class Sharing:
    """What a run has written so far, by digest, so that each message of a growing history is written once.

    A list that begins like a list written before becomes a reference to it and the rest:
    ``{"$ref": {"call": "c7", "path": ["body", "messages"], "items": 20}, "then": [...]}``. A large value
    that was written before, such as the tool schemas, becomes a reference without ``items``. References
    point to the call before, not to each message, so a run of N turns costs O(N) bytes.
    """

    def __init__(self) -> None:
        self._written: dict[bytes, _Place] = {}

    def shrink(self, call_id: str, value: object, path: tuple[str, ...] = ()) -> object:
        """*value*, a request about to be written as *call_id*, with references for what is there already.

        For one caller at a time, who writes the result before the next one asks.
        """
        if isinstance(value, dict) and len(path) < 2:
            shrunk = {**value}
            for name, member in value.items():
                if isinstance(member, dict | list) or (
                    isinstance(member, str) and len(member) > _SMALL_CHARS
                ):
                    shrunk[name] = self.shrink(call_id, member, (*path, name))
            return shrunk
        if isinstance(value, list):
            return self._shrink_list(call_id, value, path)
        text = encode_clean(value)
        if len(text) < _MIN_BYTES:
            return value
        found = self._written.setdefault(sha256(text).digest(), _Place(call_id, path, None))
        return value if found.call_id == call_id else found.reference()

    def _shrink_list(self, call_id: str, value: list[object], path: tuple[str, ...]) -> object:
        """The longest beginning known already, then the rest; every new beginning becomes known."""
        chain = sha256()
        size_bytes = known_bytes = 0
        known: _Place | None = None
        for count, item in enumerate(value, 1):
            text = encode_clean(item)
            size_bytes += len(text)
            chain.update(b"%d:" % len(text))
            chain.update(text)
            place = self._written.get(digest := chain.digest())
            if place is None:
                self._written[digest] = _Place(call_id, path, count)
            elif place.call_id != call_id:
                known, known_bytes = place, size_bytes
        if known is None or known_bytes < _MIN_BYTES:
            return value
        return known.reference() | {THEN: value[known.items :]}

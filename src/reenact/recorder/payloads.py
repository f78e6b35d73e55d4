"""Prepares payloads for events: redacts them, moves large ones to blobs, refers to repeated ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from itertools import islice
from typing import Any, Final, NamedTuple

import msgspec
from orjson import Fragment

from reenact.boundary import Call
from reenact.canonical import JsonValue, digest_of_bytes, encode_clean, is_canonical
from reenact.recorder.sink import CaptureSink
from reenact.redaction import Redactor
from reenact.values.codec import (
    dump_sorted,
    embed,
    failure_text,
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
_MOST_PLACES: Final = 50_000
"""Then the older half is forgotten, so that a run of any length takes the same memory, up to 20 MB."""
_SMALL_CHARS: Final = _MIN_BYTES // len(b"\\u0000") - 1
"""A string of at most this many characters is always smaller than that; so is a number."""
_Raw = msgspec.Raw
_decode: Final = msgspec.json.Decoder().decode
_decode_members: Final = msgspec.json.Decoder(dict[str, _Raw]).decode

_ASKED_BYTES: Final = 8_000
"""How much text is searched for secrets at once; in source code one event in seventy is suspect, so larger
batches would mostly be searched twice."""

ReportedEvent = tuple[str, dict[str, Any], int]
"""An imported event: its type, its data and its time in ms."""


class StoredAnswer(msgspec.Struct, frozen=True):
    """A payload that the agent gets back in replay."""

    stored: msgspec.Raw
    """Its form in the event: the text, or a reference to a blob."""
    text: bytes
    """The whole text."""
    is_redacted: bool = False


class RedactedModelCall(NamedTuple):
    text: bytes
    """The canonical text of the request."""
    request: object
    """The value of that text."""
    facts: dict[str, Any]
    """What is recorded with the request; each is a value or its JSON text."""


class Payloads:
    """Makes the payloads of one run; all that it returns is redacted."""

    def __init__(self, redactor: Redactor, sink: CaptureSink, *, threshold_bytes: int) -> None:
        self._redactor = redactor
        self._sink = sink
        self._threshold_bytes = threshold_bytes

    def redact_request(self, value: object, *, is_json: bool = False) -> msgspec.Raw:
        """The request of a call, which replay compares."""
        text = self._redactor.redact_request(to_text(value, is_json=is_json))
        return _Raw(text) if len(text) <= self._threshold_bytes else self.store(text)

    def redact_model_call(self, call: Call) -> RedactedModelCall:
        """Redact a model call; the result holds the call's own request where redaction changed nothing."""
        facts = _facts_of(call)
        self._redactor.learn(call.headers)
        plain = text = to_text(call.request, is_json=call.is_json)
        plain_facts = facts_text = object_text(facts, is_json=call.is_json)
        # One search for both: there is hardly ever a secret in either.
        if self._redactor.is_suspect(plain + b"\n" + plain_facts):
            text = self._redactor.redact_request(plain)
            facts_text = self._redactor.redact_json(plain_facts)
        is_itself = call.is_json and text is plain and is_plain(text)
        if facts_text is not plain_facts or not is_plain(facts_text):
            facts = _decode_members(facts_text)
        return RedactedModelCall(
            text, call.request if is_itself else _decode(text), facts | self._redact_headers(call.headers)
        )

    def answer(self, value: object) -> StoredAnswer:
        """The answer of a call; its members keep their order, because the agent gets it back in replay."""
        plain = to_ordered_text(value)
        text = self._redactor.redact_ordered_json(plain)
        if text is plain and len(text) <= self._threshold_bytes:
            return StoredAnswer(_Raw(embed(text, value)), text)
        return StoredAnswer(self.store_answer(text), text, text is not plain)

    def encode_if_plain(self, data: dict[str, object], answer: str, *, is_json: bool = False) -> bytes | None:
        """The text of an event's data if it is small, in order and without secrets; else ``None``."""
        text = plain_text(data, is_json=is_json)
        if text is None or len(text) > self._threshold_bytes or not is_in_order(data[answer], text):
            return None
        return None if self._redactor.is_suspect(text) else text

    def encode_reported(
        self, events: Sequence[ReportedEvent], *, is_json: bool
    ) -> Iterator[tuple[bytes, bytes, int]]:
        """The type, data and time of each imported event, ready to be written.

        They are encoded and searched in batches; an event that may hold a secret, needs a blob or has an
        order to keep is made on its own.
        """
        encoded = _encode_reported(events) if is_json else None
        suspects = self._find_suspects([given for _, given in encoded or ()])
        most_bytes = self._threshold_bytes
        for number, (event_type, data, time_ms) in enumerate(events):
            if encoded is not None:
                text, given = encoded[number]
                if (
                    len(text) <= most_bytes
                    and number not in suspects
                    and (
                        isinstance(data.get("result"), str)  # has no structure, and is most of a transcript
                        or (is_canonical(given) and is_plain(given) and not is_deep(text))
                    )
                    and (event_type != "llm_response" or is_in_order(data["response"], text))
                ):
                    yield event_type.encode(), text, time_ms
                    continue
            yield event_type.encode(), self.encode_reported_event(event_type, data, is_json=is_json), time_ms

    def _find_suspects(self, texts: Sequence[bytes]) -> set[int]:
        """Which of *texts* may hold a secret; searched in batches, because most hold none."""
        is_suspect = self._redactor.is_suspect
        found: set[int] = set()
        batch: dict[int, bytes] = {}
        size_bytes = 0
        for number, text in enumerate(texts):
            batch[number] = text
            size_bytes += len(text)
            if size_bytes > _ASKED_BYTES or number == len(texts) - 1:
                if is_suspect(b"\n".join(batch.values())):
                    found.update(each for each, text in batch.items() if is_suspect(text))
                batch, size_bytes = {}, 0
        return found

    def encode_reported_event(self, event_type: str, data: dict[str, object], *, is_json: bool) -> bytes:
        """The data of one imported event, redacted and with large members in blobs."""
        if event_type == "llm_response":  # its members keep their order
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
        """Redact an event's data or part of it; each member of the result is a value or its JSON text."""
        plain = object_text(data, is_json=is_json)
        text = self._redactor.redact_json(plain)
        if text is plain and is_plain(text) and len(text) <= self._threshold_bytes:
            return {**data}
        return self._store_members(text) if len(text) > self._threshold_bytes else _decode_members(text)

    def _store_members(self, text: bytes) -> dict[str, JsonValue]:
        members: dict[str, Any] = _decode_members(text)
        return members | {name: self.store(bytes(members[name])) for name in members.keys() & _MEMBERS}

    def redact_facts(self, call: Call) -> dict[str, object]:
        """The facts of a call, redacted."""
        self._redactor.learn(call.headers)
        return self.redact_members(_facts_of(call), is_json=call.is_json) | self._redact_headers(call.headers)

    def _redact_headers(self, headers: Mapping[str, str]) -> dict[str, msgspec.Raw]:
        """Redact HTTP headers one by one: clients repeat most of them, so the results are cached."""
        if not headers:
            return {}
        try:
            return {"headers": _Raw(self._redactor.redact_header_object(headers))}
        except UnicodeEncodeError:
            return self.redact_members({"headers": headers})

    def store(self, text: bytes) -> msgspec.Raw:
        """*text* itself, or a reference to a blob with it."""
        if len(text) <= self._threshold_bytes:
            return _Raw(text)
        return _Raw(encode_clean({"$blob": self._sink.put_blob(text), "bytes": len(text)}))

    def store_answer(self, ordered_text: bytes) -> msgspec.Raw:
        """Like :meth:`store`, for a text whose members are not in canonical order."""
        is_small = len(ordered_text) <= self._threshold_bytes
        return _Raw(embed(ordered_text)) if is_small else self.store(ordered_text)

    def failure(self, error: BaseException) -> msgspec.Raw:
        """The redacted form of an exception."""
        return self.store(self._redactor.redact_json(failure_text(error)))

    def pieces_text(self, pieces: list[Any]) -> bytes:
        """The text of a stream's pieces; the joined text is searched, so a secret may span two of them."""
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
        """Redact JSON texts as the lines of one stream; unchanged if a line would not be JSON any more."""
        lines = self._redactor.redact_chunks([text + b"\n" for text in texts])
        try:
            for line in lines:
                _decode(line)
        except msgspec.DecodeError:
            return texts
        return [line.removesuffix(b"\n") for line in lines]


def _facts_of(call: Call) -> dict[str, Any]:
    return {**(call.facts() if callable(call.facts) else call.facts)}


def _encode_reported(events: Sequence[ReportedEvent]) -> list[tuple[bytes, bytes]] | None:
    """For each event its data as it is written and as it was given, both not yet redacted.

    ``None`` if one of them cannot be encoded the fast way.
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


def _with_digest(data: dict[str, JsonValue]) -> bytes:
    """The data of a model call with the digest of its request."""
    request = dump_sorted(data["request"])
    digest = digest_of_bytes(request)
    return dump_sorted({**data, "inputHash": digest, "request": Fragment(request), "requestHash": digest})


def freeze_piece(value: object) -> object:
    """A snapshot of *value*, which the agent may change later."""
    return value if isinstance(value, str | bytes) else _Raw(to_ordered_text(value))


def _piece_text(piece: object) -> bytes:
    return bytes(piece) if isinstance(piece, _Raw) else to_ordered_text(piece)


class _WrittenPlace(NamedTuple):
    call_id: str
    path: tuple[str, ...]
    items: int | None

    def reference(self) -> dict[str, object]:
        where: dict[str, object] = {"call": self.call_id, "path": list(self.path)}
        if self.items is not None:
            where["items"] = self.items
        return {REF: where}


class Sharing:
    """Remembers by digest what a run has written, so that each message of a growing history is written once.

    A list that begins like a list written before becomes a reference to it and the rest:
    ``{"$ref": {"call": "c7", "path": ["body", "messages"], "items": 20}, "then": [...]}``. A large value
    that was written before, such as the tool schemas, becomes a reference without ``items``. References
    point to the call before, not to each message, so a run of N turns costs O(N) bytes.
    """

    def __init__(self) -> None:
        self._written: dict[bytes, _WrittenPlace] = {}

    def shrink(self, call_id: str, value: object, path: tuple[str, ...] = ()) -> object:
        """Replace the parts of request *value* that were written before by references.

        *call_id* is the call about to be written. The caller holds a lock until the result is written.
        """
        if not path and len(self._written) > _MOST_PLACES:
            self._written = dict(islice(self._written.items(), len(self._written) // 2, None))
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
        digest = sha256(text).digest()
        found = self._written.get(digest)
        if found is None:
            found = self._written[digest] = _WrittenPlace(call_id, path, None)
        return value if found.call_id == call_id else found.reference()

    def _shrink_list(self, call_id: str, value: list[object], path: tuple[str, ...]) -> object:
        """Replace the longest prefix written before by a reference, and remember every new prefix."""
        chain = sha256()
        size_bytes = 0
        prefixes: list[tuple[bytes, int]] = []
        for item in value:
            text = encode_clean(item)
            size_bytes += len(text)
            chain.update(b"%d:" % len(text))
            chain.update(text)
            prefixes.append((chain.digest(), size_bytes))
        # From the longest on: shorter ones may be forgotten, and are not needed again.
        new: list[tuple[bytes, int]] = []
        known: _WrittenPlace | None = None
        while prefixes and known is None:
            digest, size_bytes = prefixes.pop()
            place = self._written.get(digest)
            if place is None:
                new.append((digest, len(prefixes) + 1))
            elif place.call_id != call_id:
                known = place
        for digest, count in reversed(new):
            self._written[digest] = _WrittenPlace(call_id, path, count)
        if known is None or size_bytes < _MIN_BYTES:
            return value
        return known.reference() | {THEN: value[known.items :]}

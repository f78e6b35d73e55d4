"""Payloads as they stand in events: without their secrets, and in a blob where they are large."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from reenact.canonical import encode_clean
from reenact.recorder.sink import CaptureSink
from reenact.redaction import Redactor
from reenact.values.codec import (
    embedded,
    failure_text,
    is_plain,
    object_text,
    to_ordered_text,
    to_text,
    whole_text,
)

_MEMBERS: Final = frozenset(
    {"args", "content", "details", "error", "pieces", "request", "response", "result", "value"}
)
"""The members of an event's data that may be too large for its line."""

_Raw = msgspec.Raw
_decode: Final = msgspec.json.Decoder().decode
_decode_members: Final = msgspec.json.Decoder(dict[str, _Raw]).decode


class Answer(msgspec.Struct, frozen=True):
    """A payload that an agent gets back."""

    stored: msgspec.Raw
    """As it stands in its event."""
    text: bytes
    """The whole of it."""
    is_redacted: bool = False


class Payloads:
    """Makes the payloads of one run; what it returns may be written."""

    def __init__(self, redactor: Redactor, sink: CaptureSink, *, threshold_bytes: int) -> None:
        self._redactor = redactor
        self._sink = sink
        self._threshold_bytes = threshold_bytes

    def text(self, value: Any, *, is_json: bool = False) -> bytes:
        """The canonical text of what was asked, to be compared in replay."""
        return self._redactor.redact_json(to_text(value, is_json=is_json))

    def asked(self, value: Any, *, is_json: bool = False) -> tuple[bytes, Any]:
        """The same, and what it says: *value* itself, only to be read, where nothing in it changes."""
        plain = to_text(value, is_json=is_json)
        text = self._redactor.redact_json(plain)
        is_itself = is_json and text is plain and is_plain(text)
        return text, value if is_itself else _decode(text)

    def answer(self, value: Any) -> Answer:
        """What was answered; the agent gets it back in replay with its members in order."""
        plain = to_ordered_text(value)
        text = self._redactor.redact_ordered_json(plain)
        if text is plain and len(text) <= self._threshold_bytes:
            return Answer(_Raw(embedded(text, value)), text)
        return Answer(self.stored_answer(text), text, text is not plain)

    def whole(self, data: dict[str, Any], answer: str, *, is_json: bool = False) -> bytes | None:
        """The text of an event's data if it can be written as it is: small, and nothing in it to hide."""
        text = whole_text(data, answer, is_json=is_json)
        is_fit = text is not None and len(text) <= self._threshold_bytes and self._redactor.is_clean(text)
        return text if is_fit else None

    def members(self, data: dict[str, Any]) -> dict[str, Any]:
        """An event's data, or part of it, as it can be written: each member is itself or its text."""
        plain = object_text(data)
        text = self._redactor.redact_json(plain)
        if text is plain and is_plain(text) and len(text) <= self._threshold_bytes:
            return {**data}
        members: dict[str, Any] = _decode_members(text)
        if len(text) > self._threshold_bytes:
            members |= {name: self.stored(bytes(members[name])) for name in members.keys() & _MEMBERS}
        return members

    def facts(self, facts: dict[str, Any]) -> dict[str, Any]:
        """What is recorded beside a call; HTTP headers one by one, for clients send most of them again."""
        headers = facts.get("headers")
        if not isinstance(headers, dict):
            return self.members(facts)
        try:
            text = self._redactor.redact_header_object(headers)
        except UnicodeEncodeError:
            return self.members(facts)
        rest = {**facts}
        del rest["headers"]
        return self.members(rest) | {"headers": _Raw(text)}

    def stored(self, text: bytes) -> msgspec.Raw:
        """*text* itself, or a reference to its blob."""
        if len(text) <= self._threshold_bytes:
            return _Raw(text)
        return _Raw(encode_clean({"$blob": self._sink.put_blob(text), "bytes": len(text)}))

    def stored_answer(self, ordered_text: bytes) -> msgspec.Raw:
        """The same for a text whose members are not in canonical order."""
        is_small = len(ordered_text) <= self._threshold_bytes
        return _Raw(embedded(ordered_text)) if is_small else self.stored(ordered_text)

    def failure(self, error: BaseException) -> msgspec.Raw:
        """What was raised."""
        return self.stored(self._redactor.redact_json(failure_text(error)))

    def pieces_text(self, pieces: list[Any]) -> bytes:
        """A stream's pieces; a secret that was cut between two of them is found on the joined text."""
        if pieces and all(isinstance(piece, bytes) for piece in pieces):
            return to_ordered_text(self._redactor.redact_chunks(pieces))
        if pieces and all(isinstance(piece, str) for piece in pieces):
            return self._redactor.redact_ordered_json(to_ordered_text(self._redacted_strings(pieces)))
        lines = self._redacted_lines([_piece_text(piece) for piece in pieces])
        return self._redactor.redact_ordered_json(b"[%b]" % b",".join(lines))

    def _redacted_strings(self, pieces: list[str]) -> list[str]:
        chunks = [piece.encode("utf-8", "surrogatepass") for piece in pieces]
        redacted = self._redactor.redact_chunks(chunks)
        return pieces if redacted == chunks else [chunk.decode("utf-8", "replace") for chunk in redacted]

    def _redacted_lines(self, texts: list[bytes]) -> list[bytes]:
        """JSON texts redacted as the lines of one stream, as far as they stay JSON texts that way."""
        lines = self._redactor.redact_chunks([text + b"\n" for text in texts])
        try:
            for line in lines:
                _decode(line)
        except msgspec.DecodeError:
            return texts
        return [line.removesuffix(b"\n") for line in lines]


def frozen_piece(value: Any) -> Any:
    """*value* as it is now: the agent may change what it was handed."""
    return value if isinstance(value, str | bytes) else _Raw(to_ordered_text(value))


def _piece_text(piece: Any) -> bytes:
    return bytes(piece) if isinstance(piece, _Raw) else to_ordered_text(piece)

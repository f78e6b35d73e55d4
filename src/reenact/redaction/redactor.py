"""Takes secrets out of everything before it reaches the disk."""

from __future__ import annotations

from codecs import getincrementaldecoder
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from itertools import accumulate, pairwise
from threading import RLock
from typing import Any, AnyStr, Final

import msgspec

from reenact import canonical
from reenact.errors import UsageError
from reenact.redaction.compiled import compiled
from reenact.redaction.edits import apply, in_order, moved
from reenact.redaction.members import cookie_edits, member_edits
from reenact.redaction.names import is_cookie_name, is_secret_header
from reenact.redaction.placeholder import Placeholders, placeholder_spans, unquoted_placeholders
from reenact.redaction.profile import PROFILES, Profile
from reenact.redaction.rules import Rule
from reenact.redaction.streams import delta_edits, is_interleaved, joined_deltas
from reenact.redaction.tagged import is_tagged_scalar, redacted_scalar
from reenact.redaction.text import TextRules
from reenact.redaction.urls import url_edits

_decode: Final = msgspec.json.Decoder().decode
_REMEMBERED_CHARS: Final = 200
"""Longer texts hardly come twice; shorter ones, such as headers, come with every call."""


class Redactor:
    """Redacts payloads of one capture; equal secrets get equal placeholders under one *salt*.

    Clean payloads, nearly all, cost one pass of a literal search. Safe to use from several threads.
    """

    def __init__(
        self,
        profile: Profile,
        *,
        secrets: Sequence[str | bytes] = (),
        salt: bytes,
        extra_rules: Sequence[Rule] = (),
    ) -> None:
        if profile not in PROFILES:
            raise UsageError(f"redaction profile {profile!r} is unknown; use one of {', '.join(PROFILES)}")
        known = compiled(profile, tuple(secrets), tuple(extra_rules))
        self._is_suspect = known.may_hold_secret
        self.count = 0
        """How many values were replaced so far."""
        self._count_lock = RLock()  # a finaliser may record in the middle
        self._placeholders = Placeholders(salt, known.every_shape.kind_of)
        self._text = TextRules(
            placeholders=self._placeholders,
            registered=known.registered,
            shapes=known.shapes,
            is_suspect=lambda text: self._is_suspect(_to_bytes(text)),
            is_base64_suspect=lambda text: known.may_hold_base64(_to_bytes(text)),
            by_name=profile != "none",
            strict=profile == "strict",
        )
        self._redact_known_member = lru_cache(4096)(self._text.redact_member)
        self._redact_known_header = lru_cache(1024)(self._known_header)

    def is_clean(self, text: bytes) -> bool:
        """Whether nothing would be replaced in *text*, as far as a quick look can tell."""
        return not self._is_suspect(text)

    def redact_json(self, text: bytes) -> bytes:
        """Canonical JSON without secrets; the same object if there are none."""
        return self._redact_json(text, canonical.encode_clean) if self._is_suspect(text) else text

    def redact_ordered_json(self, text: bytes) -> bytes:
        """JSON without secrets, its members in the order they had."""
        return self._redact_json(text, msgspec.json.encode) if self._is_suspect(text) else text

    def _redact_json(self, text: bytes, encode: Callable[[Any], bytes]) -> bytes:
        return self._counted(text, encode(self._redact_value(None, _decode(text))))

    def redact_text(self, text: str) -> str:
        """Running text: messages of errors, lines of logs, diagnostics."""
        return self._counted(text, self._text.redact(text))

    def redact_bytes(self, data: bytes) -> bytes:
        """A body as it went over the wire; what is text in binary data is found too."""
        return self.redact_chunks([data])[0]

    def redact_chunks(self, chunks: Sequence[bytes]) -> list[bytes]:
        """The chunks of a stream, as many as before; joined they are the redacted joined stream.

        The placeholder of a secret that was cut stands in the chunk in which the secret began.
        """
        data = b"".join(chunks)
        if not (self._is_suspect(data) or self._is_suspect_stream(data)):
            return list(chunks)
        pieces = _decoded(chunks)
        text = "".join(pieces)
        redacted, cuts = self._redact_stream(text, list(accumulate(map(len, pieces))))
        if self._counted(text, redacted) is text:
            return list(chunks)
        return [_to_bytes(redacted[start:end]) for start, end in pairwise((0, *cuts))]

    def redact_headers(self, headers: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
        """HTTP headers in their order; names are kept, and so are scheme words and cookie names."""
        return [(name, self._counted(value, self._redact_header(name, value))) for name, value in headers]

    def redact_header_object(self, headers: Mapping[str, str]) -> bytes:
        """HTTP headers by their names, as canonical JSON; clients send nearly the same with every call."""
        members = [self._redact_known_header(name, headers[name]) for name in sorted(headers)]
        text = b"{%b}" % b",".join(members)
        self._count(text.count(b"<secret:"))
        return text

    def redact_arguments(self, arguments: Sequence[str]) -> list[str]:
        """The arguments of a program; what stands behind ``--api-key`` is secret, however it looks."""
        names = [None, *(_option_name(argument) for argument in arguments)]
        return [
            self._counted(argument, self._text.redact_member(name if argument[:1] != "-" else None, argument))
            for name, argument in zip(names, arguments, strict=False)
        ]

    def redact_url(self, url: str) -> str:
        """A URL without user information, secret parameters and tokens."""
        plain = apply(url, unquoted_placeholders(url))
        if self._text.by_name:
            plain = apply(plain, in_order(url_edits(plain, self._placeholders), placeholder_spans(plain)))
        return self._counted(url, self._text.redact(plain))

    def _counted(self, before: AnyStr, after: AnyStr) -> AnyStr:
        """*after*, or *before* itself if they are equal."""
        replaced = _replaced(before, after)
        self._count(replaced)
        return after if replaced else before

    def _count(self, replaced: int) -> None:
        if replaced:
            with self._count_lock:
                self.count += replaced

    def _is_suspect_stream(self, stream: bytes) -> bool:
        return is_interleaved(stream) or any(map(self._is_suspect, joined_deltas(stream)))

    def _redact_value(self, name: str | None, value: Any) -> Any:
        if isinstance(value, str):
            return self._redact_string(name, value)
        if isinstance(value, dict):
            if is_tagged_scalar(value):
                return redacted_scalar(value, lambda text: self._text.redact_member(name, text))
            return self._redact_object(value)
        if isinstance(value, list):
            return [self._redact_value(None, item) for item in value]
        if isinstance(value, int | float) and not isinstance(value, bool):
            text = str(value)
            redacted = self._text.redact_number(name, text)
            return value if redacted == text else redacted
        return value

    def _redact_string(self, name: str | None, value: str) -> str:
        is_short = len(value) <= _REMEMBERED_CHARS
        return (self._redact_known_member if is_short else self._text.redact_member)(name, value)

    def _redact_object(self, value: dict[str, Any]) -> dict[str, Any]:
        members = {self._redact_string(None, name): member for name, member in value.items()}
        # With log probabilities, "token" names a piece of text.
        ordinary = "token" if "logprob" in members else None
        redacted = {
            name: self._redact_value(None if name == ordinary else name, member)
            for name, member in members.items()
        }
        # Lists of headers and variables: {"name": "X_API_KEY", "value": "…"}.
        announced = redacted.get("name", redacted.get("key")) if len(members) == 2 else None
        if isinstance(announced, str) and "value" in members:
            redacted["value"] = self._redact_value(announced, members["value"])
        return redacted

    def _redact_stream(self, text: str, cuts: Sequence[int]) -> tuple[str, Sequence[int]]:
        while True:
            before = text
            edits = in_order(delta_edits(text, self._redact_pieces))
            text, cuts = self._text.redact_with_cuts(apply(text, edits), moved(cuts, edits))
            if text == before:
                return text, cuts

    def _redact_pieces(self, pieces: Sequence[str]) -> list[str]:
        text, cuts = self._text.redact_with_cuts("".join(pieces), list(accumulate(map(len, pieces))))
        return [text[start:end] for start, end in pairwise((0, *cuts))]

    def _known_header(self, name: str, value: str) -> bytes:
        """One member of an object of headers, as it is written."""
        member = {name: value}
        text = canonical.encode_clean(member)
        if self._is_suspect(text):
            text = canonical.encode_clean(self._redact_object(member))
        return text[1:-1]

    def _redact_header(self, name: str, value: str) -> str:
        if not self._text.by_name or not is_secret_header(name):
            return self._text.redact(value)
        if is_cookie_name(name) and "=" in value:
            first_only = name.lower().startswith("set")
            return apply(value, in_order(cookie_edits(value, self._placeholders, first_only=first_only)))
        return apply(value, in_order(member_edits(value, self._placeholders)))


def _replaced(before: AnyStr, after: AnyStr) -> int:
    """How many values differ; a secret inside base64 leaves nothing to count."""
    mark = "<secret:" if isinstance(after, str) else b"<secret:"
    return 0 if before == after else max(1, after.count(mark) - before.count(mark))


def _option_name(argument: str) -> str | None:
    return argument.lstrip("-") if argument.startswith("-") else None


def _decoded(chunks: Sequence[bytes]) -> list[str]:
    """The chunks as text; a character that was cut belongs to the chunk in which it ends."""
    decoder = getincrementaldecoder("utf-8")("surrogateescape")
    return [decoder.decode(chunk, final=number == len(chunks)) for number, chunk in enumerate(chunks, 1)]


def _to_bytes(text: str) -> bytes:
    # Surrogates stand for bytes that are not UTF-8; lone ones from elsewhere only have to be scanned.
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass")

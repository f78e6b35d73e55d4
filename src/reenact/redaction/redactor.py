"""The redactor: removes secrets from payloads, streams, headers and arguments."""

from __future__ import annotations

from codecs import getincrementaldecoder
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, lru_cache
from itertools import accumulate, pairwise, starmap
from threading import RLock
from typing import Any, AnyStr, Final

import msgspec

from reenact import canonical
from reenact.errors import UsageError
from reenact.redaction.coded import find_wide_coding, redact_wide
from reenact.redaction.credentials import (
    credential_in_header,
    credentials_in_request,
    is_credential_header,
)
from reenact.redaction.edits import apply, move_cuts, sort_edits
from reenact.redaction.families import SecretRule
from reenact.redaction.jsontext import delta_edits, is_suspect_stream
from reenact.redaction.placeholder import Placeholders, to_bytes
from reenact.redaction.prefilter import Profile, compile_rules, register
from reenact.redaction.text import TextRules

PROFILES: Final[tuple[Profile, ...]] = ("none", "default", "strict")

_decode: Final = msgspec.json.Decoder().decode
_OFF: Final = frozenset({"", "0", "false", "no"})
_MIN_HIDDEN: Final = 6
"""Shorter texts stand in too many others by chance."""
_MAX_LEARNED: Final = 64
"""A run that sends more credentials, maybe a new one in each call, would search every payload for all."""


def default_profile(environ: Mapping[str, str]) -> Profile:
    """``strict`` if ``CI`` is set, because captures made there are usually shared; else ``default``."""
    return "default" if environ.get("CI", "").strip().lower() in _OFF else "strict"


class Redactor:
    """Redacts the payloads of one capture; equal secrets get equal placeholders under one *salt*.

    A payload without secrets, the usual case, costs one pass of a literal search. Thread-safe.
    """

    def __init__(
        self,
        profile: Profile,
        *,
        secrets: Sequence[str | bytes] = (),
        salt: bytes,
        extra_rules: Sequence[SecretRule] = (),
    ) -> None:
        if profile not in PROFILES:
            raise UsageError(f"redaction profile {profile!r} is unknown; use one of {', '.join(PROFILES)}")
        self._rules = compile_rules(profile, tuple(extra_rules))
        self._by_name, self._strict = profile != "none", profile == "strict"
        self._placeholders = Placeholders(salt, self._rules.every_shape.kind_of)
        self._secrets = tuple(secrets)
        self._learned: dict[str, None] = {}
        """Credentials that calls of this run have sent, see :meth:`learn`."""
        self._harmless_headers: set[str] = set()
        """Names of headers that hold no credential."""
        self._latest_headers: dict[str, str] = {}
        """The latest values of the others, which are nearly always the same."""
        self.count = 0
        """The number of values replaced so far."""
        self._lock = RLock()  # a finalizer may record a call while it is held
        self._use_secrets(self._secrets)
        self._make_of_names: Callable[[], Redactor] = lambda: (
            Redactor("default", secrets=secrets, salt=salt, extra_rules=extra_rules)
            if profile == "strict"
            else self
        )

    def _use_secrets(self, secrets: tuple[str | bytes, ...]) -> None:
        registered = register(secrets)
        may_hold_base64 = self._rules.base64_search(registered)
        self._text = TextRules(
            placeholders=self._placeholders,
            registered=registered,
            shapes=self._rules.shapes,
            is_suspect=lambda text: self.is_suspect(to_bytes(text)),
            is_base64_suspect=lambda text: may_hold_base64(to_bytes(text)),
            by_name=self._by_name,
            strict=self._strict,
        )
        self._encode_cached_header = lru_cache(1024)(self._encode_header)
        self.is_suspect = self._rules.prefilter.with_registered(registered).may_hold_secret
        """The prefilter: false only if nothing in a text needs redaction."""

    def learn(self, headers: Mapping[str, str]) -> None:
        """From now on, hide the credentials in *headers* of a request wherever they appear."""
        if not self._by_name:
            return
        for name in headers.keys() - self._harmless_headers:  # nearly always one
            value = headers[name]
            if self._latest_headers.get(name) == value:
                continue
            if not is_credential_header(name):
                self._harmless_headers.add(name)
                continue
            self._latest_headers[name] = value
            credential = credential_in_header(value)
            if credential is not None:
                self._learn(credential)

    def hide(self, secret: str) -> None:
        """From now on, hide *secret* wherever it appears."""
        if self._by_name and len(secret) >= _MIN_HIDDEN:
            self._learn(secret)

    def _learn(self, credential: str) -> None:
        with self._lock:
            is_new = credential not in self._learned and credential not in self._secrets
            if is_new and len(self._learned) < _MAX_LEARNED:
                self._learned[credential] = None
                self._use_secrets((*self._secrets, *self._learned))

    @cached_property
    def of_names(self) -> Redactor:
        """The redactor for file names; it is never ``strict``, since random strings are common in names."""
        return self._make_of_names()

    def redact_json(self, text: bytes) -> bytes:
        """Redact canonical JSON; returns the same object if there is no secret."""
        return self._redact_json(text, canonical.encode_clean) if self.is_suspect(text) else text

    def redact_request(self, text: bytes) -> bytes:
        """Redact the canonical JSON of a request; its credentials are hidden everywhere from now on."""
        if not self.is_suspect(text):
            return text
        if self._by_name:
            for credential in credentials_in_request(_decode(text)):
                self._learn(credential)
        return self.redact_json(text)

    def redact_ordered_json(self, text: bytes) -> bytes:
        """Redact JSON and keep the order of its members."""
        return self._redact_json(text, canonical.encode_ordered) if self.is_suspect(text) else text

    def _redact_json(self, text: bytes, encode: Callable[[Any], bytes]) -> bytes:
        return self._count_changes(text, encode(self._text.redact_value(None, _decode(text))))

    def redact_text(self, text: str) -> str:
        """Redact text: error messages, lines of logs, diagnostics."""
        return self._count_changes(text, self._text.redact(text))

    def redact_bytes(self, data: bytes) -> bytes:
        """Redact a raw body or a file, including text inside binary data."""
        wide = find_wide_coding(data)
        return self.redact_chunks([data if wide is None else self._redact_wide(data, wide)])[0]

    def _redact_wide(self, data: bytes, coding: str) -> bytes:
        """Redact text in UTF-16 or UTF-32."""
        return redact_wide(data, coding, self.redact_text)

    def redact_chunks(self, chunks: Sequence[bytes]) -> list[bytes]:
        """Redact a stream; the result has as many chunks as before.

        The placeholder of a secret that is split over chunks is in the chunk where the secret began.
        """
        data = b"".join(chunks)
        if not (self.is_suspect(data) or is_suspect_stream(data, self.is_suspect)):
            return list(chunks)
        pieces = _decode_chunks(chunks)
        text = "".join(pieces)
        redacted, cuts = self._redact_stream(text, list(accumulate(map(len, pieces))))
        if self._count_changes(text, redacted) is text:
            return list(chunks)
        return [to_bytes(redacted[start:end]) for start, end in pairwise((0, *cuts))]

    def redact_header_object(self, headers: Mapping[str, str]) -> bytes:
        """Redact HTTP headers and encode them as canonical JSON; results are cached, since headers repeat."""
        text = b"{%b}" % b",".join(starmap(self._encode_cached_header, sorted(headers.items())))
        if replaced := text.count(b"<secret:"):
            self._count(replaced)
        return text

    def redact_arguments(self, arguments: Sequence[str]) -> list[str]:
        """Redact the arguments of a program; any value after ``--api-key`` is secret."""
        arguments = list(map(canonical.as_unicode, arguments))
        redacted = self._text.redact_arguments(arguments)
        return [self._count_changes(old, new) for old, new in zip(arguments, redacted, strict=True)]

    def _count_changes(self, before: AnyStr, after: AnyStr) -> AnyStr:
        """Count the replaced values; returns *after*, or *before* itself if they are equal."""
        replaced = _count_replaced(before, after)
        if not replaced:
            return before
        self._count(replaced)
        return after

    def _count(self, replaced: int) -> None:
        with self._lock:
            self.count += replaced

    def _redact_stream(self, text: str, cuts: Sequence[int]) -> tuple[str, Sequence[int]]:
        while True:
            before = text
            edits = sort_edits(delta_edits(text, self._redact_pieces))
            text, cuts = self._text.redact_with_cuts(apply(text, edits), move_cuts(cuts, edits))
            if text == before:
                return text, cuts

    def _redact_pieces(self, pieces: Sequence[str]) -> list[str]:
        text, cuts = self._text.redact_with_cuts("".join(pieces), list(accumulate(map(len, pieces))))
        return [text[start:end] for start, end in pairwise((0, *cuts))]

    def _encode_header(self, name: str, value: str) -> bytes:
        """One redacted header as a member of a JSON object."""
        redacted = self._text.redact_member(None, name)
        return canonical.encode_clean({redacted: self._text.redact_member(name, value, in_header=True)})[1:-1]


def _count_replaced(before: AnyStr, after: AnyStr) -> int:
    """The number of replaced values; at least one, since placeholders inside base64 cannot be counted."""
    mark = "<secret:" if isinstance(after, str) else b"<secret:"
    return 0 if before == after else max(1, after.count(mark) - before.count(mark))


def _decode_chunks(chunks: Sequence[bytes]) -> list[str]:
    """Decode the chunks; a character that is split belongs to the chunk in which it ends."""
    decoder = getincrementaldecoder("utf-8")("surrogateescape")
    return [decoder.decode(chunk, final=number == len(chunks)) for number, chunk in enumerate(chunks, 1)]

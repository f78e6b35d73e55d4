"""The rules for text, one after the other until nothing is left to find."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from reenact.redaction.assignments import assignment_edits
from reenact.redaction.base64text import base64_edits
from reenact.redaction.edits import Edit, apply, in_order, moved, moved_spans
from reenact.redaction.jsontext import Scalar, json_spans, scalar_edit, scalars
from reenact.redaction.members import basic_password, cookie_edits, member_edits
from reenact.redaction.names import holds_numbers, is_cookie_name, is_secret_name
from reenact.redaction.placeholder import Placeholders, placeholder_spans
from reenact.redaction.registered import Registered
from reenact.redaction.rules import Shapes
from reenact.redaction.urls import url_edits, urls_in_text

_BEARER: Final = re.compile(r"(?i:\bbearer(?: +|%20))(?P<secret>[A-Za-z0-9._~+/\-]{8,}={0,2})")
_BASIC: Final = re.compile(r"\b[Bb]asic(?: +|%20)(?P<secret>(?=.[a-z]*[A-Z0-9+/])[A-Za-z0-9+/]{4,}={0,2})")
_COOKIES: Final = re.compile(r"(?i:\b(?P<name>(?:set-)?cookie)[ \t]*:[ \t]*)(?P<value>[^\r\n\"'\\]+)")

Text: TypeAlias = tuple[str, Sequence[int]]
"""A text, and ascending positions in it that move with it."""


@dataclass(frozen=True)
class TextRules:
    """All rules of one redactor, for text that the prefilter did not clear."""

    placeholders: Placeholders
    registered: Registered
    shapes: Shapes
    is_suspect: Callable[[str], bool]
    """The prefilter: False only if no rule can match."""
    is_base64_suspect: Callable[[str], bool]
    by_name: bool
    """Whether names and places count; without, only registered secrets and shapes do."""
    strict: bool

    def redact(self, text: str) -> str:
        """*text* without its secrets."""
        return self.redact_with_cuts(text, ())[0]

    def redact_with_cuts(self, text: str, cuts: Sequence[int]) -> Text:
        """The same, and where positions in *text* stand afterwards."""
        while self.is_suspect(text):
            before = text
            text, cuts = self._redact_once(text, cuts)
            if text == before:
                break
        return text, cuts

    def redact_member(self, name: str | None, value: str) -> str:
        """The string below the member *name* of an object, or an item of an array."""
        if self.by_name and name is not None:
            if is_secret_name(name):
                return apply(value, in_order(member_edits(value, self.placeholders)))
            if is_cookie_name(name):
                value = apply(value, in_order(self._cookies(name, value)))
        return self.redact(value)

    def redact_number(self, name: str | None, text: str) -> str:
        """A number, written out, below the member *name*."""
        if self.by_name and name is not None and is_secret_name(name) and holds_numbers(name):
            return self.placeholders.of(text)
        return apply(text, in_order(self._registered(text)))

    def _json_edits(self, text: str) -> Iterator[Edit]:
        for start, end in json_spans(text):
            has_logprobs = "logprob" in text[start:end]
            for scalar in scalars(text, start, end):
                new = self._redact_scalar(scalar, has_logprobs=has_logprobs)
                if new != scalar.value:
                    yield scalar_edit(text, scalar, new)

    def _redact_scalar(self, scalar: Scalar, *, has_logprobs: bool) -> str:
        if not scalar.is_string:
            return self.redact_number(scalar.name, scalar.value)
        # With log probabilities, "token" names a piece of text.
        name = None if has_logprobs and scalar.name == "token" else scalar.name
        return self.redact_member(name, scalar.value)

    def _redact_once(self, text: str, cuts: Sequence[int]) -> Text:
        text, cuts = _edited(text, cuts, in_order(self._json_edits(text)))
        spans = json_spans(text)
        if spans == [(0, len(text))]:
            return text, cuts
        for stage in self._stages():
            edits = in_order(stage(text), [*spans, *placeholder_spans(text)])
            spans = moved_spans(spans, edits)
            text, cuts = _edited(text, cuts, edits)
        return text, cuts

    def _stages(self) -> Iterator[Callable[[str], Iterable[Edit]]]:
        """The rules for plain text, the surest first."""
        yield self._in_base64
        yield self._registered
        yield self._shaped
        if self.by_name:
            yield self._in_urls
            yield self._in_schemes
            yield self._in_cookies
            yield self._assigned

    def _in_base64(self, text: str) -> Iterable[Edit]:
        return base64_edits(text, self.is_base64_suspect, self._redact_decoded)

    def _redact_decoded(self, text: str) -> str:
        for stage in (self._registered, self._shaped):
            text = apply(text, in_order(stage(text), placeholder_spans(text)))
        return text

    def _registered(self, text: str) -> Iterator[Edit]:
        for start, end, secret in self.registered.find(text):
            yield Edit(start, end, self.placeholders.of(secret))

    def _shaped(self, text: str) -> Iterator[Edit]:
        for start, end in self.shapes.find(text):
            yield Edit(start, end, self.placeholders.of(text[start:end]))

    def _in_urls(self, text: str) -> Iterator[Edit]:
        return urls_in_text(text, lambda url: url_edits(url, self.placeholders))

    def _in_schemes(self, text: str) -> Iterator[Edit]:
        for bearer in _BEARER.finditer(text):
            token = bearer["secret"]
            if len(token) >= 16 or re.search(r"\d", token):
                yield Edit(*bearer.span("secret"), self.placeholders.of(token))
        for basic in _BASIC.finditer(text):
            if password := basic_password(basic["secret"]):
                yield Edit(*basic.span("secret"), self.placeholders.of(password))

    def _in_cookies(self, text: str) -> Iterator[Edit]:
        for header in _COOKIES.finditer(text):
            for start, end, new in self._cookies(header["name"], header["value"]):
                yield Edit(header.start("value") + start, header.start("value") + end, new)

    def _cookies(self, name: str, value: str) -> Iterator[Edit]:
        return cookie_edits(value, self.placeholders, first_only=name.lower().startswith("set"))

    def _assigned(self, text: str) -> Iterator[Edit]:
        return assignment_edits(text, self.placeholders, strict=self.strict)


def _edited(text: str, cuts: Sequence[int], edits: Sequence[Edit]) -> Text:
    return (apply(text, edits), moved(cuts, edits)) if edits else (text, cuts)

"""Secrets whose values the user named: they vanish in every form in which they may appear."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator, Sequence
from typing import Final
from urllib.parse import quote, quote_plus

from reenact.errors import UsageError
from reenact.redaction.base64text import encoded_forms

MIN_LENGTH: Final = 4

_JSON_LEVELS: Final = 3
"""A JSON text inside a JSON string inside a JSON string."""

_PERCENT: Final = re.compile(r"%[0-9A-F]{2}")


class Registered:
    """The registered secrets and all their forms."""

    def __init__(self, secrets: Sequence[str | bytes]) -> None:
        plain = [_as_text(secret) for secret in secrets]
        self.encoded: Final = {form: secret for secret in plain for form in encoded_forms(_as_bytes(secret))}
        """The base64 forms, which look different in company, and the secrets they stand for."""
        self.forms: Final = self.encoded | {form: secret for secret in plain for form in _forms(secret)}
        """All forms, those of base64 included."""
        longest_first = sorted(self.forms, key=len, reverse=True)
        self._pattern = re.compile("|".join(map(re.escape, longest_first))) if plain else None

    def find(self, text: str) -> Iterator[tuple[int, int, str]]:
        """Start, end and plain value of every form of a secret; the longest form wins."""
        if self._pattern is not None:
            for match in self._pattern.finditer(text):
                yield *match.span(), self.forms[match[0]]


def _as_text(secret: str | bytes) -> str:
    text = secret.decode("utf-8", "surrogateescape") if isinstance(secret, bytes) else secret
    if len(text) < MIN_LENGTH:
        raise UsageError(
            f"secrets: one has {len(text)} characters and would be found in ordinary words; "
            f"register secrets of at least {MIN_LENGTH}"
        )
    return text


def _as_bytes(secret: str) -> bytes:
    return secret.encode("utf-8", "surrogateescape")


def _forms(secret: str) -> Iterator[str]:
    data = _as_bytes(secret)
    yield from (secret, data.hex(), data.hex().upper())
    for quoted in (quote(data, safe=""), quote(data), quote_plus(data), quote(data, safe="/:@!$&'()*+,;=~")):
        yield quoted
        yield _PERCENT.sub(lambda escape: escape[0].lower(), quoted)
    for escaped in (html.escape(secret), html.escape(secret, quote=False)):
        yield escaped
        yield escaped.replace("&#x27;", "&#39;").replace("&quot;", "&#34;")
    for ascii_only in (False, True):
        nested = secret
        for _ in range(_JSON_LEVELS):
            nested = json.dumps(nested, ensure_ascii=ascii_only)[1:-1]
            yield nested
            yield nested.replace("/", "\\/")

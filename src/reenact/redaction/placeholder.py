"""The placeholder that replaces a secret: ``<secret:KIND:xxxxxxxx>``.

Kind and hash depend only on the plain value and the capture's salt, not on the place or the encoding, so that
equal secrets can still be recognised as equal.
"""

from __future__ import annotations

import hmac
import re
from collections.abc import Callable
from typing import Final
from urllib.parse import unquote_plus

from reenact.formats.capture import PLACEHOLDER
from reenact.redaction.edits import Edit

OPAQUE: Final = "opaque"
"""The kind of a secret that was found by its place or registration, not by its shape."""

PRIVATE_KEY: Final = "private-key"

_ESCAPED_END: Final = re.compile(r"\\+[rn]")
_QUOTED: Final = re.compile(r"(?i:%3C)secret(?i:%3A|:)([a-z0-9-]+)(?i:%3A|:)([0-9a-f]{8})(?i:%3E)")


class Placeholders:
    """Makes the placeholders of one capture."""

    def __init__(self, salt: bytes, kind_of: Callable[[str], str | None]) -> None:
        self._salt = salt
        self._kind_of = kind_of

    def of(self, secret: str) -> str:
        """The placeholder of a plain value; a placeholder is returned unchanged."""
        if PLACEHOLDER.fullmatch(secret):
            return secret
        kind = self._kind_of(secret) or OPAQUE
        if kind == PRIVATE_KEY:
            secret = unquote_plus(secret) if "%0" in secret else secret
            secret = "\n".join(_ESCAPED_END.sub("\n", secret).split())
        mark = hmac.digest(self._salt, to_bytes(secret), "sha256").hex()[:8]
        return f"<secret:{kind}:{mark}>"


def placeholder_spans(text: str) -> list[tuple[int, int]]:
    """The spans of the placeholders in *text*."""
    if "<secret:" not in text:
        return []
    return [match.span() for match in PLACEHOLDER.finditer(text)]


def unquoted_placeholders(text: str) -> list[Edit]:
    """Edits that decode placeholders which an HTTP client percent-encoded."""
    return [Edit(*match.span(), f"<secret:{match[1]}:{match[2]}>") for match in _QUOTED.finditer(text)]


def to_bytes(text: str) -> bytes:
    """The bytes that *text* stands for."""
    # Surrogates encode bytes that are not UTF-8; other lone surrogates need only be scanned.
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass")

"""The value below a name that announces a secret: what of it is secret, and what stays."""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Iterator
from typing import Final

from reenact.redaction.edits import Edit
from reenact.redaction.names import HARMLESS
from reenact.redaction.placeholder import Placeholders

_SCHEME: Final = re.compile(
    r"(?P<scheme>bearer|basic|digest|token|api-?key|negotiate|ntlm|aws4-hmac-sha256)(?: +|%20)(?P<rest>.+)",
    re.DOTALL | re.IGNORECASE,
)
_PAIR: Final = re.compile(r"(?:\A|;)\s*[^=;\s]+=(?P<value>[^;]*)")


def member_edits(value: str, placeholders: Placeholders) -> Iterator[Edit]:
    """The edits that take the secret out of *value*; scheme words and cookie names stay."""
    if scheme := _SCHEME.fullmatch(value):
        rest = scheme["rest"]
        plain = basic_password(rest) if scheme["scheme"].lower() == "basic" else None
        yield Edit(*scheme.span("rest"), placeholders.of(plain or rest))
    elif not HARMLESS.match(value):
        yield Edit(0, len(value), placeholders.of(value))


def cookie_edits(value: str, placeholders: Placeholders, *, first_only: bool) -> Iterator[Edit]:
    """Edits for the values of all cookies; ``Set-Cookie`` has one, its attributes follow."""
    for number, pair in enumerate(_PAIR.finditer(value)):
        if pair["value"] and not (first_only and number):
            yield Edit(*pair.span("value"), placeholders.of(pair["value"]))


def basic_password(credentials: str) -> str | None:
    """The password of HTTP basic credentials, or the user if there is none; None if it is no such thing."""
    try:
        user, colon, password = b64decode(credentials, validate=True).decode().partition(":")
    except ValueError:
        return None
    return (password or user) if colon and (user + password).isprintable() else None

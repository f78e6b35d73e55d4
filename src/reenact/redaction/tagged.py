"""Values that JSON does not know, as :mod:`reenact.formats.tags` writes them: what is secret in them."""

from __future__ import annotations

import binascii
from base64 import b64decode, b64encode
from collections.abc import Callable
from typing import Any, Final

from reenact.formats.tags import TAG

_BYTES: Final = ("bytes", "bytearray")
_SCALARS: Final = ("Decimal", "UUID", "date", "datetime", "float", "int", "path", "str", "time")


def is_tagged_scalar(value: dict[str, Any]) -> bool:
    """Whether an object stands for one value of Python's, kept as a text."""
    kind = value.get(TAG)
    return isinstance(kind, str) and kind in (*_BYTES, *_SCALARS) and isinstance(value.get("value"), str)


def redacted_scalar(value: dict[str, Any], redact: Callable[[str], str]) -> Any:
    """*value* without its secret: bytes stay bytes, anything else becomes the text that stands for it."""
    text = value["value"]
    if value[TAG] in _BYTES:
        return value | {"value": _redacted_bytes(text, redact)}
    new = redact(text)
    return value if new == text else new


def _redacted_bytes(text: str, redact: Callable[[str], str]) -> str:
    try:
        plain = b64decode(text, validate=True).decode("utf-8", "surrogateescape")
    except binascii.Error:
        return redact(text)
    new = redact(plain)
    return text if new == plain else b64encode(new.encode("utf-8", "surrogateescape")).decode()

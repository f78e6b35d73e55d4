"""Undoing the content encoding of a response body."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from typing import Final

_WINDOW_BITS: Final = {"gzip": 31, "x-gzip": 31, "deflate": 15}


def decoded(headers: Mapping[str, str], body: bytes) -> bytes:
    """*body* inflated as its headers say; as it is where that fails.

    Many clients hand over decoded bytes together with the original headers. A body that was cut
    yields what can be inflated. Only gzip and deflate are known.
    """
    for name, value in headers.items():
        if name.lower() == "content-encoding":
            for coding in reversed(value.lower().split(",")):
                body = _inflated(coding.strip(), body)
    return body


def _inflated(coding: str, body: bytes) -> bytes:
    if coding not in _WINDOW_BITS:
        return body
    try:
        return zlib.decompressobj(_WINDOW_BITS[coding]).decompress(body)
    except zlib.error:
        return body

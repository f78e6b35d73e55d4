"""Undoing content codings chunk by chunk: gzip and deflate, Brotli and Zstandard where the client can too."""

from __future__ import annotations

import sys
import zlib
from collections.abc import Callable
from typing import Any, Final, TypeAlias

Decode: TypeAlias = Callable[[bytes], bytes]


class Undecodable(ValueError):
    """The bytes are not what their content coding says."""


def decoder(content_encoding: str) -> Decode | None:
    """A function that takes the chunks of one body in turn; ``None`` without a coding or with an unknown one.

    It raises :class:`Undecodable` at a chunk that does not fit.
    """
    if not content_encoding:
        return None
    names = [name.strip() for name in content_encoding.lower().split(",")]
    codings = [name for name in reversed(names) if name not in ("", "identity")]
    if not codings or not all(name in _MAKERS for name in codings):
        return None
    stages = [_MAKERS[name]() for name in codings]
    if not all(stages):
        return None

    def decode(chunk: bytes) -> bytes:
        try:
            for stage in stages:
                chunk = stage(chunk) if stage and chunk else chunk
        except Exception as error:  # each library has errors of its own
            raise Undecodable(str(error)) from error
        return chunk

    return decode


def is_decodable(coding: str) -> bool:
    """Whether *coding*, as ``Accept-Encoding`` names it, can be undone here."""
    name = coding.partition(";")[0].strip().lower()
    return name == "identity" or decoder(name) is not None


def _gzip() -> Decode:
    return zlib.decompressobj(31).decompress


def _deflate() -> Decode:
    """With a zlib header, as the standard says, or without, as some servers send it."""
    inflater: Any = None

    def decode(chunk: bytes) -> bytes:
        nonlocal inflater
        if inflater is None:
            inflater = zlib.decompressobj(15 if chunk[0] & 0x0F == 8 else -15)
        text: bytes = inflater.decompress(chunk)
        return text

    return decode


def _brotli() -> Decode | None:
    brotli = _loaded("brotli", "brotlicffi")
    if brotli is None:
        return None
    inflater = brotli.Decompressor()
    decode: Decode = getattr(inflater, "process", None) or inflater.decompress
    return decode


def _zstandard() -> Decode | None:
    library = _loaded("zstandard", "compression.zstd", "backports.zstd")
    if library is None:
        return None
    is_binding = hasattr(library, "ZstdDecompressionObj") or library.__name__ == "zstandard"
    decode: Decode = (
        library.ZstdDecompressor().decompressobj().decompress
        if is_binding
        else library.ZstdDecompressor().decompress
    )
    return decode


def _loaded(*names: str) -> Any:
    """The client decodes with the library it loaded; without one it would not have asked for the coding."""
    return next((sys.modules[name] for name in names if name in sys.modules), None)


_MAKERS: Final[dict[str, Callable[[], Decode | None]]] = {
    "gzip": _gzip,
    "x-gzip": _gzip,
    "deflate": _deflate,
    "br": _brotli,
    "zstd": _zstandard,
}

"""The parts of HTTP messages: headers, bodies, content codings, and the head of a response.

Bodies are decoded chunk by chunk: gzip and deflate always, Brotli and Zstandard if the client can do it.
"""

from __future__ import annotations

import re
import sys
import zlib
from collections.abc import Callable, Iterable
from typing import Any, Final, NamedTuple, TypeAlias
from urllib.parse import parse_qsl

import msgspec

Pairs: TypeAlias = list[tuple[str, str]]
Decode: TypeAlias = Callable[[bytes], bytes]
_decode: Final = msgspec.json.Decoder().decode
_BOUNDARY: Final = re.compile(r'boundary="?(?P<boundary>[^";,]+)"?', re.IGNORECASE)
_TEXTUAL: Final = re.compile(r"text/|.*(?:json|xml|javascript|urlencoded)", re.IGNORECASE)
ABOUT_THE_BODY: Final = ("content-encoding", "content-length", "transfer-encoding")


def header_value(pairs: Iterable[tuple[str, str]], name: str) -> str:
    """The value of the header *name*, given in lower case; joined if repeated, empty if missing."""
    values: list[str] = []
    for key, value in pairs:
        if key.lower() == name:
            values.append(value)
    return ", ".join(values)


def headers_from_wire(raw: Iterable[tuple[bytes, bytes]]) -> Pairs:
    pairs: Pairs = []
    for name, value in raw:  # Latin-1 decodes any byte, and encodes it back to the same byte
        pairs.append((name.decode("latin-1"), value.decode("latin-1")))
    return pairs


def headers_to_wire(pairs: Iterable[tuple[str, str]]) -> list[tuple[bytes, bytes]]:
    return [(name.encode("latin-1"), value.encode("latin-1")) for name, value in pairs]


class Head(NamedTuple):
    """A response without its body."""

    status: int
    reason: str
    http_version: str
    """Such as ``HTTP/1.1``."""
    headers: Pairs

    @property
    def content_encoding(self) -> str:
        return header_value(self.headers, "content-encoding")

    @property
    def is_textual(self) -> bool:
        return _TEXTUAL.match(header_value(self.headers, "content-type")) is not None

    def to_json(self) -> dict[str, object]:
        """One object per header: keeps order, case and repetitions, and lets redaction see the names."""
        headers: list[dict[str, str]] = []
        for name, value in self.headers:
            headers.append({name: value})
        return {
            "headers": headers,
            "httpVersion": self.http_version,
            "reason": self.reason,
            "status": self.status,
        }

    @classmethod
    def from_json(cls, answer: dict[str, Any]) -> Head:
        return cls(
            answer["status"],
            answer["reason"],
            answer["httpVersion"],
            [pair for header in answer["headers"] for pair in header.items()],
        )

    def for_decoded_body(self, size_bytes: int | None) -> Head:
        """This head for a body without content coding; *size_bytes* is ``None`` if unknown."""
        headers = [(name, value) for name, value in self.headers if name.lower() not in ABOUT_THE_BODY]
        if size_bytes is not None:
            headers.append(("content-length", str(size_bytes)))
        return self._replace(headers=headers)


def to_piece(chunk: bytes, *, is_textual: bool) -> str | bytes:
    """A chunk as it is recorded; text may be cut inside a character, so stray bytes are escaped."""
    return chunk.decode("utf-8", "surrogateescape") if is_textual else chunk


def from_piece(piece: str | bytes) -> bytes:
    return piece if isinstance(piece, bytes) else piece.encode("utf-8", "surrogateescape")


# Bodies


def meaning(content_type: str, content_encoding: str, body: bytes) -> dict[str, Any]:
    """The part of a request's body that replay compares, under a key that says how the body was read.

    ``body`` is the value of JSON, so that the order of keys and white space do not matter; ``form`` holds the
    pairs of a form; ``parts`` the parts of a multipart body, without its random boundary; ``text`` or
    ``bytes`` anything else. Empty if there is no body.
    """
    if not body:
        return {}
    if content_encoding:
        body = _decompress(content_encoding, body)
    media_type = content_type.partition(";")[0].strip().lower()
    if "json" in media_type or not media_type:
        try:
            return {"body": _decode(body)}
        except (ValueError, RecursionError):
            pass
    elif media_type == "application/x-www-form-urlencoded" and _is_form(body):
        pairs = parse_qsl(body.decode(), keep_blank_values=True, errors="surrogateescape")
        return {"form": [list(pair) for pair in pairs]}
    elif media_type.startswith("multipart/") and (found := _BOUNDARY.search(content_type)):
        return {"parts": _parts(found["boundary"].encode("latin-1"), body)}
    text = text_or_bytes(body)
    return {"text" if isinstance(text, str) else "bytes": text}


def text_or_bytes(body: bytes) -> str | bytes:
    """*body* as text if it is UTF-8."""
    try:
        return body.decode()
    except UnicodeDecodeError:
        return body


def _is_form(body: bytes) -> bool:
    """Whether *body* looks like a form: some clients declare every body a form unless told otherwise."""
    return body.isascii() and all(b"=" in field for field in body.split(b"&"))


def _decompress(content_encoding: str, body: bytes) -> bytes:
    decode = decoder(content_encoding)
    if decode is None:
        return body
    try:
        return decode(body)
    except Undecodable:
        return body


def _parts(boundary: bytes, body: bytes) -> list[dict[str, object]]:
    pieces = (b"\r\n" + body).split(b"\r\n--" + boundary)
    # Nothing comes before the first boundary; "--" follows the last one.
    return [_part(piece.removeprefix(b"\r\n")) for piece in pieces[1:] if not piece.startswith(b"--")]


def _part(piece: bytes) -> dict[str, object]:
    head, _, content = piece.partition(b"\r\n\r\n")
    lines = (line.partition(":") for line in head.decode("utf-8", "replace").split("\r\n") if line)
    headers = {name.lower(): value.strip() for name, _, value in lines}
    return {"headers": headers, "content": text_or_bytes(content)}


# Content codings


class Undecodable(ValueError):
    """The bytes do not fit their content coding."""


def decoder(content_encoding: str) -> Decode | None:
    """A function that decodes the chunks of one body in order; ``None`` for no coding or an unknown one.

    It raises :class:`Undecodable` for a chunk that does not fit.
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
        except Exception as error:  # each library raises different errors
            raise Undecodable(str(error)) from error
        return chunk

    return decode


def is_decodable(coding: str) -> bool:
    """Whether we can decode *coding*, written as in ``Accept-Encoding``."""
    name = coding.partition(";")[0].strip().lower()
    return name == "identity" or decoder(name) is not None


def _gzip() -> Decode:
    return zlib.decompressobj(31).decompress


def _deflate() -> Decode:
    """Decodes with a zlib header, as the standard says, or without, as some servers send it."""
    inflater: Any = None

    def decode(chunk: bytes) -> bytes:
        nonlocal inflater
        if inflater is None:
            inflater = zlib.decompressobj(15 if chunk[0] & 0x0F == 8 else -15)
        text: bytes = inflater.decompress(chunk)
        return text

    return decode


def _brotli() -> Decode | None:
    brotli = _find_loaded("brotli", "brotlicffi")
    if brotli is None:
        return None
    inflater = brotli.Decompressor()
    decode: Decode = getattr(inflater, "process", None) or inflater.decompress
    return decode


def _zstandard() -> Decode | None:
    library = _find_loaded("zstandard", "compression.zstd", "backports.zstd")
    if library is None:
        return None
    is_binding = hasattr(library, "ZstdDecompressionObj") or library.__name__ == "zstandard"
    decode: Decode = (
        library.ZstdDecompressor().decompressobj().decompress
        if is_binding
        else library.ZstdDecompressor().decompress
    )
    return decode


def _find_loaded(*names: str) -> Any:
    """The library that the client itself decodes with; without one it would not accept the coding."""
    return next((sys.modules[name] for name in names if name in sys.modules), None)


_MAKERS: Final[dict[str, Callable[[], Decode | None]]] = {
    "gzip": _gzip,
    "x-gzip": _gzip,
    "deflate": _deflate,
    "br": _brotli,
    "zstd": _zstandard,
}

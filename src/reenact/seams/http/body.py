"""What a request's body says: the part of it that must be equal in replay.

JSON counts as its value, so that the order of keys and white space do not matter; a form as its pairs; a
multipart body as its parts, whatever boundary was drawn by lot. The member names the kind.
"""

from __future__ import annotations

import re
from typing import Any, Final
from urllib.parse import parse_qsl

import msgspec

from reenact.seams.http.codings import Undecodable, decoder

_decode: Final = msgspec.json.Decoder().decode
_BOUNDARY: Final = re.compile(r'boundary="?(?P<boundary>[^";,]+)"?', re.IGNORECASE)


def meaning(content_type: str, content_encoding: str, body: bytes) -> dict[str, Any]:
    """One member, named ``body`` (of JSON), ``form``, ``parts``, ``text`` or ``bytes``; none for no body."""
    if not body:
        return {}
    body = _decompressed(content_encoding, body)
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
    """*body* as text where it is UTF-8."""
    try:
        return body.decode()
    except UnicodeDecodeError:
        return body


def _is_form(body: bytes) -> bool:
    """Some clients call every body a form whose kind they are not told."""
    return body.isascii() and all(b"=" in field for field in body.split(b"&"))


def _decompressed(content_encoding: str, body: bytes) -> bytes:
    decode = decoder(content_encoding)
    if decode is None:
        return body
    try:
        return decode(body)
    except Undecodable:
        return body


def _parts(boundary: bytes, body: bytes) -> list[dict[str, Any]]:
    pieces = (b"\r\n" + body).split(b"\r\n--" + boundary)
    # Before the first boundary stands nothing, behind the last one "--".
    return [_part(piece.removeprefix(b"\r\n")) for piece in pieces[1:] if not piece.startswith(b"--")]


def _part(piece: bytes) -> dict[str, Any]:
    head, _, content = piece.partition(b"\r\n\r\n")
    lines = (line.partition(":") for line in head.decode("utf-8", "replace").split("\r\n") if line)
    headers = {name.lower(): value.strip() for name, _, value in lines}
    return {"headers": headers, "content": text_or_bytes(content)}

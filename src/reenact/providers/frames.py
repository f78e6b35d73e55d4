"""The JSON objects in a response body: one, or a stream of them in any framing.

The first byte tells the framing, because content types cannot be relied on behind gateways:
``{`` one object or NDJSON, ``[`` a JSON array (Gemini), NUL an AWS event stream, all else
server-sent events. A stream that was cut yields the objects that arrived whole.
"""

from __future__ import annotations

import base64
import binascii
import codecs
import json
import struct
from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple

import orjson

from reenact.canonical import MAX_DEPTH

_BOM: Final = b"\xef\xbb\xbf"
_ARRAY_GLUE: Final = "[], \t\r\n"
_PRELUDE: Final = struct.Struct(">II4x")  # total length, length of the headers, checksum
_CHECKSUM_BYTES: Final = 4


class Frames(NamedTuple):
    objects: list[dict[str, Any]]
    streamed: bool
    """False when the body is one single object."""


def read_frames(body: bytes) -> Frames:
    """The objects of *body* in order; what is neither JSON nor an object is left out."""
    body = body.removeprefix(_BOM).lstrip(b" \t\r\n")
    whole = loads(body) if body[:1] in (b"{", b"[") else None
    if isinstance(whole, dict):
        return Frames([whole], streamed=False)
    values = whole if isinstance(whole, list) else _stream_values(body)
    return Frames([value for value in values if isinstance(value, dict)], streamed=True)


def _stream_values(body: bytes) -> Iterable[Any]:
    if body.startswith(b"{"):
        return map(loads, body.splitlines())
    if body.startswith(b"["):
        return _cut_array(body)
    if body.startswith(b"\x00"):
        return _aws_events(body)
    return map(loads, _sse_data(body))


def loads(text: bytes | str) -> Any:
    """The JSON value, or ``None`` when there is none, or one nested too deeply to be written again."""
    try:
        value = orjson.loads(text)
        if _brackets(text) > MAX_DEPTH:
            orjson.dumps(value)
    except (ValueError, TypeError, RecursionError):
        return None
    return value


def _brackets(text: bytes | str) -> int:
    if isinstance(text, str):
        return text.count("[") + text.count("{")
    return text.count(b"[") + text.count(b"{")


def _sse_data(body: bytes) -> Iterator[bytes]:
    """The data of each server-sent event; event names are not needed, all wires repeat them inside.

    The last event counts even without the empty line that should end it: some servers forget it.
    """
    data: list[bytes] = []
    for line in body.splitlines():
        if line.startswith(b"data:"):
            data.append(line[5:].removeprefix(b" "))
        elif not line and data:
            yield b"\n".join(data)
            data = []
    if data:
        yield b"\n".join(data)


def _cut_array(body: bytes) -> Iterator[Any]:
    # An incremental decoder holds back the half of a character at the cut.
    text = codecs.getincrementaldecoder("utf-8")("replace").decode(body)
    decoder, position = json.JSONDecoder(), 0
    while True:
        while position < len(text) and text[position] in _ARRAY_GLUE:
            position += 1
        try:
            _, end = decoder.raw_decode(text, position)
        except (ValueError, RecursionError):
            return
        yield loads(text[position:end].encode("utf-8", "replace"))
        position = end


def _aws_events(body: bytes) -> Iterator[Any]:
    """The payloads of ``application/vnd.amazon.eventstream``; those without ``bytes`` are exceptions."""
    position = 0
    while position + _PRELUDE.size <= len(body):
        total, headers = _PRELUDE.unpack_from(body, position)
        end = position + total
        if total < _PRELUDE.size + _CHECKSUM_BYTES or end > len(body):
            return
        payload = loads(body[position + _PRELUDE.size + headers : end - _CHECKSUM_BYTES])
        if isinstance(payload, dict):
            yield _unwrapped(payload)
        position = end


def _unwrapped(payload: dict[str, Any]) -> Any:
    inner = payload.get("bytes")
    if not isinstance(inner, str):
        return {"error": payload}
    try:
        return loads(base64.b64decode(inner))
    except (binascii.Error, ValueError):
        return None

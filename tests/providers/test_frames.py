"""Finding the JSON objects in a body."""

from __future__ import annotations

import base64
import binascii
import json
import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reenact.providers.reading import loads, read_frames

BODIES: dict[str, tuple[bytes, list[dict[str, int]], bool]] = {
    "one object": (b' {"a": 1}\n', [{"a": 1}], False),
    "byte order mark": (b'\xef\xbb\xbf{"a": 1}', [{"a": 1}], False),
    "lines": (b'{"a": 1}\n{"b": 2}\n', [{"a": 1}, {"b": 2}], True),
    "lines, empty and broken ones": (b'{"a": 1}\n\nnonsense\n{"b": 2}', [{"a": 1}, {"b": 2}], True),
    "array": (b'[{"a": 1}\n,\r\n{"b": 2}]', [{"a": 1}, {"b": 2}], True),
    "array, cut": (b'[{"a": 1},{"b": 2},{"c": "\xc3', [{"a": 1}, {"b": 2}], True),
    "array, cut after a comma": (b'[{"a": 1},', [{"a": 1}], True),
    "events": (b'data: {"a": 1}\n\ndata: {"b": 2}\n\n', [{"a": 1}, {"b": 2}], True),
    "event without a space": (b'data:{"a": 1}\n\n', [{"a": 1}], True),
    "event over two lines": (b'data: {"a":\ndata: 1}\n\n', [{"a": 1}], True),
    "event with other fields": (b'id: 7\nretry: 10\nevent: x\ndata: {"a": 1}\n\n', [{"a": 1}], True),
    "comments": (b': OPENROUTER PROCESSING\n\n: ping\n\ndata: {"a": 1}\n\n', [{"a": 1}], True),
    "end marker": (b'data: {"a": 1}\n\ndata: [DONE]\n\n', [{"a": 1}], True),
    "last event without its empty line": (b'data: {"a": 1}\n\ndata: {"b": 2}', [{"a": 1}, {"b": 2}], True),
    "last event, cut": (b'data: {"a": 1}\n\ndata: {"b', [{"a": 1}], True),
    "U+2028 ends no line": ('data: {"a\u2028\x85": 1}\n\n'.encode(), [{"a\u2028\x85": 1}], True),
    "numbers": (b"[1, 2]", [], True),
    "nothing": (b"", [], True),
    "a web page": (b"<html>502 Bad Gateway</html>", [], True),
}


@pytest.mark.parametrize(("body", "objects", "streamed"), BODIES.values(), ids=BODIES.keys())
def test_framing(body: bytes, objects: list[dict[str, int]], streamed: bool) -> None:
    """The framing is recognized from the bytes alone."""
    assert read_frames(body) == (objects, streamed)


def aws_message(payload: dict[str, object]) -> bytes:
    """One message of an AWS event stream, with its checksums."""
    headers = b"\x0b:event-type\x07\x00\x05chunk"
    text = json.dumps(payload).encode()
    prelude = struct.pack(">II", 16 + len(headers) + len(text), len(headers))
    message = prelude + struct.pack(">I", binascii.crc32(prelude)) + headers + text
    return message + struct.pack(">I", binascii.crc32(message))


def test_aws_event_stream() -> None:
    """Bedrock wraps each event in a binary message; a cut one ends the list."""
    wrapped = [aws_message({"bytes": base64.b64encode(b'{"a": %d}' % n).decode(), "p": "ab"}) for n in (1, 2)]
    body = b"".join(wrapped)
    assert read_frames(body) == ([{"a": 1}, {"a": 2}], True)
    assert read_frames(body[:-1]) == ([{"a": 1}], True)


def test_aws_exception() -> None:
    """A message without bytes is an exception of the service."""
    assert read_frames(aws_message({"message": "Too many"})).objects == [{"error": {"message": "Too many"}}]


@settings(deadline=None)
@given(st.binary())
def test_any_bytes(body: bytes) -> None:
    """Whatever comes, only objects come out."""
    assert all(isinstance(value, dict) for value in read_frames(body).objects)


@pytest.mark.parametrize("depth", [300, 1000, 100_000])
def test_nested_too_deeply(depth: int) -> None:
    """What could not be written again is not read."""
    text = b'{"a":' + b"[" * depth + b"]" * depth + b"}"
    assert loads(text) is None
    assert read_frames(text).objects == []
    assert read_frames(b"[" + text).objects == []


def test_many_brackets_side_by_side() -> None:
    """Only depth is refused, not size."""
    assert loads("[" + ",".join(["{}"] * 1000) + "]") == [{}] * 1000

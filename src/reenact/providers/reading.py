"""Reading that several wire formats share: the JSON objects in a body, members, parts of messages.

The first byte of a body decides its framing, because content types are unreliable behind gateways:
``{`` one object or NDJSON, ``[`` a JSON array (Gemini), NUL an AWS event stream, all else server-sent events.
A stream that was cut yields its complete objects. A member of another type counts as absent.
"""

from __future__ import annotations

import base64
import binascii
import codecs
import json
import struct
from codecs import BOM_UTF8
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Final, NamedTuple

import orjson

from reenact.canonical import MAX_DEPTH, JsonValue, digest_of_bytes
from reenact.providers.meaning import Media, ModelMessage, Other, Text, TokenUsage, ToolCallPart


def text_of(value: JsonValue, key: str) -> str | None:
    member = value.get(key) if isinstance(value, dict) else None
    return member if isinstance(member, str) else None


def integer_of(value: JsonValue, key: str) -> int | None:
    member = value.get(key) if isinstance(value, dict) else None
    return member if isinstance(member, int) and not isinstance(member, bool) else None


def object_of(value: JsonValue, key: str) -> dict[str, JsonValue]:
    """The member, or an empty object."""
    member = value.get(key) if isinstance(value, dict) else None
    return member if isinstance(member, dict) else {}


def list_of(value: JsonValue, key: str) -> list[JsonValue]:
    """The member, or an empty list."""
    member = value.get(key) if isinstance(value, dict) else None
    return member if isinstance(member, list) else []


def objects_of(value: JsonValue, key: str) -> list[dict[str, JsonValue]]:
    """The objects in a list member."""
    member = value.get(key) if isinstance(value, dict) else None
    objects: list[dict[str, JsonValue]] = []
    for item in member if isinstance(member, list) else ():
        if isinstance(item, dict):
            objects.append(item)
    return objects


def has_messages(body: dict[str, JsonValue]) -> bool:
    return isinstance(body.get("messages"), list)


def first_present(value: dict[str, JsonValue], *keys: str) -> JsonValue:
    """The first of the members that exists and is not null."""
    return next((value[key] for key in keys if value.get(key) is not None), None)


class Growth:
    """Collects pieces for members of objects and joins them once, in linear time."""

    def __init__(self) -> None:
        # The reference keeps the id of the object from being reused.
        self._grown: dict[tuple[int, str], tuple[dict[str, JsonValue], list[str]]] = {}

    def add(self, target: dict[str, JsonValue], key: str, piece: JsonValue) -> None:
        """Append *piece* to the text ``target[key]``; other types are ignored."""
        if not isinstance(piece, str):
            return
        slot = self._grown.get((id(target), key))
        if slot is None:
            start = target.get(key)
            slot = self._grown[id(target), key] = (target, [start] if isinstance(start, str) else [])
        slot[1].append(piece)

    def write_texts(self) -> None:
        """Write every collected text to its place."""
        for (_, key), (target, pieces) in self._grown.items():
            target[key] = "".join(pieces)
        self._grown.clear()


_ARRAY_GLUE: Final = "[], \t\r\n"
_PRELUDE: Final = struct.Struct(">II4x")  # total length, length of the headers, checksum
_CHECKSUM_BYTES: Final = 4


class Frames(NamedTuple):
    objects: list[dict[str, JsonValue]]
    streamed: bool
    """False when the body is one single object."""


def read_frames(body: bytes) -> Frames:
    """The objects of *body* in order; everything else is left out."""
    body = body.removeprefix(BOM_UTF8).lstrip(b" \t\r\n")
    whole = loads(body) if body[:1] in (b"{", b"[") else None
    if isinstance(whole, dict):
        return Frames([whole], streamed=False)
    values = whole if isinstance(whole, list) else _stream_values(body)
    return Frames([value for value in values if isinstance(value, dict)], streamed=True)


def _stream_values(body: bytes) -> Iterable[JsonValue]:
    if body.startswith(b"{"):
        return map(loads, body.splitlines())
    if body.startswith(b"["):
        return _cut_array(body)
    if body.startswith(b"\x00"):
        return _aws_events(body)
    return map(loads, _sse_data(body))


def loads(text: bytes | str) -> JsonValue:
    """Decode JSON; ``None`` if it is invalid or nested too deeply."""
    try:
        data = text if isinstance(text, bytes) else text.encode()
        value: JsonValue = orjson.loads(data)
        if data.count(b"[") + data.count(b"{") > MAX_DEPTH:
            orjson.dumps(value)
    except (ValueError, TypeError, RecursionError):
        return None
    return value


def _sse_data(body: bytes) -> Iterator[bytes]:
    """The data of each server-sent event; event names are not needed, all wires repeat them inside.

    The last event counts also without its final empty line, which some servers omit.
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


def _cut_array(body: bytes) -> Iterator[JsonValue]:
    # An incremental decoder drops an incomplete character at the cut.
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


def _aws_events(body: bytes) -> Iterator[JsonValue]:
    """The payloads of ``application/vnd.amazon.eventstream``; those without ``bytes`` are exceptions."""
    position = 0
    while position + _PRELUDE.size <= len(body):
        total, headers = _PRELUDE.unpack_from(body, position)
        end = position + total
        if total < _PRELUDE.size + _CHECKSUM_BYTES or end > len(body):
            return
        payload = loads(body[position + _PRELUDE.size + headers : end - _CHECKSUM_BYTES])
        if isinstance(payload, dict):
            yield _unwrap(payload)
        position = end


def _unwrap(payload: dict[str, JsonValue]) -> JsonValue:
    inner = payload.get("bytes")
    if not isinstance(inner, str):
        return {"error": payload}
    try:
        return loads(base64.b64decode(inner))
    except (binascii.Error, ValueError):
        return None


@lru_cache(maxsize=256)
def path_segments(url_path: str) -> tuple[str, ...]:
    """The segments of the path, without the query and empty segments."""
    return tuple(filter(None, url_path.partition("?")[0].split("/")))


def last_segment(url_path: str) -> str:
    """The last segment, empty when there is none."""
    return "".join(path_segments(url_path)[-1:])


def tool_call(
    name: str | None, arguments: JsonValue, *, call_id: str | None, signature: str | None = None
) -> ToolCallPart:
    """A call whose *arguments* are JSON text, as in most formats, or a value."""
    value, text = arguments, None
    if isinstance(arguments, str):
        value = loads(arguments)
        text = arguments if value is None and arguments.strip() != "null" else None
    return ToolCallPart(
        id=call_id,
        name=name or "",
        arguments=value,
        arguments_text=text,
        signature=signature,
    )


def media(
    media_type: str | None = None,
    *,
    url: str | None = None,
    data: str | None = None,
    file_id: str | None = None,
) -> Media:
    """A reference without the data, also for a ``data:`` URL."""
    if url is not None and url.startswith("data:"):
        media_type = media_type or url[5:].partition(",")[0].partition(";")[0] or None
        url, data = None, url
    digest = digest_of_bytes(data.encode("utf-8", "surrogatepass")) if data is not None else None
    return Media(media_type=media_type, url=url, file_id=file_id, digest=digest)


def other(value: dict[str, JsonValue]) -> Other:
    kind = value.get("type")
    return Other(type=kind if isinstance(kind, str) else "unknown", value=value)


def split_system(messages: Iterable[ModelMessage]) -> tuple[str | None, tuple[ModelMessage, ...]]:
    """The text of the leading system messages, and the messages after them."""
    rest = list(messages)
    texts: list[str] = []
    while rest and rest[0].role in ("system", "developer"):
        texts += [part.text for part in rest.pop(0).parts if isinstance(part, Text)]
    return join_system(texts) if texts else None, tuple(rest)


def join_system(texts: Iterable[str | None]) -> str | None:
    return "\n\n".join(filter(None, texts)) or None


def read_params(
    body: dict[str, JsonValue], *, without: frozenset[str], renamed: Mapping[str, str]
) -> dict[str, JsonValue]:
    """The members of *body* outside of the conversation, under neutral names."""
    params: dict[str, JsonValue] = {}
    for key, value in body.items():
        if key not in without:
            params[renamed.get(key, key)] = value
    return params


def read_usage(sent: dict[str, JsonValue], places: Mapping[str, str]) -> TokenUsage | None:
    """Read token counts at the *places* of this format (``field`` or ``object.field``)."""
    if not sent:
        return None
    counts = {}
    for name, place in places.items():
        outer, _, inner = place.partition(".")
        count = sent.get(outer)
        if inner:
            count = count.get(inner) if type(count) is dict else None
        if type(count) is int:
            counts[name] = count
    return TokenUsage(**counts, sent=sent)

"""Python values as JSON text and back: what a tool was given and what it returned.

Plain JSON values stand for themselves and cost one encode and one decode; anything else is tagged
(:mod:`tags`).
"""

from __future__ import annotations

import marshal
from collections.abc import Callable
from typing import Any, Final

import msgspec
import orjson

from reenact import canonical
from reenact.errors import FormatError
from reenact.formats.tags import opaque, tag, untag, without_order

JSON_TEXT: Final = "$json"
"""The only member of an object that stands for the JSON value with this very text."""
_RESERVED: Final = b'"$'
_encode: Final = canonical.encode_clean
_encode_ordered: Final = msgspec.json.Encoder().encode
_decode: Final = msgspec.json.Decoder().decode
_OPTIONS: Final = (
    orjson.OPT_PASSTHROUGH_DATACLASS | orjson.OPT_PASSTHROUGH_DATETIME | orjson.OPT_PASSTHROUGH_SUBCLASS
)
_MAX_DEPTH: Final = canonical.MAX_DEPTH - 14
_MARSHAL_VERSION: Final = 2
"""The last one that does not look for objects that occur twice, which takes its time."""


def to_text(value: Any) -> bytes:
    """*value* as canonical JSON text; never fails, whatever the value, and equal values have equal texts."""
    text = _plain_text(value, canonical.encode)
    return _encode(without_order(_tagged_whole(value))) if text is None else text


def to_ordered_text(value: Any) -> bytes:
    """*value* as JSON text with the members of its objects in their own order.

    A program may depend on that order, for one by putting an answer into its next prompt.
    """
    text = _plain_text(value, _encode_strictly)
    return _encode_ordered(_tagged_whole(value)) if text is None else text


def object_text(members: dict[str, Any]) -> bytes:
    """An object with known names as canonical JSON text; only a member that is none becomes ``opaque``."""
    return _encode({name: msgspec.Raw(to_text(value)) for name, value in members.items()})


def is_plain(text: bytes) -> bool:
    """Whether all values in a JSON text stand for themselves: none is tagged, quoted or kept elsewhere."""
    return _RESERVED not in text


def embedded(ordered_text: bytes) -> bytes:
    """An ordered text as it stands in canonical JSON: itself if canonical, else as a quoted text."""
    if _encode(_decode(ordered_text)) == ordered_text:
        return ordered_text
    return _encode({JSON_TEXT: ordered_text.decode()})


def from_text(text: bytes) -> Any:
    """The value that :func:`to_text` was given; :class:`FormatError` where it cannot be rebuilt."""
    value = _decode(text)
    return untag(value) if _RESERVED in text else value


from_json: Final = untag


def _encode_strictly(value: Any) -> bytes:
    return orjson.dumps(value, None, _OPTIONS)


def _plain_text(value: Any, encode: Callable[[Any], bytes]) -> bytes | None:
    """The text of a value that JSON holds as it is; ``None`` for others."""
    try:
        # Only exact types can be marshalled: what is a str and an enum member, say, cannot.
        marshal.dumps(value, _MARSHAL_VERSION)
        text = encode(value)
        # Equal after a round trip: nothing was turned into something else on the way.
        is_plain = _RESERVED not in text and _decode(text) == value and not _is_deep(text)
    except Exception:  # comparing and encoding may run code of the value's own
        return None
    return text if is_plain else None


def _tagged_whole(value: Any) -> Any:
    try:
        tagged = tag(value)
        is_deep = _is_deep(canonical.encode(tagged))
    except (FormatError, RecursionError):  # it contains itself, or nearly so
        return opaque(value)
    return opaque(value) if is_deep else tagged


def _is_deep(text: bytes) -> bool:
    """Whether a value is nested too deep to stand in an event, which may only be so deep itself."""
    return text.count(b"[") + text.count(b"{") > _MAX_DEPTH and _depth(_decode(text)) > _MAX_DEPTH


def _depth(value: Any) -> int:
    if isinstance(value, dict | list):
        children = value.values() if isinstance(value, dict) else value
        return 1 + max(map(_depth, children), default=0)
    return 0

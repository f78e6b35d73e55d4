"""Python values and exceptions as JSON and back: what a tool was given, what it returned or raised.

Plain JSON values stand for themselves and cost one encode and one decode; anything else is tagged
(:mod:`tags`). Reading an exception imports nothing: the class is looked up among the loaded modules. Where it
is not there, a :class:`RecordedError` with the recorded name stands in for it. What cannot be recorded, such
as a connection that is an attribute of the exception, is left out.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from math import isfinite
from typing import Any, Final

import msgspec
import orjson

from reenact import canonical
from reenact.canonical import encode, encode_clean
from reenact.errors import FormatError
from reenact.values.objects import RecordedError, message_of, type_name
from reenact.values.tags import opaque, tag, tag_error, untag, untag_error, without_order

JSON_TEXT: Final = "$json"
"""The only member of an object that stands for the JSON value with this very text."""
_RESERVED: Final = b'"$'
_FIRST_RESERVED: Final = b'{"$'
_NEXT_RESERVED: Final = b',"$'
_DOLLAR: Final = ord("$")
_encode: Final = canonical.encode_clean
_encode_ordered: Final = canonical.encode_ordered
_decode: Final = msgspec.json.Decoder().decode
_ORDERED: Final = (
    orjson.OPT_PASSTHROUGH_DATACLASS | orjson.OPT_PASSTHROUGH_DATETIME | orjson.OPT_PASSTHROUGH_SUBCLASS
)
_SORTED: Final = _ORDERED | orjson.OPT_SORT_KEYS
_PLUS: Final = ord("+")
_BRACE: Final = ord("{")
_UNKNOWN: Final = object()
_SCALARS: Final = frozenset({str, int, float, bool, type(None)})
_dump: Final = canonical.guarded(orjson.dumps)
_EXPONENT: Final = re.compile(rb"[0-9]e\+[0-9]")
_STRINGS: Final = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"')
_SQUARE: Final = bytes.maketrans(b"{}", b"[]")
_NO_BRACKETS: Final = bytes(set(range(256)) - set(b"[]{}"))
_MAX_DEPTH: Final = canonical.MAX_DEPTH - 14


def to_text(value: object, *, is_json: bool = False) -> bytes:
    """*value* as canonical JSON text; never fails, whatever the value, and equal values have equal texts.

    Faster for one that was read from JSON, where nobody has to look for what JSON does not have.
    """
    if type(value) is float and isfinite(value):  # the time and most of chance: what is recorded most often
        return _encode(value)
    text = plain_text(value, is_json=is_json)
    return _encode(without_order(_tag_whole(value))) if text is None else text


def to_ordered_text(value: object, *, is_json: bool = False) -> bytes:
    """*value* as JSON text with the members of its objects in their own order.

    A program may depend on that order, for one by putting an answer into its next prompt.
    """
    text = plain_text(value, is_json=is_json, options=_ORDERED)
    return _encode_ordered(_tag_whole(value)) if text is None else text


def object_text(members: Mapping[str, object], *, is_json: bool = False) -> bytes:
    """An object with known names as canonical JSON text; only a member that is none becomes ``opaque``."""
    text = plain_text(members, is_json=is_json)
    if text is None:
        return _encode({name: msgspec.Raw(to_text(value)) for name, value in members.items()})
    return text


def plain_text(value: object, *, is_json: bool = False, options: int = _SORTED) -> bytes | None:
    """The canonical text of a value that JSON holds as it is, or one with its own order; else ``None``."""
    try:
        text = _dump(value, None, options)
        # Written as well, and not what comes back: tuples, members of enums, NaN.
        if not is_json and (not _is_exact(value) or (b"null" in text and _decode(text) != value)):
            return None
    except MemoryError:
        raise
    except Exception:  # encoding may run code of the value's own
        return None
    if not is_plain(text) or is_deep(text):
        return None
    return _encode(value) if _PLUS in text and options == _SORTED and not is_canonical(text) else text


def is_in_order(value: object, text: bytes) -> bool:
    """Whether *value*, plain and part of a canonical *text*, has the members of its objects in that order."""
    # In a canonical text every object is in order, so what is not cannot be part of it.
    return _dump(value, None, _ORDERED) in text


def dump_sorted(value: object) -> bytes:
    """*value*, all of which was read from JSON, with the members of its objects in order."""
    return _dump(value, None, _SORTED)


def is_canonical(text: bytes) -> bool:
    """Whether no number in a sorted text may be written in another way than ours."""
    # One library writes 1e+16 and the other 1e16; ours is the latter.
    return _PLUS not in text or b"e+" not in text or _EXPONENT.search(text) is None


def is_plain(text: bytes) -> bool:
    """Whether all values in a JSON text stand for themselves: none is tagged, quoted or kept elsewhere.

    The text is as we write it, without white space: a quote that opens a name stands behind one of two signs.
    """
    return _DOLLAR not in text or (_FIRST_RESERVED not in text and _NEXT_RESERVED not in text)


def embed(ordered_text: bytes, value: object = _UNKNOWN) -> bytes:
    """An ordered text as it stands in canonical JSON: itself if canonical, else as a quoted text.

    Faster with the *value* whose text it is, if that is plain.
    """
    if _BRACE not in ordered_text and _PLUS not in ordered_text:  # no object, no order
        return ordered_text
    canonical_text = None
    if value is not _UNKNOWN and _PLUS not in ordered_text and _DOLLAR not in ordered_text:
        try:
            canonical_text = _dump(value, None, _SORTED)
        except TypeError:  # of a class of its own that is recorded as the plain value it holds
            canonical_text = None
    if canonical_text is None:
        canonical_text = _encode(_decode(ordered_text))
    if canonical_text == ordered_text:
        return ordered_text
    return _encode({JSON_TEXT: ordered_text.decode()})


def from_text(text: bytes) -> object:
    """The value that :func:`to_text` was given; :class:`FormatError` where it cannot be rebuilt."""
    value = _decode(text)
    return untag(value) if _RESERVED in text else value


from_json: Final = untag


def _is_exact(value: Any) -> bool:
    """Whether all values in it are of JSON's own types, and not of classes made from these."""
    kind = type(value)
    if kind is not dict and kind is not list:
        return kind in _SCALARS
    for child in value.values() if kind is dict else value:
        if type(child) not in _SCALARS and not _is_exact(child):
            return False
    return True


def _tag_whole(value: object) -> object:
    try:
        tagged = tag(value)
        is_too_deep = is_deep(canonical.encode(tagged))
    except (FormatError, RecursionError):  # it contains itself, or nearly so
        return opaque(value)
    return opaque(value) if is_too_deep else tagged


def is_deep(text: bytes) -> bool:
    """Whether a value is nested too deep to stand in an event, which may only be so deep itself."""
    if len(text) <= 2 * _MAX_DEPTH or text.count(b"{") + text.count(b"[") <= _MAX_DEPTH:
        return False
    brackets = _STRINGS.sub(b"", text).translate(_SQUARE, _NO_BRACKETS)
    for _ in range(_MAX_DEPTH):  # each round takes the innermost level away
        if not brackets:
            return False
        brackets = brackets.replace(b"[]", b"")
    return bool(brackets)


def failure_text(error: BaseException) -> bytes:
    """The canonical JSON text of *error*: its class, message, arguments, attributes and cause."""
    try:
        return encode(without_order(tag_error(error)))
    except (FormatError, RecursionError):  # too deep, or its own cause
        return encode_clean({"type": type_name(type(error)), "message": message_of(error), "args": []})


def rebuild(failure: dict[str, object]) -> BaseException:
    """The exception that a recorded failure stands for."""
    try:
        return untag_error(failure)
    except (FormatError, LookupError, TypeError, ValueError):
        return RecordedError(str(failure.get("type")), str(failure.get("message")))

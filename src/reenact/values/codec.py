"""Encoding Python values and exceptions as JSON, and decoding them: arguments, results, errors of tools.

Plain JSON values are written unchanged, with one encode and one decode; anything else is tagged
(:mod:`tags`). Decoding an exception imports nothing: its class is looked up in the loaded modules. If it is
not loaded, a :class:`RecordedError` with the recorded name replaces it. What cannot be recorded, such as a
connection in an attribute of the exception, is left out.
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
from reenact.values.tags import placeholder_for, tag, tag_error, untag, untag_error, without_order

JSON_TEXT: Final = "$json"
"""The only member of an object that holds a JSON value as exact text."""
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
_dump: Final = canonical.with_memory_check(orjson.dumps)
_EXPONENT: Final = re.compile(rb"e\+(?<=[0-9]e\+)[0-9]")  # an expression that begins with letters is faster
_STRINGS: Final = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"')
_SQUARE: Final = bytes.maketrans(b"{}", b"[]")
_NO_BRACKETS: Final = bytes(set(range(256)) - set(b"[]{}"))
_MAX_DEPTH: Final = canonical.MAX_DEPTH - 14


def to_text(value: object, *, is_json: bool = False) -> bytes:
    """Encode any *value* as canonical JSON text; never fails, and equal values give equal texts.

    Faster for a value that was read from JSON, which needs no tags.
    """
    if type(value) is float and isfinite(value):  # times and random numbers, the most frequent values
        return _encode(value)
    text = plain_text(value, is_json=is_json)
    return _encode(without_order(_tag_whole(value))) if text is None else text


def to_ordered_text(value: object, *, is_json: bool = False) -> bytes:
    """Encode *value* as JSON text that keeps the order of the members of objects.

    A program may depend on it, for example if it puts an answer into its next prompt.
    """
    text = plain_text(value, is_json=is_json, options=_ORDERED)
    return _encode_ordered(_tag_whole(value)) if text is None else text


def object_text(members: Mapping[str, object], *, is_json: bool = False) -> bytes:
    """Encode an object with known names as canonical JSON; a member that fails becomes ``opaque``."""
    text = plain_text(members, is_json=is_json)
    if text is None:
        return _encode({name: msgspec.Raw(to_text(value)) for name, value in members.items()})
    return text


def plain_text(value: object, *, is_json: bool = False, options: int = _SORTED) -> bytes | None:
    """The text of a plain JSON value, canonical or in its own order; ``None`` for any other value."""
    try:
        text = _dump(value, None, options)
        # These are encoded too, but do not decode to the same value: tuples, enum members, NaN.
        if not is_json and (not _is_exact(value) or (b"null" in text and _decode(text) != value)):
            return None
    except MemoryError:
        raise
    except Exception:  # encoding may run the value's own code
        return None
    if not is_plain(text) or is_deep(text):
        return None
    return _encode(value) if _PLUS in text and options == _SORTED and not is_canonical(text) else text


def is_in_order(value: object, text: bytes) -> bool:
    """Whether *value*, plain and part of a canonical *text*, has its object members in canonical order."""
    # All objects of a canonical text are sorted, so an unsorted text cannot be part of it.
    return _dump(value, None, _ORDERED) in text


def dump_sorted(value: object) -> bytes:
    """Encode *value*, which was read from JSON, with sorted object members."""
    return _dump(value, None, _SORTED)


def is_canonical(text: bytes) -> bool:
    """Whether all numbers in a sorted text are in our notation."""
    # One library writes 1e+16, the other 1e16; canonical is the latter.
    return _PLUS not in text or _EXPONENT.search(text) is None


def is_plain(text: bytes) -> bool:
    """Whether a JSON text has only plain values: none is tagged, quoted or kept in a blob.

    The text has no white space, as we write it, so a quote that opens a name follows ``{`` or ``,``.
    """
    return _DOLLAR not in text or (_FIRST_RESERVED not in text and _NEXT_RESERVED not in text)


def embed(ordered_text: bytes, value: object = _UNKNOWN) -> bytes:
    """Embed an ordered text in canonical JSON: unchanged if it is canonical, else quoted.

    Faster with its *value*, if that is plain.
    """
    if _BRACE not in ordered_text and _PLUS not in ordered_text:  # without an object there is no order
        return ordered_text
    canonical_text = None
    if value is not _UNKNOWN and _PLUS not in ordered_text and _DOLLAR not in ordered_text:
        try:
            canonical_text = _dump(value, None, _SORTED)
        except TypeError:  # a subclass that is recorded as the plain value it holds
            canonical_text = None
    if canonical_text is None:
        canonical_text = _encode(_decode(ordered_text))
    if canonical_text == ordered_text:
        return ordered_text
    return _encode({JSON_TEXT: ordered_text.decode()})


def from_text(text: bytes) -> object:
    """Decode what :func:`to_text` encoded; :class:`FormatError` if it cannot be rebuilt."""
    value = _decode(text)
    return untag(value) if _RESERVED in text else value


from_json: Final = untag


def _is_exact(value: Any) -> bool:
    """Whether all values in it have exactly JSON's types, no subclasses."""
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
    except (FormatError, RecursionError):  # it contains itself, or is nested very deeply
        return placeholder_for(value)
    return placeholder_for(value) if is_too_deep else tagged


def is_deep(text: bytes) -> bool:
    """Whether a value is nested too deeply for an event, whose own depth is limited."""
    if len(text) <= 2 * _MAX_DEPTH or len(text) - len(text.translate(None, b"{[")) <= _MAX_DEPTH:
        return False
    brackets = _STRINGS.sub(b"", text).translate(_SQUARE, _NO_BRACKETS)
    for _ in range(_MAX_DEPTH):  # each round removes the innermost level
        if not brackets:
            return False
        brackets = brackets.replace(b"[]", b"")
    return bool(brackets)


def failure_text(error: BaseException) -> bytes:
    """The canonical JSON text of *error*: its class, message, arguments, attributes and cause."""
    try:
        return encode(without_order(tag_error(error)))
    except (FormatError, RecursionError):  # too deep, or a cycle of causes
        return encode_clean({"type": type_name(type(error)), "message": message_of(error), "args": []})


def rebuild(failure: dict[str, object]) -> BaseException:
    """Rebuild the exception of a recorded failure."""
    try:
        return untag_error(failure)
    except (FormatError, LookupError, TypeError, ValueError):
        return RecordedError(str(failure.get("type")), str(failure.get("message")))

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

from reenact.canonical import (
    MAX_DEPTH,
    ORDERED,
    PLUS,
    SORTED,
    dump,
    encode,
    encode_clean,
    encode_ordered,
    is_canonical,
)
from reenact.errors import FormatError
from reenact.values.objects import RecordedError, message_of, type_name
from reenact.values.tags import placeholder_for, tag, tag_error, untag, untag_error, without_order

JSON_TEXT: Final = "$json"
"""The only member of an object that holds a JSON value as exact text."""
_RESERVED: Final = b'"$'
_FIRST_RESERVED: Final = b'{"$'
_NEXT_RESERVED: Final = b',"$'
_DOLLAR: Final = ord("$")
_decode: Final = msgspec.json.Decoder().decode
_BRACE: Final = ord("{")
_UNKNOWN: Final = object()
_SCALARS: Final = frozenset({str, int, float, bool, type(None)})
_STRINGS: Final = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"')
_SQUARE: Final = bytes.maketrans(b"{}", b"[]")
_NO_BRACKETS: Final = bytes(set(range(256)) - set(b"[]{}"))
_MAX_DEPTH: Final = MAX_DEPTH - 14


def to_text(value: object, *, is_json: bool = False) -> bytes:
    """Encode any *value* as canonical JSON text; never fails, and equal values give equal texts.

    Faster for a value that was read from JSON, which needs no tags.
    """
    if type(value) is float and isfinite(value):  # times and random numbers, the most frequent values
        return encode_clean(value)
    text = plain_text(value, is_json=is_json)
    return encode_clean(without_order(_tag_whole(value))) if text is None else text


def to_ordered_text(value: object, *, is_json: bool = False) -> bytes:
    """Encode *value* as JSON text that keeps the order of the members of objects.

    A program may depend on it, for example if it puts an answer into its next prompt.
    """
    text = plain_text(value, is_json=is_json, options=ORDERED)
    return encode_ordered(_tag_whole(value)) if text is None else text


def object_text(members: Mapping[str, object], *, is_json: bool = False) -> bytes:
    """Encode an object with known names as canonical JSON; a member that fails becomes ``opaque``."""
    text = plain_text(members, is_json=is_json)
    if text is None:
        return encode_clean({name: msgspec.Raw(to_text(value)) for name, value in members.items()})
    return text


def plain_text(value: object, *, is_json: bool = False, options: int = SORTED) -> bytes | None:
    """The text of a plain JSON value, canonical or in its own order; ``None`` for any other value."""
    try:
        text = dump(value, None, options)
        # These are encoded too, but do not decode to the same value: tuples, enum members, NaN.
        if not is_json and (not _is_exact(value) or (b"null" in text and _decode(text) != value)):
            return None
    except MemoryError:
        raise
    except Exception:  # encoding may run the value's own code
        return None
    if not is_plain(text) or is_deep(text):
        return None
    return encode_clean(value) if PLUS in text and options == SORTED and not is_canonical(text) else text


def is_in_order(value: object, text: bytes) -> bool:
    """Whether *value*, plain and part of a canonical *text*, has its object members in canonical order."""
    # All objects of a canonical text are sorted, so an unsorted text cannot be part of it.
    return dump(value, None, ORDERED) in text


def dump_sorted(value: object) -> bytes:
    """Encode *value*, which was read from JSON, with sorted object members."""
    return dump(value, None, SORTED)


def is_plain(text: bytes) -> bool:
    """Whether a JSON text has only plain values: none is tagged, quoted or kept in a blob.

    The text has no white space, as we write it, so a quote that opens a name follows ``{`` or ``,``.
    """
    return _DOLLAR not in text or (_FIRST_RESERVED not in text and _NEXT_RESERVED not in text)


def embed(ordered_text: bytes, value: object = _UNKNOWN) -> bytes:
    """Embed an ordered text in canonical JSON: unchanged if it is canonical, else quoted.

    Faster with its *value*, if that is plain.
    """
    if _BRACE not in ordered_text and PLUS not in ordered_text:  # without an object there is no order
        return ordered_text
    canonical_text = None
    if value is not _UNKNOWN and PLUS not in ordered_text and _DOLLAR not in ordered_text:
        try:
            canonical_text = dump(value, None, SORTED)
        except TypeError:  # a subclass that is recorded as the plain value it holds
            canonical_text = None
    if canonical_text is None:
        canonical_text = encode_clean(_decode(ordered_text))
    if canonical_text == ordered_text:
        return ordered_text
    return encode_clean({JSON_TEXT: ordered_text.decode()})


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
        is_too_deep = is_deep(encode(tagged))
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

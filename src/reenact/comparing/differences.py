"""The differences of two JSON values by position: every path, with the value of each side.

Items of lists are compared by position, because rules for volatile values name paths. For people who compare
two runs, `reenact.comparing.json_changes` aligns lists instead.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from functools import reduce
from itertools import islice, zip_longest
from typing import Any, Final

import msgspec

from reenact.canonical import child_path

MAX_DIFFERENCES: Final = 50
_ABSENT: Final = msgspec.UNSET
_encode: Final = msgspec.json.Encoder().encode


class Difference(msgspec.Struct, frozen=True):
    """One path with different values; ``UNSET`` on a side that has no such member."""

    path: str
    expected: Any = msgspec.UNSET
    observed: Any = msgspec.UNSET

    def describe(self) -> str:
        """``$.a[0]: expected 1, observed 2``, on one line."""
        if self.observed is _ABSENT:
            return f"{self.path}: expected {show_value(self.expected)}, observed nothing"
        if self.expected is _ABSENT:
            return f"{self.path}: observed {show_value(self.observed)}, expected nothing"
        expected, observed = (
            show_value(self.expected, self.observed),
            show_value(self.observed, self.expected),
        )
        return f"{self.path}: expected {expected}, observed {observed}"


def differences(
    expected: object, observed: object, *, limit: int = MAX_DIFFERENCES
) -> tuple[Difference, ...]:
    """The differences, outermost first, at most *limit*; empty for equal values."""
    return tuple(islice(_walk(expected, observed, []), limit))


def _walk(expected: object, observed: object, keys: list[str | int]) -> Iterator[Difference]:
    """The differences below *keys*, which are turned into a path only if there are any."""
    if isinstance(expected, dict) and isinstance(observed, dict):
        for key in sorted(expected.keys() | observed.keys()):
            left, right = expected.get(key, _ABSENT), observed.get(key, _ABSENT)
            if not are_same(left, right):
                yield from _walk_member(left, right, keys, key)
    elif isinstance(expected, list) and isinstance(observed, list):
        for index, (left, right) in enumerate(zip_longest(expected, observed, fillvalue=_ABSENT)):
            if not are_same(left, right):
                yield from _walk_member(left, right, keys, index)
    elif expected != observed or type(expected) is not type(observed):
        yield Difference(reduce(child_path, keys, "$"), expected, observed)


def are_same(one: object, other: object) -> bool:
    """Whether two values are certainly equal, including number types; takes a tenth of a walk's time."""
    if type(one) is not type(other) or one != other:
        return False
    try:  # [1], [1.0] and [true] are equal in Python and differ only as texts
        return not isinstance(one, dict | list) or _encode(one) == _encode(other)
    except UnicodeEncodeError:
        return False


def _walk_member(
    expected: object, observed: object, keys: list[str | int], key: str | int
) -> Iterator[Difference]:
    keys.append(key)
    if expected is _ABSENT or observed is _ABSENT:
        yield Difference(reduce(child_path, keys, "$"), expected, observed)
    else:
        yield from _walk(expected, observed, keys)
    keys.pop()


_SHOWN_CHARACTERS: Final = 120
_PIECE_CHARACTERS: Final = 4096
_BEFORE_CHARACTERS: Final = 30
"""The length of the common text that is shown before the first difference of two long texts."""


def show_value(value: object, beside: object = None) -> str:
    """*value* as JSON on one line; for a long text, the part that differs from the text *beside* it."""
    skipped = 0
    if isinstance(value, str) and isinstance(beside, str) and len(value) > _SHOWN_CHARACTERS:
        skipped = max(0, common_prefix_length(value, beside) - _BEFORE_CHARACTERS)
    if isinstance(value, str):
        value = value[skipped : skipped + _SHOWN_CHARACTERS]
    text = msgspec.json.encode(value).decode("utf-8", "replace")
    text = text if len(text) <= _SHOWN_CHARACTERS else f"{text[: _SHOWN_CHARACTERS - 1]}…"
    return ("…" if skipped else "") + "".join(map(_escape_unprintable, text))


def common_prefix_length(one: str, other: str) -> int:
    """The length of the common prefix of two texts, found by chunks and then by bisection."""
    length = min(len(one), len(other))
    for start in range(0, length, _PIECE_CHARACTERS):
        here = one[start : start + _PIECE_CHARACTERS], other[start : start + _PIECE_CHARACTERS]
        if here[0] != here[1]:
            return start + _common_prefix_by_halving(*here)
    return length


def _common_prefix_by_halving(one: str, other: str) -> int:
    lengths = range(1, min(len(one), len(other)) + 1)
    return bisect_left(lengths, True, key=lambda length: one[:length] != other[:length])


def _escape_unprintable(character: str) -> str:
    """*character*, escaped if it would break the line or control a terminal."""
    return character if character.isprintable() else f"\\u{ord(character):04x}"

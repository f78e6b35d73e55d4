"""The differences of two JSON values with lists aligned, so that an inserted item is one difference.

For people who compare two runs; `reenact.comparing.differences` compares by position.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from itertools import groupby, islice, zip_longest
from typing import Any, Final, NamedTuple

import msgspec

from reenact.canonical import JsonValue, child_path
from reenact.comparing.alignment import common_subsequence, unified_diff
from reenact.comparing.differences import common_prefix_length

MAX_CHANGES: Final = 50
_TEXT_LINES: Final = 24
_WORDS: Final = re.compile(r"\w+|\s+|[^\w\s]")
_MANY_WORDS: Final = 20_000
"""With more words than this between the first and the last change, these are shown as one change."""
_CONTEXT: Final = 30
_CHANGED: Final = 400
_PIECES: Final = 60


class Piece(NamedTuple):
    """A part of a word diff."""

    mark: str
    """``-`` if only the left text has it, ``+`` if only the right, a space if both."""
    text: str


class JsonChange(msgspec.Struct, frozen=True, omit_defaults=True):
    """One path with different values; a side without a value is ``UNSET``."""

    path: str
    """The path in the right value, or in the left for a value that only the left has."""
    left: Any = msgspec.UNSET
    right: Any = msgspec.UNSET

    def text_diff(self) -> list[str]:
        """The unified diff of two long texts; empty for other values."""
        if not (isinstance(self.left, str) and isinstance(self.right, str)):
            return []
        ours, theirs = self.left.splitlines(), self.right.splitlines()
        if len(ours) < 2 and len(theirs) < 2:
            return []
        lines = [*islice(unified_diff(ours, theirs, context=1), _TEXT_LINES)]
        return [*lines, "…"] if len(lines) == _TEXT_LINES else lines

    def word_diff(self) -> list[Piece]:
        """The words of two texts that differ, with some common words around them.

        Empty for other values.
        """
        if not (isinstance(self.left, str) and isinstance(self.right, str)):
            return []
        return list(islice(_windows(_word_changes(self.left, self.right)), _PIECES))


def _word_changes(left: str, right: str) -> Iterator[Piece]:
    """All words of both texts, in order; neighbours with the same mark are joined."""
    before = _end_at_word(left, common_prefix_length(left, right))
    ours, theirs = left[before:], right[before:]
    behind = _end_at_word(ours[::-1], common_prefix_length(ours[::-1], theirs[::-1]))
    mine = _WORDS.findall(ours[: len(ours) - behind])
    other = _WORDS.findall(theirs[: len(theirs) - behind])
    equal = common_subsequence(mine, other) if len(mine) + len(other) < _MANY_WORDS else []
    yield Piece(" ", left[:before])
    x = y = 0
    for one, another in [*equal, (len(mine), len(other))]:
        yield Piece("-", "".join(mine[x:one]))
        yield Piece("+", "".join(other[y:another]))
        yield Piece(" ", "".join(mine[one : one + 1]))
        x, y = one + 1, another + 1
    yield Piece(" ", ours[len(ours) - behind :])


def _end_at_word(text: str, length: int) -> int:
    """*length*, or less if it would end inside a word."""
    while 0 < length < len(text) and _is_word(text[length - 1]) and _is_word(text[length]):
        length -= 1
    return length


def _is_word(sign: str) -> bool:
    return sign.isalnum() or sign == "_"


def _windows(pieces: Iterable[Piece]) -> Iterator[Piece]:
    """The pieces with long common parts shortened."""
    runs = [
        Piece(mark, "".join(piece.text for piece in group))
        for mark, group in groupby((piece for piece in pieces if piece.text), key=lambda piece: piece.mark)
    ]
    for place, piece in enumerate(runs):
        head = _CONTEXT if place > 0 else 0
        tail = _CONTEXT if place + 1 < len(runs) else 0
        if piece.mark == " " and len(piece.text) > head + tail + 1:
            end = piece.text[len(piece.text) - tail :]
            yield Piece(" ", f"{piece.text[:head]}…{end}")
        elif len(piece.text) > _CHANGED:
            yield Piece(piece.mark, f"{piece.text[:_CHANGED]}…")
        else:
            yield piece


def json_changes(left: object, right: object, limit: int = MAX_CHANGES) -> list[JsonChange]:
    """The differences, at most *limit*; empty for equal values."""
    return list(islice(_walk(left, right, "$"), limit))


def _walk(left: object, right: object, path: str) -> Iterator[JsonChange]:
    if isinstance(left, dict) and isinstance(right, dict):
        for key in dict.fromkeys((*left, *right)):
            one, other = left.get(key, msgspec.UNSET), right.get(key, msgspec.UNSET)
            yield from _walk(one, other, child_path(path, key))
    elif isinstance(left, list) and isinstance(right, list):
        yield from _items(left, right, path)
    elif left != right or type(left) is not type(right):
        yield JsonChange(path, left, right)


def _items(left: list[JsonValue], right: list[JsonValue], path: str) -> Iterator[JsonChange]:
    equal = common_subsequence([*map(_key, left)], [*map(_key, right)])
    one = other = 0
    for x, y in [*equal, (len(left), len(right))]:
        for ours, theirs in zip_longest(range(one, x), range(other, y)):
            place = theirs if theirs is not None else ours
            yield from _walk(
                msgspec.UNSET if ours is None else left[ours],
                msgspec.UNSET if theirs is None else right[theirs],
                child_path(path, place),
            )
        one, other = x + 1, y + 1


def _key(value: JsonValue) -> str:
    return json.dumps(value, sort_keys=True)

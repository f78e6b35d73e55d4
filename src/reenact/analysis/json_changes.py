"""Where two JSON values differ, with lists aligned: an item that was put in is one difference.

For people who compare two runs; `reenact.formats.differences` is positional, as replays and rules need it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from difflib import unified_diff
from itertools import islice, zip_longest
from typing import Any, Final

import msgspec

from reenact.canonical import child_path
from reenact.formats.subsequence import common_subsequence

MAX_CHANGES: Final = 50
_TEXT_LINES: Final = 24


class JsonChange(msgspec.Struct, frozen=True, omit_defaults=True):
    """One place; a side that has nothing there is ``UNSET``."""

    path: str
    """In the right value; of what only the left has, in the left."""
    left: Any = msgspec.UNSET
    right: Any = msgspec.UNSET

    def text_diff(self) -> list[str]:
        """The lines in which two long texts differ, as ``diff -u`` marks them; empty for anything else."""
        if not (isinstance(self.left, str) and isinstance(self.right, str)):
            return []
        ours, theirs = self.left.splitlines(), self.right.splitlines()
        if len(ours) < 2 and len(theirs) < 2:
            return []
        lines = [*islice(unified_diff(ours, theirs, lineterm="", n=1), 2, 2 + _TEXT_LINES)]
        return [*lines, "…"] if len(lines) == _TEXT_LINES else lines


def json_changes(left: Any, right: Any, limit: int = MAX_CHANGES) -> list[JsonChange]:
    """All places where the values differ, at most *limit*; none means equal."""
    return list(islice(_walk(left, right, "$"), limit))


def _walk(left: Any, right: Any, path: str) -> Iterator[JsonChange]:
    if isinstance(left, dict) and isinstance(right, dict):
        for key in [*left, *(key for key in right if key not in left)]:
            one, other = left.get(key, msgspec.UNSET), right.get(key, msgspec.UNSET)
            yield from _member(one, other, child_path(path, key))
    elif isinstance(left, list) and isinstance(right, list):
        yield from _items(left, right, path)
    elif left != right or type(left) is not type(right):
        yield JsonChange(path, left, right)


def _items(left: list[Any], right: list[Any], path: str) -> Iterator[JsonChange]:
    equal = common_subsequence([*map(_key, left)], [*map(_key, right)])
    one = other = 0
    for x, y in [*equal, (len(left), len(right))]:
        for ours, theirs in zip_longest(range(one, x), range(other, y)):
            place = theirs if theirs is not None else ours
            yield from _member(
                msgspec.UNSET if ours is None else left[ours],
                msgspec.UNSET if theirs is None else right[theirs],
                child_path(path, place),
            )
        one, other = x + 1, y + 1


def _key(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


def _member(left: Any, right: Any, path: str) -> Iterator[JsonChange]:
    if left is msgspec.UNSET or right is msgspec.UNSET:
        yield JsonChange(path, left, right)
    else:
        yield from _walk(left, right, path)

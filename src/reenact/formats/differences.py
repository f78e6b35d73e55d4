"""Where two JSON values differ: every path, with what stands there in each."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any, Final

import msgspec

from reenact.canonical import child_path

MAX_DIFFERENCES: Final = 50
_ABSENT: Final = msgspec.UNSET


class Difference(msgspec.Struct, frozen=True):
    """One place; a member that one side lacks is ``UNSET`` there."""

    path: str
    expected: Any = msgspec.UNSET
    observed: Any = msgspec.UNSET

    def describe(self) -> str:
        """``$.a[0]: expected 1, observed 2``, on one line."""
        if self.observed is _ABSENT:
            return f"{self.path}: expected {_shown(self.expected)}, observed nothing"
        if self.expected is _ABSENT:
            return f"{self.path}: observed {_shown(self.observed)}, expected nothing"
        return f"{self.path}: expected {_shown(self.expected)}, observed {_shown(self.observed)}"


def differences(expected: Any, observed: Any, *, limit: int = MAX_DIFFERENCES) -> tuple[Difference, ...]:
    """All places where the values differ, outermost first, at most *limit*; none means equal."""
    return tuple(islice(_walk(expected, observed, "$"), limit))


def _walk(expected: Any, observed: Any, path: str) -> Iterator[Difference]:
    if isinstance(expected, dict) and isinstance(observed, dict):
        for key in sorted(expected.keys() | observed.keys()):
            inner = child_path(path, key)
            yield from _walk_member(expected.get(key, _ABSENT), observed.get(key, _ABSENT), inner)
    elif isinstance(expected, list) and isinstance(observed, list):
        for index in range(max(len(expected), len(observed))):
            left = expected[index] if index < len(expected) else _ABSENT
            right = observed[index] if index < len(observed) else _ABSENT
            yield from _walk_member(left, right, child_path(path, index))
    elif expected != observed or type(expected) is not type(observed):
        yield Difference(path, expected, observed)


def _walk_member(expected: Any, observed: Any, path: str) -> Iterator[Difference]:
    if expected is _ABSENT or observed is _ABSENT:
        yield Difference(path, expected, observed)
    else:
        yield from _walk(expected, observed, path)


_SHOWN_CHARACTERS: Final = 120


def _shown(value: Any) -> str:
    text = msgspec.json.encode(value).decode()
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[: _SHOWN_CHARACTERS - 1]}…"

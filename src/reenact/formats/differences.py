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
            return f"{self.path}: expected {shown(self.expected)}, observed nothing"
        if self.expected is _ABSENT:
            return f"{self.path}: observed {shown(self.observed)}, expected nothing"
        expected, observed = shown(self.expected, self.observed), shown(self.observed, self.expected)
        return f"{self.path}: expected {expected}, observed {observed}"


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
_BEFORE_CHARACTERS: Final = 30
"""How much of what two long texts have in common is shown before the place where they part."""


def shown(value: Any, beside: Any = None) -> str:
    """*value* as JSON on one line; of a long text the part where it leaves the one *beside* it."""
    skipped = 0
    if isinstance(value, str) and isinstance(beside, str) and len(value) > _SHOWN_CHARACTERS:
        skipped = max(0, _agreeing(value, beside) - _BEFORE_CHARACTERS)
    text = msgspec.json.encode(value[skipped:] if skipped else value).decode("utf-8", "replace")
    text = text if len(text) <= _SHOWN_CHARACTERS else f"{text[: _SHOWN_CHARACTERS - 1]}…"
    return ("…" if skipped else "") + "".join(map(_visible, text))


def _agreeing(left: str, right: str) -> int:
    """How many characters two texts have in common from their beginning."""
    pairs = enumerate(zip(left, right, strict=False))
    return next((index for index, (one, other) in pairs if one != other), min(len(left), len(right)))


def _visible(character: str) -> str:
    """Nothing that would break the line or steer a terminal."""
    return character if character.isprintable() else f"\\u{ord(character):04x}"

"""Patterns of JSON paths, which match places in a value.

$                  the value itself
.name  ["a name"]  a member; quoted if it has other characters than letters, digits, ``_`` and ``-``
[3]                an item, counted from 0
.*  [*]            every member or item
..                 any number of levels, none included: ``$..id``, ``$.a..[0]``, ``$..*``
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from enum import Enum
from functools import cached_property
from typing import Final, TypeAlias

import msgspec

from reenact.canonical import child_path
from reenact.errors import FormatError


class Wildcard(Enum):
    """A wildcard."""

    ANY = "*"
    DEPTH = ".."


PathStep: TypeAlias = str | int | Wildcard
Positions: TypeAlias = frozenset[int]
"""The state of matching a pattern: the indexes of all steps that may come next."""


_STEP: Final = re.compile(
    r"""(?P<depth>\.\.)?
        (?: (?(depth)|\.) (?:(?P<any>\*)|(?P<name>[\w-]+))
        | \[ (?:(?P<item>\*)|(?P<index>\d{1,9})|(?P<quoted>"(?:[^"\\]|\\.)*"|'[^'\\]*')) \] )""",
    re.VERBOSE,
)


class PathPattern:
    """A parsed pattern, which is matched key by key while walking down a value."""

    def __init__(self, steps: Sequence[PathStep]) -> None:
        self.steps = tuple(steps)

    @classmethod
    def parse(cls, text: str) -> PathPattern:
        """Parse *text*; :class:`FormatError` if it is not a pattern."""
        pattern, end = cls.parse_beginning(text)
        if end < len(text):
            raise FormatError(
                f"not a path at {text[end:]!r}; write for example $.messages[*].content or $..id"
            )
        return pattern

    @classmethod
    def parse_beginning(cls, text: str) -> tuple[PathPattern, int]:
        """Parse the longest pattern at the beginning of *text*; also returns where it ends."""
        if not text.startswith("$"):
            raise FormatError(f"a path begins with $, not with {text[:1]!r}")
        steps: list[PathStep] = []
        end = 1
        while found := _STEP.match(text, end):
            steps += [Wildcard.DEPTH] if found["depth"] else []
            steps.append(_step(found))
            end = found.end()
        return cls(steps), end

    @cached_property
    def start(self) -> Positions:
        """The state at the root of a value."""
        return self._open([0])

    def descend(self, positions: Positions, key: str | int) -> Positions:
        """The state after going down to the member or item *key*."""
        return self._open(
            position if self.steps[position] is Wildcard.DEPTH else position + 1
            for position in positions
            if position < len(self.steps) and _is_taken(self.steps[position], key)
        )

    def is_met(self, positions: Positions) -> bool:
        """Whether the pattern matches the place that was reached."""
        return len(self.steps) in positions

    def matches(self, place: Sequence[str | int]) -> bool:
        """Whether the pattern matches *place*, the keys from the outermost to the innermost."""
        positions = self.start
        for key in place:
            positions = self.descend(positions, key)
        return self.is_met(positions)

    def _open(self, positions: Iterable[int]) -> Positions:
        """*positions*, and for each that is before a ``..`` also the one after it."""
        found: set[int] = set()
        for position in positions:
            found.add(position)
            while position < len(self.steps) and self.steps[position] is Wildcard.DEPTH:
                position += 1
                found.add(position)
        return frozenset(found)

    def __str__(self) -> str:
        text = "$"
        for number, step in enumerate(self.steps):
            if step is Wildcard.DEPTH:
                text += ".."
            else:
                written = "[*]" if step is Wildcard.ANY else _write_step(step)
                is_deep = number > 0 and self.steps[number - 1] is Wildcard.DEPTH
                text += written.removeprefix(".") if is_deep else written
        return text


def _step(found: re.Match[str]) -> PathStep:
    if found["any"] or found["item"]:
        return Wildcard.ANY
    if found["index"]:
        return int(found["index"])
    if found["quoted"]:
        return _unquote(found["quoted"])
    return found["name"]


def _unquote(text: str) -> str:
    if text.startswith("'"):
        return text[1:-1]
    try:
        return msgspec.json.decode(text, type=str)
    except (msgspec.DecodeError, UnicodeEncodeError):
        raise FormatError(f"not a quoted name: {text}") from None


def _is_taken(step: PathStep, key: str | int) -> bool:
    return isinstance(step, Wildcard) or (type(step) is type(key) and step == key)


def _write_step(step: str | int) -> str:
    return child_path("", step)

"""Patterns of JSON paths: which places of a value are meant.

$                  the value itself
.name  ["a name"]  a member; quoted where it is more than letters, digits, ``_`` and ``-``
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


class Wild(Enum):
    """What a pattern leaves open."""

    ANY = "*"
    DEPTH = ".."


PathStep: TypeAlias = str | int | Wild
Positions: TypeAlias = frozenset[int]
"""How far a pattern is matched: before which of its steps, for every way there is."""


_STEP: Final = re.compile(
    r"""(?P<depth>\.\.)?
        (?: (?(depth)|\.) (?:(?P<any>\*)|(?P<name>[\w-]+))
        | \[ (?:(?P<item>\*)|(?P<index>\d{1,9})|(?P<quoted>"(?:[^"\\]|\\.)*"|'[^'\\]*')) \] )""",
    re.VERBOSE,
)


class PathPattern:
    """A parsed pattern, and where in it a walk down a value stands."""

    def __init__(self, steps: Sequence[PathStep]) -> None:
        self.steps = tuple(steps)

    @classmethod
    def parse(cls, text: str) -> PathPattern:
        """The pattern that *text* is; :class:`FormatError` where it is none."""
        pattern, end = cls.parse_beginning(text)
        if end < len(text):
            raise FormatError(
                f"not a path at {text[end:]!r}; write for example $.messages[*].content or $..id"
            )
        return pattern

    @classmethod
    def parse_beginning(cls, text: str) -> tuple[PathPattern, int]:
        """The longest pattern that *text* begins with, and where it ends."""
        if not text.startswith("$"):
            raise FormatError(f"a path begins with $, not with {text[:1]!r}")
        steps: list[PathStep] = []
        end = 1
        while found := _STEP.match(text, end):
            steps += [Wild.DEPTH] if found["depth"] else []
            steps.append(_step(found))
            end = found.end()
        return cls(steps), end

    @cached_property
    def start(self) -> Positions:
        """Where a walk begins."""
        return self._open([0])

    def after(self, positions: Positions, key: str | int) -> Positions:
        """Where a walk stands that goes on to the member or item *key*."""
        return self._open(
            position if self.steps[position] is Wild.DEPTH else position + 1
            for position in positions
            if position < len(self.steps) and _takes(self.steps[position], key)
        )

    def is_met(self, positions: Positions) -> bool:
        """Whether the place reached is one that is meant."""
        return len(self.steps) in positions

    def matches(self, place: Sequence[str | int]) -> bool:
        """Whether *place*, the keys from the outermost to the innermost, is meant."""
        positions = self.start
        for key in place:
            positions = self.after(positions, key)
        return self.is_met(positions)

    def _open(self, positions: Iterable[int]) -> Positions:
        """*positions*, and those behind the ``..`` before which they stand."""
        found: set[int] = set()
        for position in positions:
            found.add(position)
            while position < len(self.steps) and self.steps[position] is Wild.DEPTH:
                position += 1
                found.add(position)
        return frozenset(found)

    def __str__(self) -> str:
        text = "$"
        for number, step in enumerate(self.steps):
            if step is Wild.DEPTH:
                text += ".."
            else:
                written = "[*]" if step is Wild.ANY else _write_step(step)
                is_deep = number > 0 and self.steps[number - 1] is Wild.DEPTH
                text += written.removeprefix(".") if is_deep else written
        return text


def _step(found: re.Match[str]) -> PathStep:
    if found["any"] or found["item"]:
        return Wild.ANY
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


def _takes(step: PathStep, key: str | int) -> bool:
    return isinstance(step, Wild) or (type(step) is type(key) and step == key)


def _write_step(step: str | int) -> str:
    return child_path("", step)

"""The name of a lane, a logical task of a run, and its parts.

    0            the first lane of the first process         0.1      the second task that it started
    0.1:2        the first lane of a process it started      0/4      inside its fourth call
    0.1~         code that ran for it in no defined order     g~       calls through the gateway

Names nest: ``0.1:2.3/4~`` is loose code inside the fourth call of a task of the process ``0.1:2``.
"""

from __future__ import annotations

from string import ascii_letters, digits
from typing import Final, Literal, TypeAlias

LaneKind: TypeAlias = Literal["process", "task", "inside", "loose"]

ROOT: Final = "0"
PROCESS: Final = ":"
TASK: Final = "."
INSIDE: Final = "/"
LOOSE: Final = "~"
_MARKS: Final = (TASK, INSIDE, LOOSE, PROCESS)
_ROOT_MARKS: Final = ascii_letters + digits
_KINDS: Final[dict[str, LaneKind]] = {TASK: "task", INSIDE: "inside", LOOSE: "loose"}


def is_loose(name: str) -> bool:
    """Whether the calls of the lane have no defined order."""
    return name.endswith(LOOSE)


def is_below_loose(name: str) -> bool:
    """Whether the lane or one of its parents is loose."""
    return LOOSE in name


class LaneName(str):
    """The name of a lane, with its parts as properties."""

    __slots__ = ()

    @property
    def kind(self) -> LaneKind:
        """Its relation to its parent; ``process`` for the first lane of a process."""
        return _KINDS.get(self.rstrip(digits)[-1:], "process")

    @property
    def parent(self) -> LaneName | None:
        """``0.1/3~`` → ``0.1/3`` → ``0.1`` → ``0``; the first lane of a process has none."""
        if self.endswith(LOOSE):
            return LaneName(self[:-1])
        cut = self._cut()
        return None if cut is None else LaneName(self[:cut])

    @property
    def process(self) -> LaneName:
        """The first lane of its process: ``0.1:2`` for ``0.1:2.3/4~``."""
        starter, mark, own = self.rpartition(PROCESS)
        return LaneName(starter + mark + own[: len(own) - len(own.lstrip(_ROOT_MARKS))])

    @property
    def ordinal(self) -> int | None:
        """The ordinal of its task, or of the call that contains it; ``None`` for a loose one."""
        last = self[max(self.rfind(TASK), self.rfind(INSIDE)) + 1 :]
        return int(last) if last.isdigit() else None

    @property
    def depth(self) -> int:
        """The number of tasks that it is below the first lane of the run, itself included."""
        return self.count(TASK)

    @property
    def around(self) -> LaneName:
        """The innermost lane inside a call that contains it: ``0/3.1/2`` for ``0/3.1/2.0~``."""
        before, _, behind = self.rpartition(INSIDE)
        return LaneName(f"{before}{INSIDE}{behind[: len(behind) - len(behind.lstrip(digits))]}")

    def is_within(self, other: str) -> bool:
        """Whether it is *other* or descends from it, by tasks, calls or processes."""
        return self == other or self.startswith(tuple(other + mark for mark in _MARKS))

    @property
    def is_of_stray(self) -> bool:
        """Whether its code ran in its process without having been started by the run."""
        return self.startswith(self.process + LOOSE)

    def move(self, parent: str, other: str) -> str:
        """Its name if its parent were *other* instead of *parent*."""
        return other + self.removeprefix(parent)

    def inside_of(self, caller: str) -> tuple[int, str] | None:
        """The ordinal of the call of *caller* that contains it, and the rest of the name, or ``None``."""
        start = f"{caller}{INSIDE}"
        behind = self[len(start) :] if self.startswith(start) else ""
        rest = behind.lstrip(digits)
        return (int(behind[: len(behind) - len(rest)]), rest) if rest != behind else None

    def in_call(self, ordinal: int, rest: str = "") -> str:
        """The lane inside its call with this *ordinal*; *rest* is as :meth:`inside_of` returns it."""
        return f"{self}{INSIDE}{ordinal}{rest}"

    def started_task(self, ordinal: int) -> str:
        """The lane of its task with this *ordinal*."""
        return f"{self}{TASK}{ordinal}"

    def started_process(self, ordinal: int) -> str:
        """The first lane of the process that it starts as its next task."""
        return f"{self}{PROCESS}{ordinal}"

    def _cut(self) -> int | None:
        cut = max(self.rfind(TASK), self.rfind(INSIDE))
        return cut if cut > max(0, self.rfind(PROCESS)) else None

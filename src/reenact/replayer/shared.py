"""The order in which the processes of a run take what they share, such as the lock of a queue.

The capture lists the lanes of all processes in this order, each with what it found. In a replay each process
marks in a file that all of them have open what it has taken, and waits before the next until all before it
is marked.
"""

from __future__ import annotations

import mmap
import os
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from reenact.lane_name import LaneName

_STALL_S: Final = 10.0
"""How long to wait for a process that takes nothing, at most; it is not awaited again."""


class SharedOrder:
    """What is still to be taken, seen from one process."""

    def __init__(self, file: Path, taken: Sequence[tuple[str, str]], root: str) -> None:
        """*taken* has each lane and what it found, in order; *root* is the first lane of this process."""
        self._recorded = taken
        self._root = root
        self._home_pid = os.getpid()
        self._places: dict[str, deque[int]] = {}
        """By lane: the places in the order that it still has."""
        for place, (lane, _) in enumerate(taken):
            self._places.setdefault(lane, deque()).append(place)
        fd = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            os.ftruncate(fd, len(taken))
            self._taken = mmap.mmap(fd, len(taken))
        finally:
            os.close(fd)
        self._next = 0
        """The first place that is not taken."""
        self._has_left = False
        self._since_s: float | None = None
        """When it became the next while this process waited."""

    def is_due(self, lane: str, now_s: float) -> bool:
        """Whether all before the next of *lane* is taken, or does not come.

        What the lane did not take when recorded comes last: it may have been killed before that.
        """
        places = self._places.get(lane)
        until = 0 if self._has_left else places[0] if places else len(self._recorded)
        while self._next < until:
            if not self._taken[self._next]:
                if self._since_s is None:
                    self._since_s = now_s
                if now_s < self._since_s + _STALL_S:
                    return False
                self._pass_over(LaneName(self._recorded[self._next][0]).process)
            self._next += 1
            self._since_s = None
        return True

    def found(self, lane: str) -> str | None:
        """What *lane* found then when it took its next; ``None`` if it took no more."""
        places = self._places.get(lane)
        return self._recorded[places[0]][1] if places else None

    def take(self, lane: str, found: str) -> None:
        """*lane* has taken its next; if it has *found* something else, this process goes its own way."""
        if places := self._places.get(lane):
            place = places.popleft()
            self._taken[place] = 1
            if found != self._recorded[place][1]:
                self.leave()

    def leave(self) -> None:
        """This process takes nothing more, or in another order."""
        if os.getpid() == self._home_pid:  # not in a forked child, which closes the run of its parent
            self._has_left = True
            self._places.clear()
            self._pass_over(self._root)

    def _pass_over(self, process: str) -> None:
        for place, (lane, _) in enumerate(self._recorded):
            if LaneName(lane).process == process:
                self._taken[place] = 1

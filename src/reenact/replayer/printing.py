"""Writes what threads print in the recorded order.

Threads that print at the same time do so in a random order. Replay does not block a thread for that, because
it may hold a lock that the thread before it needs. Instead, a piece that comes too early is buffered until
its turn. If an expected piece does not come, the buffer is flushed and the order is given up.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable
from time import monotonic
from typing import Any, Final

_LATE_S: Final = 1.0
"""How long replay waits for the next piece while others are buffered."""


class PrintOrder:
    """The print order of a run; *turns* are the lanes that printed one after another, with their pieces."""

    def __init__(self, turns: Iterable[tuple[str, int]]) -> None:
        self._turns = deque(turns)
        self._kept: list[tuple[str, Callable[[], object]]] = []
        """Buffered pieces in the order they came: the lane, and what writes the piece."""
        self._lock = threading.RLock()  # a signal handler may print in the middle of a piece
        self._since_s = 0.0
        """When a piece was written last, or the first one buffered."""
        self._is_watched = False

    def write(self, lane: str, write: Callable[[], object]) -> None:
        """Let *write* print a piece of the recorded *lane*: now, or when those before it have come."""
        if not self._turns:
            write()
            return
        with self._lock:
            if not self._kept:
                self._since_s = monotonic()
            self._kept.append((lane, write))
            self._write_due()
            if self._kept and not self._is_watched:
                self._watch()

    def forget_order(self) -> None:
        """Write what is kept, and from now on everything as it comes."""
        with self._lock:
            self._turns.clear()
            self._write_due()

    def _write_due(self) -> None:
        while self._kept:
            place = 0
            if self._turns:
                lane, left = self._turns[0]
                found = (number for number, (name, _) in enumerate(self._kept) if name == lane)
                place = next(found, -1)
                if place < 0:
                    return
                self._turns[0] = lane, left - 1
                if left <= 1:
                    self._turns.popleft()
            self._since_s = monotonic()
            _, write = self._kept.pop(place)
            write()

    def _watch(self) -> None:
        """Have what is kept written even where nobody prints any more."""
        watching = threading.Thread(target=self._give_up_late, name="reenact-prints", daemon=True)
        start: Any = threading.Thread.start  # past the seam: it is nobody's child
        try:
            getattr(start, "__wrapped__", start)(watching)
            self._is_watched = True
        except RuntimeError:  # the interpreter shuts down
            self.forget_order()

    def _give_up_late(self) -> None:
        pause = threading.Event()
        while True:
            with self._lock:
                late_s = self._since_s + _LATE_S - monotonic()
                if not self._kept or late_s <= 0:
                    if self._kept:
                        self.forget_order()
                    self._is_watched = False
                    return
            pause.wait(late_s)

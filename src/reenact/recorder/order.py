"""Records the order in which tasks end and print, and what arrives on an event loop while it is busy.

Tasks interact without making a call. What they do is written with the next event, so that replay can repeat
the order.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Coroutine, Generator
from contextlib import suppress
from functools import partial
from pathlib import Path
from threading import Lock, RLock
from typing import Any, Final, Protocol

from reenact.boundary import DescribeEnd, Lane, outside, watch_rounds
from reenact.formats.capture import CLOCK, ENDED, JOINED, PRINTED, READ, TOGETHER

_ENDING_S: Final = 0.1
"""A thread that is about to end waits at most this long for the one before it."""
_MOST_READS: Final = 5000
"""So many readings of the clock by libraries are noted; a program may make millions."""
_MOST_SHARED_BYTES: Final = 2**20
"""How much is noted of what several processes share; a program may look into a queue millions of times."""
_MOST_ROUNDS: Final = 50
"""After this many iterations of an event loop an arrival is no longer counted as the cause."""


class ActLog(Protocol):
    """Where the acts of tasks are written."""

    def note_order(self, lane: Lane, act: str) -> None:
        """*lane* did *act* before the next event."""


def note_shared(file: Path, act: str) -> None:
    """Note in the *file* of all processes of the run that one of them has taken what they share."""
    with suppress(OSError):  # the command has ended before this process
        fd = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        try:
            if os.fstat(fd).st_size < _MOST_SHARED_BYTES:
                os.write(fd, f"{act}\n".encode())
        finally:
            os.close(fd)


class TaskOrder:
    """Notes what the tasks, threads and jobs of one run do without a call."""

    def __init__(self, events: ActLog, is_recording: Callable[[], bool]) -> None:
        self._events = events
        self._is_recording = is_recording
        self._ending = Lock()
        self._ending_lane: Lane | None = None
        """The thread or job that is about to end, if one is."""
        self._motions: dict[asyncio.AbstractEventLoop, _Motion] = {}
        """Event loops that are still busy with something that arrived from outside."""
        self.running: set[Lane] = set()
        """Tasks, threads and jobs that have not ended."""
        self._printing = RLock()  # a signal handler may print in the middle of a piece
        self._printing_lane: Lane | None = None
        """The lane that printed last."""
        self._pieces = 0
        """How many pieces it has printed in a row."""
        self._clock_reads = 0

    def note(self, lane: Lane, act: str) -> None:
        """*lane* did *act* before the next event."""
        if lane.has_order and self._is_recording():
            self._events.note_order(lane, act)

    def note_end(self, lane: Lane, how: str) -> None:
        self.running.discard(lane)
        self.note(lane, f"{ENDED} {how}" if how else ENDED)

    def begin_end(self, lane: Lane, how: str) -> None:
        """Note that a thread or job ends, and keep others from ending until its end is visible.

        So the noted order is the one that the program sees.
        """
        if lane.has_order and self._is_recording() and self._ending.acquire(timeout=_ENDING_S):
            self._ending_lane = lane
        self.note_end(lane, how)

    def finish_end(self, lane: Lane) -> None:
        """Let others end: the end of *lane* is visible now."""
        if self._ending_lane is lane:
            self._ending_lane = None
            self._ending.release()

    def print_piece(self, lane: Lane, write: Callable[[], object]) -> None:
        """Let *lane* print a piece; where lanes take turns in that, it is noted which printed how many."""
        with self._printing:
            before = self._printing_lane
            if lane is not before and lane.has_order:
                if before is not None:
                    self.note(before, f"{PRINTED}{self._pieces}")
                self._printing_lane, self._pieces = lane, 0
            self._pieces += lane.has_order
            write()

    def note_clock(self, lane: Lane, place: str, now_ns: int) -> None:
        """A library read the wall clock in *lane* at *place*."""
        self._clock_reads += 1
        if self._clock_reads <= _MOST_READS:
            self.note(lane, f"{CLOCK}{place} {now_ns}")

    def watch(self, lane: Lane, coro: object, describe: DescribeEnd) -> object:
        """Wrap *coro*, which a new task runs, so that its end is noted."""
        self.running.add(lane)
        if not lane.has_order:
            return coro
        # A done callback would come too late: others may see the end before it runs.
        return _Watched(coro, lambda answer, error: self.note_end(lane, describe(answer, error)))

    def note_piece(self, lane: Lane, before: object) -> object:
        """*lane* read a piece of a stream; *before* is what this returned for the piece before it."""
        loop = asyncio._get_running_loop()  # noqa: SLF001 — in asyncio's __all__
        if loop is None:
            self.note(lane, READ)
            return None
        motion = self._motions.get(loop)
        if motion is not None and before == (motion, motion.made):
            self.note(lane, READ + TOGETHER)
            return before
        # A loop that does not show what is due, such as uvloop's, counts as idle.
        is_busy = bool(getattr(loop, "_ready", ()))
        if motion is None:
            motion = self._begin_motion(loop)
        motion.rounds = 0
        self.note(lane, READ + JOINED * is_busy)
        return motion, motion.made

    def rounds_since_last(self) -> int | None:
        """How many iterations the running event loop has made since the last arrival; ``None`` if idle.

        Counts from this arrival from now on.
        """
        loop = asyncio._get_running_loop()  # noqa: SLF001 — in asyncio's __all__
        if loop is None:
            return None
        motion = self._motions.get(loop)
        if motion is None:
            self._begin_motion(loop)
            return None
        rounds, motion.rounds = motion.rounds, 0
        return rounds

    def note_callback_end(self) -> None:
        """The callback of a timer has run: what is woken from now on goes on after what it has woken."""
        motion = self._motions.get(asyncio._get_running_loop())  # type: ignore[arg-type]  # noqa: SLF001
        if motion is not None:
            motion.end_callback()

    def count_before(self) -> int:
        """How many timers of the loop's last round have woken what went on before the running task."""
        motion = self._motions.get(asyncio._get_running_loop())  # type: ignore[arg-type]  # noqa: SLF001
        return motion.passed if motion is not None else 0

    def _begin_motion(self, loop: asyncio.AbstractEventLoop) -> _Motion:
        motion = self._motions[loop] = _Motion(loop, partial(self._motions.pop, loop))
        return motion


class _Motion:
    """Counts the iterations of an event loop until nothing is due any more."""

    def __init__(self, loop: Any, at_rest: Callable[[], object]) -> None:
        self.rounds = 0
        """Iterations since the last arrival."""
        self.made = 0
        """All iterations."""
        self.passed = 0
        """How many timers of the iteration before have woken what has gone on in this one."""
        self._fired = 0
        """How many timers have fired in this iteration."""
        self._marks = 0
        """How many callbacks of ours are due."""
        self._loop = loop
        self._at_rest = at_rest
        self._stop_counting = watch_rounds(loop, self._count)
        if self._stop_counting is None:  # a loop that does not show what is due counts as idle
            with outside():
                loop.call_soon(at_rest)

    def _count(self) -> None:
        """Count the iteration that begins now, if anything is due."""
        self.passed = self._fired = 0
        # asyncio's own loops show what is due.
        if len(self._loop._ready) > self._marks and self.rounds < _MOST_ROUNDS:  # noqa: SLF001
            self.rounds += 1
            self.made += 1
        elif self._stop_counting is not None:
            self._stop_counting()
            self._at_rest()

    def end_callback(self) -> None:
        """Mark the place behind all that is due, where it will be passed in the next iteration."""
        if self._stop_counting is None:
            return
        self._fired += 1
        self._marks += 1
        with outside():
            self._loop.call_soon(self._pass_mark, self._fired)

    def _pass_mark(self, number: int) -> None:
        self.passed = number
        self._marks -= 1


class _Watched(Coroutine[object, object, object]):
    """A task's coroutine that reports its end at once and passes everything else on."""

    def __init__(self, coro: Any, ended: Callable[[object, BaseException | None], None]) -> None:
        self._coro = coro
        self._ended = ended

    def __getattr__(self, name: str) -> object:
        return getattr(self._coro, name)

    def __await__(self) -> Generator[object, object, object]:
        raise NotImplementedError("only a task runs it")

    def send(self, value: object) -> object:
        try:
            return self._coro.send(value)
        except StopIteration as end:
            self._ended(end.value, None)
            raise
        except BaseException as error:
            self._ended(None, error)
            raise

    def throw(self, *error: object) -> object:
        try:
            return self._coro.throw(*error)
        except StopIteration as end:
            self._ended(end.value, None)
            raise
        except BaseException as raised:
            self._ended(None, raised)
            raise

    def close(self) -> None:
        self._coro.close()

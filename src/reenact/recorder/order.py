"""In which order the tasks of a recorded run end, and what comes in on its event loops while they are busy.

The agent's own tasks do such things among themselves, without a call. They are written with the next event,
so that replay can let them happen in the same order.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Generator
from functools import partial
from threading import Lock
from typing import Any, Final, Protocol

from reenact.boundary import DescribeEnd, Lane, outside
from reenact.formats.capture import ENDED

_ENDING_S: Final = 0.1
"""Nobody is kept longer from ending, whatever befell the one before."""
_MOST_ROUNDS: Final = 50
"""After so many rounds of an event loop nobody can tell any more what led to what."""


class ActLog(Protocol):
    """Where it is written what tasks do among themselves."""

    def note_order(self, lane: Lane, act: str) -> None:
        """*lane* did *act* before the next event."""


class TaskOrder:
    """What the tasks, threads and jobs of one run do among themselves."""

    def __init__(self, events: ActLog, is_recording: Callable[[], bool]) -> None:
        self._events = events
        self._is_recording = is_recording
        self._ending = Lock()
        self._ending_lane: Lane | None = None
        """The thread or job that is about to end, if one is."""
        self._motions: dict[asyncio.AbstractEventLoop, _Motion] = {}
        """Event loops that have not come to rest since something came in from outside."""
        self.running: set[Lane] = set()
        """Tasks, threads and jobs that are not over."""

    def note(self, lane: Lane, act: str) -> None:
        """*lane* did *act* before the next event."""
        if lane.has_order and self._is_recording():
            self._events.note_order(lane, act)

    def note_end(self, lane: Lane, how: str) -> None:
        self.running.discard(lane)
        self.note(lane, f"{ENDED} {how}" if how else ENDED)

    def begin_end(self, lane: Lane, how: str) -> None:
        """A thread or job is about to end: no other may until this one can be seen to have ended.

        So the order noted is the order seen.
        """
        if lane.has_order and self._is_recording() and self._ending.acquire(timeout=_ENDING_S):
            self._ending_lane = lane
        self.note_end(lane, how)

    def finish_end(self, lane: Lane) -> None:
        """It can be seen to have ended."""
        if self._ending_lane is lane:
            self._ending_lane = None
            self._ending.release()

    def watch(self, lane: Lane, coro: object, describe: DescribeEnd) -> object:
        """*coro*, which a new task runs, such that its end is noted."""
        self.running.add(lane)
        if not lane.has_order:
            return coro
        # Others may see that it is over before anybody is called back.
        return _Watched(coro, lambda answer, error: self.note_end(lane, describe(answer, error)))

    def rounds_since_last(self) -> int | None:
        """How many rounds the running event loop has made since something came in; ``None`` if at rest.

        What comes in now is the last from now on.
        """
        loop = asyncio._get_running_loop()  # noqa: SLF001 — in asyncio's __all__
        if loop is None:
            return None
        motion = self._motions.get(loop)
        if motion is None:
            self._motions[loop] = _Motion(loop, partial(self._motions.pop, loop))
            return None
        rounds, motion.rounds = motion.rounds, 0
        return rounds


class _Motion:
    """What came in on an event loop last, from outside of it, has not come to rest yet."""

    def __init__(self, loop: asyncio.AbstractEventLoop, at_rest: Callable[[], object]) -> None:
        self.rounds = 0
        """How many the loop has made since."""
        self._loop = loop
        self._at_rest = at_rest
        self._look_again()

    def _look_again(self) -> None:
        with outside():
            self._loop.call_soon(self._count)

    def _count(self) -> None:
        self.rounds += 1
        # A loop that does not show what is due, as uvloop, is taken to have come to rest.
        if getattr(self._loop, "_ready", None) and self.rounds < _MOST_ROUNDS:
            self._look_again()
        else:
            self._at_rest()


class _Watched(Coroutine[object, object, object]):
    """A task's coroutine whose end is told at once; it passes everything on."""

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

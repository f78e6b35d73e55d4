"""Whether a thread has come to rest: blocked, gone, or off computing by itself; and the clock to ask by.

There is no way to ask a thread. One that sleeps and has not run for longer than the interpreter's switch
interval is blocked: a thread that only waits for the interpreter's lock wakes up that often to ask for it,
and one that waits for a processor does not sleep. A wrong answer costs recorded order, never correctness.

Not by ``sys._current_frames()``: until Python 3.11.8 and 3.12.1 it may lock the interpreter up for ever
when another thread is being started.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Collection
from pathlib import Path
from time import monotonic
from typing import Final, NamedTuple

_COMPUTING_S: Final = 0.05
"""A thread that computes for so long without a call is not waited for."""
_LONGEST_S: Final = 0.25
"""Nor is one that is under way for so long, looking at something again and again."""
_STARTING_S: Final = 0.02
"""An executor that has not taken a job after so long has no thread for it."""
_MARGIN_S: Final = 0.003
_TASKS: Final = Path("/proc/self/task")
"""A folder per thread, where the platform is Linux."""


class PatientClock:
    """Stands still while the machine is too busy to let anybody run.

    Waiting for a fixed time on a loaded machine gives up on threads that merely got no processor. This clock
    advances in :meth:`pause` only, by at most half more than each pause was meant to take.
    """

    def __init__(self) -> None:
        self.now_s = 0.0

    def pause(self, wake: threading.Event, pause_s: float) -> None:
        """Wait for *wake*, at most *pause_s*."""
        began = monotonic()
        wake.wait(pause_s)
        self.now_s += min(monotonic() - began, pause_s * 1.5)


class UnseenThread(NamedTuple):
    """A thread that no seam saw start, and that ``threading`` may not know; or a greenlet in one."""

    identity: int
    native_id: int


def this_thread() -> UnseenThread:
    """The calling one."""
    return UnseenThread(threading.get_ident(), threading.get_native_id())


class MovingThread:
    """A thread that was set in motion and may come to rest."""

    __slots__ = ("_clock", "_first", "_last", "_started_s", "_still_since_s", "_thread_id")

    def __init__(self, thread_id: int | UnseenThread, clock: PatientClock, since_s: float) -> None:
        self._thread_id = thread_id
        self._clock = clock
        self._started_s = self._still_since_s = since_s
        self._first: _LoopState | None = None
        self._last: _LoopState | None = None

    def is_at_rest(self) -> bool:
        """Look once more."""
        state = _look_at_loop(self._thread_id)
        if state is None or self._clock.now_s - self._started_s > _LONGEST_S:
            return True
        self._first = self._first or state
        if state != self._last or not state.sleeps:
            self._last, self._still_since_s = state, self._clock.now_s
            return state.ran_s - self._first.ran_s > _COMPUTING_S
        return self._clock.now_s - self._still_since_s > sys.getswitchinterval() + _MARGIN_S


class StartingJob:
    """A job that none of an executor's threads may have taken yet; or a thread that has not begun to run."""

    __slots__ = ("_clock", "_given_s")

    def __init__(self, clock: PatientClock) -> None:
        self._clock = clock
        self._given_s = clock.now_s

    def is_at_rest(self) -> bool:
        """Whether it is not going to be taken soon: all threads have others to do."""
        return self._clock.now_s - self._given_s > _STARTING_S


def others_run(besides: Collection[int] = ()) -> bool:
    """Whether a thread, other than the one that asks and those *besides*, runs or waits for a processor."""
    left_out = {str(thread.native_id) for thread in threading.enumerate() if thread.ident in besides}
    left_out.add(str(threading.get_native_id()))
    return any(_runs(folder) for folder in _TASKS.glob("*") if folder.name not in left_out)


def _runs(folder: Path) -> bool:
    try:
        return _state(folder) == b"R"
    except OSError:  # ended meanwhile
        return False


def _state(folder: Path) -> bytes:
    return (folder / "stat").read_bytes().rpartition(b") ")[2][:1]


class _LoopState(NamedTuple):
    ran_s: float
    turns: int
    """How often the thread was given a processor."""
    sleeps: bool


_SLEEPING: Final = _LoopState(0.0, 0, sleeps=True)
"""What is taken for true where the platform does not tell."""


def _look_at_loop(thread_id: int | UnseenThread) -> _LoopState | None:
    """``None`` for one that is gone, and for a greenlet of who asks, which has run as far as it could."""
    if isinstance(thread_id, UnseenThread):
        native_id = thread_id.native_id
        return _ask_kernel(native_id) if native_id != threading.get_native_id() else None
    for thread in threading.enumerate():
        if thread.ident == thread_id:
            return _ask_kernel(thread.native_id) if thread.is_alive() else None
    return None


def _ask_kernel(native_id: int | None) -> _LoopState | None:
    if sys.platform != "linux":
        return _SLEEPING
    folder = _TASKS / str(native_id)
    try:
        state = _state(folder)
        ran_ns, _, turns = (folder / "schedstat").read_bytes().split()
    except (OSError, ValueError):
        return _SLEEPING if folder.exists() else None
    return _LoopState(int(ran_ns) / 1e9, int(turns), sleeps=state in b"SD")

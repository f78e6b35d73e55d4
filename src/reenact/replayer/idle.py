"""Decides whether a thread has come to rest: it is blocked, has ended, or computes for long.

A thread cannot be asked. If it sleeps and has not run for longer than the interpreter's switch interval, it
is blocked: a thread that waits for the interpreter's lock wakes up in each interval to request it, and one
that waits for a processor does not sleep. A wrong decision costs recorded order, never correctness.

``sys._current_frames()`` is no alternative: before Python 3.11.8 and 3.12.1 it may deadlock the interpreter
while another thread is being started.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Collection
from pathlib import Path
from time import monotonic
from typing import Final, NamedTuple

_COMPUTING_S: Final = 0.05
"""After a thread has computed for this long without a call, nothing waits for it."""
_LONGEST_S: Final = 0.25
"""The same for a thread that wakes up again and again, as in polling, for this long."""
_STARTING_S: Final = 0.02
"""If an executor has not started a job after this long, it has no free thread."""
_MARGIN_S: Final = 0.003
_TASKS: Final = Path("/proc/self/task")
"""A folder per thread, on Linux."""


class PatientClock:
    """A clock that stands still while the machine is too busy to run this process.

    With a fixed timeout, a loaded machine would give up on threads that merely got no processor. This clock
    advances only in :meth:`pause`, by at most 1.5 times the requested pause.
    """

    def __init__(self) -> None:
        self.now_s = 0.0

    def pause(self, wake: threading.Event, pause_s: float) -> None:
        """Wait for *wake*, at most *pause_s*."""
        began = monotonic()
        wake.wait(pause_s)
        self.now_s += min(monotonic() - began, pause_s * 1.5)


class UnseenThread(NamedTuple):
    """A thread, or a greenlet in one, whose start no seam saw; ``threading`` may not know it."""

    identity: int
    native_id: int


def this_thread() -> UnseenThread:
    """The calling thread."""
    return UnseenThread(threading.get_ident(), threading.get_native_id())


class MovingThread:
    """A thread that was woken and may come to rest."""

    __slots__ = ("_clock", "_first", "_last", "_started_s", "_still_since_s", "_thread_id")

    def __init__(self, thread_id: int | UnseenThread, clock: PatientClock, since_s: float) -> None:
        self._thread_id = thread_id
        self._clock = clock
        self._started_s = self._still_since_s = since_s
        self._first: _LoopState | None = None
        self._last: _LoopState | None = None

    def is_at_rest(self) -> bool:
        """Look at the thread once more; whether it is at rest."""
        state = _look_at_loop(self._thread_id)
        if state is None or self._clock.now_s - self._started_s > _LONGEST_S:
            return True
        self._first = self._first or state
        if state != self._last or not state.sleeps:
            self._last, self._still_since_s = state, self._clock.now_s
            return state.ran_s - self._first.ran_s > _COMPUTING_S
        return self._clock.now_s - self._still_since_s > sys.getswitchinterval() + _MARGIN_S

    @property
    def is_restless(self) -> bool:
        """Whether it counts as at rest although it still runs."""
        return self._last is None or not self._last.sleeps or self._clock.now_s - self._started_s > _LONGEST_S


class StartingJob:
    """A submitted job that no thread of the executor has started, or a thread that has not begun to run."""

    __slots__ = ("_clock", "_given_s")

    def __init__(self, clock: PatientClock) -> None:
        self._clock = clock
        self._given_s = clock.now_s

    def is_at_rest(self) -> bool:
        """Whether it will not start soon, because all threads of the executor are busy."""
        return self._clock.now_s - self._given_s > _STARTING_S


class Bystanders:
    """The threads of this process that nobody woke as far as the replay knows.

    They may run all the same, because another thread has set an event, ended, or written to a socket. A
    thread that never comes to rest, as in a tight polling loop, is left out from then on.
    """

    def __init__(self, clock: PatientClock) -> None:
        self._clock = clock
        self._at_rest: dict[int, _LoopState] = {}
        """By the identity of a thread: its state when it was at rest."""
        self._awake: dict[int, MovingThread] = {}
        self._restless: set[int] = set()

    @property
    def any_awake(self) -> bool:
        """Whether one of them ran when it was last looked at."""
        return bool(self._awake)

    def are_at_rest(self, besides: Collection[int | None]) -> bool:
        """Look at all threads except the caller and those in *besides*."""
        left_out = {threading.get_ident(), *besides, *self._restless}
        threads = {thread.ident: thread for thread in threading.enumerate() if thread.ident not in left_out}
        for gone in self._awake.keys() - threads.keys():
            del self._awake[gone]
        for identity, thread in threads.items():
            if identity is not None:
                self._look(identity, _ask_kernel(thread.native_id) if thread.is_alive() else None)
        return not self._awake

    def _look(self, identity: int, state: _LoopState | None) -> None:
        if state is None or (state.sleeps and state == self._at_rest.get(identity)):
            self._awake.pop(identity, None)
            return
        awake = self._awake.setdefault(identity, MovingThread(identity, self._clock, self._clock.now_s))
        if awake.is_at_rest():
            del self._awake[identity]
            self._at_rest[identity] = state
            if awake.is_restless:
                self._restless.add(identity)


def do_others_run(besides: Collection[int] = ()) -> bool:
    """Whether any thread except the caller and those in *besides* runs or waits for a processor."""
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
    """How often the thread got a processor."""
    sleeps: bool


_SLEEPING: Final = _LoopState(0.0, 0, sleeps=True)
"""The assumption on platforms that do not report the state of threads."""


def _look_at_loop(thread_id: int | UnseenThread) -> _LoopState | None:
    """``None`` if the thread has ended, or is a greenlet in the calling thread, which has already paused."""
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

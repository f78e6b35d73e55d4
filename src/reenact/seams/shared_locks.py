"""Locks and connections of ``multiprocessing``: who takes a lock first, and what has arrived by then.

The queues, semaphores, conditions and events of ``multiprocessing`` consist of such locks, so their order
decides which process gets which job, and in which order results arrive. It is recorded for all processes of
the run together, with what they found when they looked without waiting, and a replay repeats it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from types import ModuleType
from typing import Any, Final

from reenact.boundary import Lane, current_lane
from reenact.library import is_library
from reenact.seams.imports import Libraries
from reenact.seams.patches import Patch

_NOTHING: Final = "-"
"""What a process found that did not get what it wanted."""
_LONGEST_S: Final = 60.0
"""How long to wait in a replay for what was there in the recording."""
_RECURSIVE: Final = 0
"""The kind of a lock that its owner may take again."""


def _lock_patches(synchronize: ModuleType) -> list[Patch]:
    return [
        Patch(synchronize.SemLock, "_make_methods", _make_methods),
        Patch(synchronize.SemLock, "__enter__", lambda _: lambda self: self.acquire()),
    ]


def _make_methods(original: Callable[[object], None]) -> Callable[[Any], None]:
    def make_methods(self: Any) -> None:
        original(self)
        self.acquire = partial(_acquire, self._semlock)

    return make_methods


def _acquire(semlock: Any, block: bool = True, timeout: float | None = None) -> bool:
    lane = _lane_with_turns()
    if lane is None or (semlock.kind == _RECURSIVE and semlock._is_mine()):  # noqa: SLF001
        return bool(semlock.acquire(block, timeout))
    if block and timeout is None:
        lane.context.await_shared(lane)
        semlock.acquire()
        lane.context.note_shared(lane, "")
        return True
    return _look(lane, lambda seconds: semlock.acquire(True, seconds), (timeout or 0.0) if block else 0.0)


def _connection_patches(connection: ModuleType) -> list[Patch]:
    return [Patch(connection._ConnectionBase, "poll", _poll), Patch(connection, "wait", _wait)]  # noqa: SLF001


def _poll(original: Callable[..., bool]) -> Callable[..., bool]:
    def poll(self: object, timeout: float | None = 0.0) -> bool:
        lane = _lane_with_turns()
        if lane is None or timeout is None:
            return original(self, timeout)
        return _look(lane, partial(original, self), timeout)

    return poll


def _wait(original: Callable[..., list[object]]) -> Callable[..., list[object]]:
    def wait(object_list: list[object], timeout: float | None = None) -> list[object]:
        """Return what is ready; in a replay what was ready then, as soon as it is."""
        lane = _lane_with_turns()
        if lane is None or is_library(sys._getframe(1).f_code.co_filename):  # noqa: SLF001
            return original(object_list, timeout)
        objects = list(object_list)
        found = lane.context.await_shared(lane)
        places = _places(found or "")
        if found is None or any(place >= len(objects) for place in places):
            ready = original(objects, timeout)
        else:
            ready = [objects[place] for place in places]
            for each in ready:
                original([each], _LONGEST_S)
        lane.context.note_shared(lane, ",".join(str(objects.index(each)) for each in ready) or _NOTHING)
        return ready

    return wait


def _places(found: str) -> list[int]:
    return [int(place) for place in found.split(",") if place.isdecimal()]


def _process_patches(process: ModuleType) -> list[Patch]:
    return [
        Patch(process.BaseProcess, "join", _join),
        Patch(process.BaseProcess, "is_alive", _is_alive),
        Patch(process.BaseProcess, "terminate", _end_in_turn),
        Patch(process.BaseProcess, "kill", _end_in_turn),
    ]


def _join(original: Callable[..., None]) -> Callable[..., None]:
    def join(self: Any, timeout: float | None = None) -> None:
        lane = _lane_with_turns()

        def attempt(seconds: float) -> bool:
            original(self, seconds)
            return self.exitcode is not None

        if lane is None or timeout is None:
            original(self, timeout)
        else:
            _look(lane, attempt, timeout)

    return join


def _is_alive(original: Callable[[object], bool]) -> Callable[[Any], bool]:
    def is_alive(self: Any) -> bool:
        lane = _lane_with_turns()
        if lane is None or is_library(sys._getframe(1).f_code.co_filename):  # noqa: SLF001 — pools look, too
            return original(self)
        return not _look(lane, lambda seconds: not (original(self) and _outlives(self, seconds)), 0.0)

    return is_alive


def _outlives(process: Any, seconds: float) -> bool:
    return seconds <= 0 or process._popen is None or process._popen.wait(seconds) is None  # noqa: SLF001


def _end_in_turn(original: Callable[[object], None]) -> Callable[[object], None]:
    def end(self: object) -> None:
        """End the process when it has taken as much as the recorded one."""
        lane = _lane_with_turns()
        if lane is None:
            original(self)
            return
        lane.context.await_shared(lane)
        original(self)
        lane.context.note_shared(lane, "")

    return end


def _lane_with_turns() -> Lane | None:
    lane = current_lane()
    return lane if lane is not None and lane.has_order else None


def _look(lane: Lane, attempt: Callable[[float], object], timeout: float) -> bool:
    """Whether *attempt* succeeds within *timeout*; in a replay whether it did then."""
    found = lane.context.await_shared(lane)
    is_there = found != _NOTHING and bool(attempt(timeout if found is None else _LONGEST_S))
    lane.context.note_shared(lane, "" if is_there else _NOTHING)
    return is_there


LIBRARIES: Final[Libraries] = {
    "multiprocessing.connection": _connection_patches,
    "multiprocessing.process": _process_patches,
    "multiprocessing.synchronize": _lock_patches,
}

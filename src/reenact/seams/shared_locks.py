"""Locks and connections of ``multiprocessing``: who takes a lock first, and what has arrived by then.

The queues, semaphores, conditions and events of ``multiprocessing`` consist of such locks, so their order
decides which process gets which job, and in which order results arrive. It is recorded for all processes of
the run together, with what they found when they looked without waiting, and a replay repeats it. So is the
order of the calls on objects of a manager.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from types import FrameType, ModuleType
from typing import Any, Final, TypeVar

from reenact.boundary import Lane, current_lane
from reenact.library import is_library
from reenact.seams.imports import Libraries
from reenact.seams.patches import Patch

T = TypeVar("T")

_NOTHING: Final = "-"
"""What a process found that did not get what it wanted."""
_LONGEST_S: Final = 10.0
"""How long to wait in a replay for what was there in the recording."""
_MARK: Final = "-r"
"""At the end of a lock's name: the agent has made it."""
_PACKAGE: Final = "multiprocessing."
_OWN: Final = (_PACKAGE, __name__)
_RENDEZVOUS: Final = "wait"
"""The method of an object of a manager that ends only after others have called theirs."""
_RECURSIVE: Final = 0
"""The kind of a lock that its owner may take again."""


def _lock_patches(synchronize: ModuleType) -> list[Patch]:
    return [
        Patch(synchronize.SemLock, "_make_name", _make_name),
        Patch(synchronize.SemLock, "_make_methods", _make_methods),
        Patch(synchronize.SemLock, "__enter__", lambda _: lambda self: self.acquire()),
    ]


def _make_name(original: Callable[[], str]) -> Callable[[], str]:
    """Mark the names of the agent's locks, by which other processes know them, too."""
    return lambda *_: original() + _MARK * _is_agent_calling()


def _make_methods(original: Callable[[object], None]) -> Callable[[Any], None]:
    def make_methods(self: Any) -> None:
        original(self)
        name = self._semlock.name  # none if it was made for children that are forked
        if _is_agent_calling() if name is None else name.endswith(_MARK):
            self.acquire = partial(_acquire, self._semlock)

    return make_methods


def _acquire(semlock: Any, block: bool = True, timeout: float | None = None) -> bool:
    lane = current_lane()
    if lane is None or not lane.has_order or (semlock.kind == _RECURSIVE and semlock._is_mine()):  # noqa: SLF001
        return bool(semlock.acquire(block, timeout))
    if block and timeout is None:
        return bool(_do_in_turn(lane, semlock.acquire))
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
        if lane is None or is_library(sys._getframe(1).f_code.co_filename):  # noqa: SLF001 — as in a poll
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
        if lane is None:
            return original(self)
        return not _look(lane, lambda seconds: not (original(self) and _outlives(self, seconds)), 0.0)

    return is_alive


def _outlives(process: Any, seconds: float) -> bool:
    return seconds <= 0 or process._popen is None or process._popen.wait(seconds) is None  # noqa: SLF001


def _end_in_turn(original: Callable[[object], None]) -> Callable[[object], None]:
    """End the process when it has taken as much as the recorded one."""
    return lambda self: _do_in_turn(_lane_with_turns(), lambda: original(self))


def _manager_patches(managers: ModuleType) -> list[Patch]:
    return [Patch(managers.BaseProxy, "_callmethod", _call_method)]


def _call_method(original: Callable[..., object]) -> Callable[..., object]:
    def call_method(self: object, method: str, *args: object, **options: object) -> object:
        if method == _RENDEZVOUS:
            return original(self, method, *args, **options)
        return _do_in_turn(_lane_with_turns(), lambda: original(self, method, *args, **options))

    return call_method


def _do_in_turn(lane: Lane | None, act: Callable[[], T]) -> T:
    if lane is None:
        return act()
    lane.context.await_shared(lane)
    try:
        return act()
    finally:
        lane.context.note_shared(lane, "")


def _lane_with_turns() -> Lane | None:
    """The current lane, if the agent's own code has called; libraries look as often as time allows."""
    lane = current_lane()
    return lane if lane is not None and lane.has_order and _is_agent_calling() else None


def _is_agent_calling() -> bool:
    """Whether the agent's own code has called into ``multiprocessing``."""
    frame: FrameType | None = sys._getframe(1)  # noqa: SLF001 — the caller decides whose it is
    # The methods of a manager's objects have no module.
    while frame is not None and str(frame.f_globals.get("__name__", _PACKAGE)).startswith(_OWN):
        frame = frame.f_back
    return frame is not None and not is_library(frame.f_code.co_filename)


def _look(lane: Lane, attempt: Callable[[float], object], timeout: float) -> bool:
    """Whether *attempt* succeeds within *timeout*; in a replay whether it did then."""
    found = lane.context.await_shared(lane)
    is_there = found != _NOTHING and bool(attempt(timeout if found is None else _LONGEST_S))
    lane.context.note_shared(lane, "" if is_there else _NOTHING)
    return is_there


LIBRARIES: Final[Libraries] = {
    "multiprocessing.connection": _connection_patches,
    "multiprocessing.managers": _manager_patches,
    "multiprocessing.process": _process_patches,
    "multiprocessing.synchronize": _lock_patches,
}

"""Processes that this one makes of itself: by ``os.fork``, and by ``multiprocessing`` in whichever way.

They run the agent's own code, so they are neither outside nor one call: each begins as a process of the run,
named after the lane that made it and the ordinal at which it did. A pool's workers are not followed; what a
worker is given to do depends on who is idle, and a pool's jobs are calls.
"""

from __future__ import annotations

import atexit
import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from contextvars import ContextVar
from types import ModuleType
from typing import Any, Final, Protocol

import msgspec

from reenact.boundary import Lane, current_lane, forget_runs
from reenact.lane_name import LaneName
from reenact.seams.imports import Libraries, watched
from reenact.seams.patches import Patch
from reenact.seams.pools import POOLS


class Born(msgspec.Struct, frozen=True):
    """Where a child process comes from."""

    root: str
    """Its first lane, as the capture calls it."""
    within: str | None
    """The id of the call inside which it was made."""


class Parent(Protocol):
    """What this process does for the command, as far as its children are concerned."""

    def settle(self) -> None:
        """Be one of the run's processes from now on, although no call may have been made."""

    def lane_name(self, lane: Lane) -> str:
        """What the capture calls *lane*."""

    def bear(self, born: Born) -> None:
        """In a new fork: begin as *born*."""

    def beginning(self, born: Born) -> object:
        """What begins as *born* in the interpreter in which it is unpickled."""


_parent: Parent | None = None
_starting: ContextVar[Born | bool | None] = ContextVar("reenact_starting", default=False)
"""The child that ``multiprocessing`` is starting; ``False`` while it starts none."""
_forking: ContextVar[Born | None] = ContextVar("reenact_forking", default=None)
_watching: AbstractContextManager[None] | None = None


def follow(parent: Parent) -> None:
    """From now on children of this process begin as *parent* says."""
    global _parent, _watching
    _parent = parent
    if _watching is None:  # a fork has all of this from its parent
        _watching = watched(_LIBRARIES)
        _watching.__enter__()
        atexit.register(_watching.__exit__, None, None, None)
        os.register_at_fork(before=_before_fork, after_in_child=_after_fork_in_child)


def is_bearing() -> bool:
    """Whether ``multiprocessing`` is just starting a child that is followed."""
    return isinstance(_starting.get(), Born)


def _born() -> Born | None:
    lane = current_lane()
    if _parent is None or lane is None:
        return None
    try:
        _parent.settle()
    except OSError:  # the command is over, and left this process behind
        return None
    ordinal = LaneName(lane.child().name).ordinal or 0
    return Born(LaneName(_parent.lane_name(lane)).started_process(ordinal), lane.within)


def _before_fork() -> None:
    starting = _starting.get()
    _forking.set(None)
    _forking.set(_born() if isinstance(starting, bool) else starting)


def _after_fork_in_child() -> None:
    born, is_worker = _forking.get(), _starting.get() is None
    _starting.set(False)
    if is_worker:
        forget_runs()
    elif born is not None and _parent is not None:
        _parent.bear(born)


def _process_patches(process: ModuleType) -> list[Patch]:
    return [Patch(process.BaseProcess, "start", _start)]


def _start(original: Callable[[object], None]) -> Callable[[Any], None]:
    def start(self: object) -> None:
        target = getattr(self, "_target", None)
        token = _starting.set(None if getattr(target, "__module__", "") in POOLS else _born())
        try:
            original(self)
        finally:
            _starting.reset(token)

    return start


def _spawn_patches(spawn: ModuleType) -> list[Patch]:
    return [Patch(spawn, "get_preparation_data", _get_preparation_data)]


def _get_preparation_data(original: Callable[[str], dict[str, object]]) -> Callable[[str], dict[str, object]]:
    def get_preparation_data(name: str) -> dict[str, object]:
        """The first thing that a child reads; reading ours begins the run in it."""
        data = original(name)
        born = _starting.get()
        if isinstance(born, Born) and _parent is not None:
            data["reenact"] = _parent.beginning(born)
        return data

    return get_preparation_data


_LIBRARIES: Final[Libraries] = {
    "multiprocessing.process": _process_patches,
    "multiprocessing.spawn": _spawn_patches,
}

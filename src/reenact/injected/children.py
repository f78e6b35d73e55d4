"""Child processes that run the agent's own code: forks, and processes of ``multiprocessing``.

Each joins the run as a process of it, named after the lane that started it and an ordinal. The workers of a
pool do not: which job a worker gets depends on timing, so each job is recorded as a call instead.
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
from reenact.library import POOLS
from reenact.seams.imports import Libraries, watch_imports
from reenact.seams.patches import Patch


class NewChild(msgspec.Struct, frozen=True):
    """Where a child process comes from."""

    root: str
    """The name of its first lane in the capture."""
    within: str | None
    """The id of the call inside which it was started."""


class Parent(Protocol):
    """The part of this process in the run, as far as its children need it."""

    def join_run(self) -> None:
        """Become a process of the run now, even if no call has been made."""

    def lane_name(self, lane: Lane) -> str:
        """The name of *lane* in the capture."""

    def begin_fork(self, new_child: NewChild) -> None:
        """Begin the run of *new_child* in a new fork."""

    def make_beginning(self, new_child: NewChild) -> object:
        """An object that begins the run of *new_child* in the interpreter that unpickles it."""


_parent: Parent | None = None
_starting: ContextVar[NewChild | bool | None] = ContextVar("reenact_starting", default=False)
"""The child that ``multiprocessing`` is starting: ``None`` if it does not join, ``False`` for no child."""
_forking: ContextVar[NewChild | None] = ContextVar("reenact_forking", default=None)
_watching: AbstractContextManager[None] | None = None


def follow(parent: Parent) -> None:
    """Let the children of this process join the run of *parent* from now on."""
    global _parent, _watching
    _parent = parent
    if _watching is None:  # a fork inherits the rest from its parent
        _watching = watch_imports(_LIBRARIES)
        _watching.__enter__()
        atexit.register(_watching.__exit__, None, None, None)
        os.register_at_fork(before=_before_fork, after_in_child=_after_fork_in_child)


def is_starting_child() -> bool:
    """Whether ``multiprocessing`` is just starting a child that joins the run."""
    return isinstance(_starting.get(), NewChild)


def _name_child() -> NewChild | None:
    lane = current_lane()
    if _parent is None or lane is None:
        return None
    try:
        _parent.join_run()
    except OSError:  # the command has ended before this process
        return None
    ordinal = LaneName(lane.child().name).ordinal or 0
    return NewChild(LaneName(_parent.lane_name(lane)).started_process(ordinal), lane.within)


def _before_fork() -> None:
    starting = _starting.get()
    _forking.set(None)
    _forking.set(_name_child() if isinstance(starting, bool) else starting)


def _after_fork_in_child() -> None:
    new_child, is_worker = _forking.get(), _starting.get() is None
    _starting.set(False)
    if is_worker:
        forget_runs()
    elif new_child is not None and _parent is not None:
        _parent.begin_fork(new_child)


def _process_patches(process: ModuleType) -> list[Patch]:
    return [Patch(process.BaseProcess, "start", _start)]


def _start(original: Callable[[object], None]) -> Callable[[Any], None]:
    def start(self: object) -> None:
        target = getattr(self, "_target", None)
        token = _starting.set(None if getattr(target, "__module__", "") in POOLS else _name_child())
        try:
            original(self)
        finally:
            _starting.reset(token)

    return start


def _spawn_patches(spawn: ModuleType) -> list[Patch]:
    return [Patch(spawn, "get_preparation_data", _get_preparation_data)]


def _get_preparation_data(original: Callable[[str], dict[str, object]]) -> Callable[[str], dict[str, object]]:
    def get_preparation_data(name: str) -> dict[str, object]:
        """Add an object to what a child unpickles first; unpickling it begins the run there."""
        data = original(name)
        new_child = _starting.get()
        if isinstance(new_child, NewChild) and _parent is not None:
            data["reenact"] = _parent.make_beginning(new_child)
        return data

    return get_preparation_data


_LIBRARIES: Final[Libraries] = {
    "multiprocessing.process": _process_patches,
    "multiprocessing.spawn": _spawn_patches,
}

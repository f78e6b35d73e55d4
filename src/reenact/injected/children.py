"""Child processes that run the agent's own code: forks, and processes of ``multiprocessing``.

Each joins the run as a process of it, named after the lane that started it and an ordinal. The workers of a
pool do not: which job a worker gets depends on timing, so each job is recorded as a call instead.
"""

from __future__ import annotations

import atexit
import os
from collections.abc import Callable
from types import ModuleType
from typing import Any, Final, Protocol

import msgspec

from reenact.boundary import Lane, current_lane, forget_runs
from reenact.lane_name import LaneName
from reenact.library import POOLS
from reenact.process_state import forked_child_var, starting_child_var, this_process
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


def follow(parent: Parent) -> None:
    """Let the children of this process join the run of *parent* from now on."""
    this_process.parent = parent
    if this_process.watching is None:  # a fork inherits the rest from its parent
        this_process.watching = watch_imports(_LIBRARIES)
        this_process.watching.__enter__()
        atexit.register(this_process.watching.__exit__, None, None, None)
        os.register_at_fork(before=_before_fork, after_in_child=_after_fork_in_child)


def is_starting_child() -> bool:
    """Whether ``multiprocessing`` is just starting a child that joins the run."""
    return isinstance(starting_child_var.get(), NewChild)


def _name_child() -> NewChild | None:
    lane = current_lane()
    if this_process.parent is None or lane is None:
        return None
    try:
        this_process.parent.join_run()
    except OSError:  # the command has ended before this process
        return None
    ordinal = LaneName(lane.child().name).ordinal or 0
    return NewChild(LaneName(this_process.parent.lane_name(lane)).started_process(ordinal), lane.within)


def _before_fork() -> None:
    starting = starting_child_var.get()
    forked_child_var.set(None)
    forked_child_var.set(_name_child() if isinstance(starting, bool) else starting)


def _after_fork_in_child() -> None:
    new_child, is_worker = forked_child_var.get(), starting_child_var.get() is None
    starting_child_var.set(False)
    if is_worker:
        forget_runs()
    elif new_child is not None and this_process.parent is not None:
        this_process.parent.begin_fork(new_child)


def _process_patches(process: ModuleType) -> list[Patch]:
    return [Patch(process.BaseProcess, "start", _start)]


def _start(original: Callable[[object], None]) -> Callable[[Any], None]:
    def start(self: object) -> None:
        target = getattr(self, "_target", None)
        token = starting_child_var.set(None if getattr(target, "__module__", "") in POOLS else _name_child())
        try:
            original(self)
        finally:
            starting_child_var.reset(token)

    return start


def _spawn_patches(spawn: ModuleType) -> list[Patch]:
    return [Patch(spawn, "get_preparation_data", _get_preparation_data)]


def _get_preparation_data(original: Callable[[str], dict[str, object]]) -> Callable[[str], dict[str, object]]:
    def get_preparation_data(name: str) -> dict[str, object]:
        """Add an object to what a child unpickles first; unpickling it begins the run there."""
        data = original(name)
        new_child = starting_child_var.get()
        if isinstance(new_child, NewChild) and this_process.parent is not None:
            data["reenact"] = this_process.parent.make_beginning(new_child)
        return data

    return get_preparation_data


_LIBRARIES: Final[Libraries] = {
    "multiprocessing.process": _process_patches,
    "multiprocessing.spawn": _spawn_patches,
}

"""Patching once per process: applied while any run is open, removed without trace after the last.

A patch decides per call, by context, whether it has anything to do; it is never lifted while another
run is open. Others patch the same places: whoever came later stays where it is when we leave, and a patch
of ours that is left below it does nothing without a run.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import Any, Final

import msgspec

_lock = threading.Lock()
_applied: dict[tuple[int, str], _Applied] = {}
_left_below: dict[tuple[int, str], _Applied] = {}
"""Patches that could not be taken back, because somebody else's was above: the next run finds them there."""


class Patch(msgspec.Struct, frozen=True):
    """*owner*.*name* becomes ``wrap(original)``."""

    owner: Any
    name: str
    wrap: Callable[[Any], Any]
    may_lack: bool = False
    """Whether versions of the library that have nothing there are as good."""

    @property
    def has_place(self) -> bool:
        return hasattr(self.owner, self.name)


_IMMUTABLE: Final = 1 << 8
"""``Py_TPFLAGS_IMMUTABLETYPE``."""


class _Applied:
    def __init__(self, patch: Patch) -> None:
        self.users = 0
        self.is_immutable = bool(getattr(patch.owner, "__flags__", 0) & _IMMUTABLE)
        """Whether somebody has put a compiled class there, as gevent does: it is left alone."""
        if self.is_immutable:
            return
        own = vars(patch.owner)
        self.is_inherited = patch.name not in own
        self.original = own.get(patch.name)
        # As it is got, not as it is kept: only so does a wrapper of instrumentation learn whose method it is.
        got = getattr(patch.owner, patch.name)
        self.replacement = patch.wrap(got)
        if not isinstance(self.replacement, type):  # a class of its own says what it is
            functools.update_wrapper(self.replacement, got)
        setattr(patch.owner, patch.name, self.replacement)


def attach(patches: list[Patch]) -> None:
    """Apply *patches*, or count one more user of those that are applied already."""
    with _lock:
        for patch in patches:
            key = (id(patch.owner), patch.name)
            if key not in _applied:
                left = _left_below.pop(key, None)
                is_there = left is not None and left.replacement in _chain(patch)
                _applied[key] = left if left is not None and is_there else _Applied(patch)
            _applied[key].users += 1


def detach(patches: list[Patch]) -> None:
    """One user less; the last one takes the patch away."""
    with _lock:
        for patch in patches:
            key = (id(patch.owner), patch.name)
            applied = _applied[key]
            applied.users -= 1
            if applied.users == 0:
                _restore(patch, applied)
                del _applied[key]


def _restore(patch: Patch, applied: _Applied) -> None:
    if applied.is_immutable:
        return
    if vars(patch.owner).get(patch.name) is not applied.replacement:
        _left_below[id(patch.owner), patch.name] = applied
    elif applied.is_inherited:
        delattr(patch.owner, patch.name)
    else:
        setattr(patch.owner, patch.name, applied.original)


def _chain(patch: Patch) -> list[object]:
    """What is at the place of *patch*, and what that wraps, in turn."""
    function = vars(patch.owner).get(patch.name)
    chain = [function]
    while (function := getattr(function, "__wrapped__", None)) is not None:
        chain.append(function)
    return chain

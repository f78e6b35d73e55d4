"""Patching once per process: applied while any run is open, removed without trace after the last.

A patch decides per call, by context, whether it has anything to do; it is never lifted while another
run is open.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import Any

import msgspec

_lock = threading.Lock()
_applied: dict[tuple[int, str], _Applied] = {}


class Patch(msgspec.Struct, frozen=True):
    """*owner*.*name* becomes ``wrap(original)``."""

    owner: Any
    name: str
    wrap: Callable[[Any], Any]


class _Applied:
    def __init__(self, patch: Patch) -> None:
        self.users = 0
        own = vars(patch.owner)
        self.is_inherited = patch.name not in own
        self.original = getattr(patch.owner, patch.name) if self.is_inherited else own[patch.name]


def attach(patches: list[Patch]) -> None:
    """Apply *patches*, or count one more user of those that are applied already."""
    with _lock:
        for patch in patches:
            key = (id(patch.owner), patch.name)
            if key not in _applied:
                _applied[key] = applied = _Applied(patch)
                replacement = functools.update_wrapper(patch.wrap(applied.original), applied.original)
                setattr(patch.owner, patch.name, replacement)
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
    if applied.is_inherited:
        delattr(patch.owner, patch.name)
    else:
        setattr(patch.owner, patch.name, applied.original)

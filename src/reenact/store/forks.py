"""What a forked child must let go: it shares the parent's files, but the run is the parent's."""

from __future__ import annotations

import os
from typing import Protocol
from weakref import WeakSet


class ParentsOwn(Protocol):
    """Something that only the process that made it may use."""

    def leave_to_parent(self) -> None:
        """Called in a new child: close what was inherited, take no lock, refuse further use."""


_watched: WeakSet[ParentsOwn] = WeakSet()


def leave_to_parent_on_fork(owned: ParentsOwn) -> None:
    """Have ``leave_to_parent`` called in every child forked while *owned* is alive."""
    _watched.add(owned)


def _leave_all() -> None:
    for owned in _watched:
        owned.leave_to_parent()


os.register_at_fork(after_in_child=_leave_all)

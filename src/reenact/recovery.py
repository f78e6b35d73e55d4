"""Completing captures that were interrupted."""

from __future__ import annotations

from pathlib import Path

import msgspec

from reenact.recorder import recovery
from reenact.recorder.joining import join_parts, mend_doubled
from reenact.store.remote import path_here
from reenact.store.rundir import RunDir, RunState


class RecoverReport(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """The result of :func:`recover`."""

    path: str
    state: str
    """``open`` while it is still being recorded, ``recovered``, or ``complete``."""
    events: int | None = None
    """The number of kept events, if the run was recovered now."""
    removed_bytes: int | None = None
    """The size of the incomplete last line that was removed."""
    removed_doubles: int = 0
    """The number of duplicate events that were removed."""
    completed: bool = False
    """Whether the parts of other processes were merged in."""

    @property
    def is_open(self) -> bool:
        """Whether it is still being recorded."""
        return self.state == "open"


def recover(path: str | Path) -> RecoverReport:
    """Complete the capture in *path* if it was interrupted; a complete one does not change.

    Every recorded event is kept; an incomplete last line is removed. Raises
    :class:`~reenact.errors.StoreError` or :class:`~reenact.errors.FormatError` if *path* is no capture, or if
    more than the last line is damaged.
    """
    directory = path_here(path)
    state = RunDir.open(directory).state
    if state is RunState.OPEN:
        return RecoverReport(str(directory), "open")
    found = recovery.recover(directory) if state is RunState.INTERRUPTED else None
    is_joined = join_parts(directory)
    doubled = mend_doubled(directory)
    if found is None:
        RunDir(directory).write_transcript()
        return RecoverReport(str(directory), state.value, removed_doubles=doubled, completed=is_joined)
    return RecoverReport(
        str(directory), "recovered", found.manifest.eventCount, found.removed_bytes, doubled, is_joined
    )

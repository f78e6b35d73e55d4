"""Completing captures that were interrupted: what `reenact recover` does, as a function."""

from __future__ import annotations

from pathlib import Path

import msgspec

from reenact.recorder import recovery
from reenact.recorder.joining import join_parts, mend_doubled
from reenact.store.rundir import RunDir, RunState


class RecoverReport(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """What became of a capture."""

    path: str
    state: str
    """``open`` while it is still being recorded, ``recovered``, or ``complete``."""
    events: int | None = None
    """How many events were kept, where the run was recovered now."""
    removed_bytes: int | None = None
    """How much of a torn last line was cut then."""
    removed_doubles: int = 0
    """How many events stood there twice, and do no more."""
    completed: bool = False
    """Whether parts that other processes left were joined in."""

    @property
    def is_open(self) -> bool:
        """Whether it can only be recovered when the recording has ended."""
        return self.state == "open"


def recover(path: str | Path) -> RecoverReport:
    """Complete the capture in *path* if it was interrupted; one that is complete is left as it is.

    Every event that was recorded stays; half a line at the end is cut. Raises
    :class:`~reenact.errors.StoreError` or :class:`~reenact.errors.FormatError` where *path* holds no capture,
    or more than the last line is damaged.
    """
    directory = Path(path)
    state = RunDir.open(directory).state
    if state is RunState.OPEN:
        return RecoverReport(str(path), "open")
    found = recovery.recover(directory) if state is RunState.INTERRUPTED else None
    is_joined = join_parts(directory)
    doubled = mend_doubled(directory)
    if found is None:
        RunDir(directory).write_transcript()
        return RecoverReport(str(path), state.value, removed_doubles=doubled, completed=is_joined)
    return RecoverReport(
        str(path), "recovered", found.manifest.eventCount, found.removed_bytes, doubled, is_joined
    )

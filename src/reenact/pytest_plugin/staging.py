"""A new capture is made beside its place and put there in one step, whole or not at all.

Each process records into a folder of its own, so no two ever write one capture; whoever comes last wins.
"""

from __future__ import annotations

import ctypes
import errno
import os
from glob import escape
from pathlib import Path
from shutil import rmtree
from typing import Final

from reenact.errors import StoreError
from reenact.store.rundir import RunDir, RunState

_AT_FDCWD: Final = -100
_RENAME_EXCHANGE: Final = 2


def folder_for(place: Path) -> Path:
    """Where this process records what will be *place*; what a killed one left there is removed."""
    for left in place.parent.glob(f".{escape(place.name)}.recording-*"):
        if _is_dead(left):
            discard(left)
    return place.with_name(f".{place.name}.recording-{os.getpid()}")


def _is_dead(folder: Path) -> bool:
    try:
        return RunDir(folder).state is RunState.INTERRUPTED
    except StoreError:
        return False


def discard(folder: Path) -> None:
    """Remove a capture that is not wanted."""
    rmtree(folder, ignore_errors=True)


def put_in_place(new: Path, place: Path) -> None:
    """Make *new* the capture at *place*; a reader sees the old one or the new one."""
    try:
        os.rename(new, place)
    except OSError as error:
        if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
            raise StoreError(f"{place}: cannot be replaced: {error.strerror}; move it away") from error
        _exchange(new, place)
        discard(new)


def _exchange(one: Path, other: Path) -> None:
    if not _exchange_at_once(one, other):
        # Not every system can; here a kill between the renames leaves the old capture under the third name.
        aside = one.with_name(f"{one.name}.old")
        os.rename(other, aside)
        os.rename(one, other)
        os.rename(aside, one)


def _exchange_at_once(one: Path, other: Path) -> bool:
    rename = getattr(ctypes.CDLL(None), "renameat2", None)
    names = (os.fsencode(path) for path in (one, other))
    first, second = names
    return rename is not None and not rename(_AT_FDCWD, first, _AT_FDCWD, second, _RENAME_EXCHANGE)

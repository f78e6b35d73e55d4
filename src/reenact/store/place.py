"""A new capture is made beside its place and put there in one step, whole or not at all."""

from __future__ import annotations

import ctypes
import errno
import os
from glob import escape
from os import getpid
from pathlib import Path
from shutil import rmtree
from typing import Final

from reenact.errors import StoreError
from reenact.store.rundir import RunDir, RunState

_AT_FDCWD: Final = -100
_RENAME_EXCHANGE: Final = 2


def staging_folder(place: Path) -> Path:
    """The folder in which this process builds the capture for *place*; each process has its own.

    The folders of killed processes are removed.
    """
    for left in _staged_folders(place):
        if _is_dead(left):
            discard(left)
    return place.with_name(f".{place.name}.recording-{getpid()}")


def discard_staged(place: Path) -> None:
    """Remove *place* and all folders in which it was being built; their processes must have ended."""
    for left in (*_staged_folders(place), place):
        discard(left)


def _staged_folders(place: Path) -> list[Path]:
    return list(place.parent.glob(f".{escape(place.name)}.recording-*"))


def _is_dead(folder: Path) -> bool:
    try:
        return RunDir(folder).state is RunState.INTERRUPTED
    except StoreError:
        return False


def discard(folder: Path) -> None:
    """Remove a capture that is not wanted."""
    rmtree(folder, ignore_errors=True)


def put_in_place(new: Path, place: Path) -> None:
    """Make *new* the directory at *place*; a reader sees the old one or the new one."""
    try:
        _rename_or_exchange(new, place)
    except OSError as error:
        raise StoreError(f"{place}: cannot be replaced: {error.strerror}; move it away") from error


def _rename_or_exchange(new: Path, place: Path) -> None:
    try:
        os.rename(new, place)
    except OSError as error:
        if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
            raise
        if not _exchange_at_once(new, place):
            _exchange_in_steps(new, place)
        rmtree(new, ignore_errors=True)


def _exchange_at_once(one: Path, other: Path) -> bool:
    exchange = getattr(ctypes.CDLL(None), "renameat2", None)
    if exchange is None:
        return False
    failed = exchange(_AT_FDCWD, os.fsencode(one), _AT_FDCWD, os.fsencode(other), _RENAME_EXCHANGE)
    return not failed


def _exchange_in_steps(one: Path, other: Path) -> None:
    """For systems that cannot do it at once; a kill half-way leaves the old one under a third name."""
    aside = one.with_name(f"{one.name}.old")
    os.rename(other, aside)
    os.rename(one, other)
    os.rename(aside, one)

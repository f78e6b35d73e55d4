"""A new capture or folder is made beside its place and put there in one step, whole or not at all."""

from __future__ import annotations

import ctypes
import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from glob import escape
from os import getpid
from pathlib import Path
from shutil import rmtree
from typing import Final

from reenact.errors import StoreError
from reenact.store.durable import TEMP_PREFIX
from reenact.store.rundir import RunDir, RunState, make_empty_folder

_AT_FDCWD: Final = -100
_RENAME_EXCHANGE: Final = 2


@contextmanager
def build_folder(path: Path) -> Iterator[Path]:
    """A folder that becomes *path*, which must be new or empty, if the block succeeds, and is removed if not.

    A link to an empty folder is followed.
    """
    was_there = path.exists()
    make_empty_folder(path)
    folder = Path(os.path.realpath(path))
    temp = folder.parent / f"{TEMP_PREFIX}{getpid()}-{folder.name}"
    try:
        temp.mkdir()
        yield temp
        become_folder(temp, folder)
    except BaseException:
        rmtree(temp, ignore_errors=True)
        if not was_there:
            path.rmdir()
        raise


def become_folder(temp: Path, path: Path) -> None:
    """Rename *temp* to *path*, which must be new or empty; an existing folder keeps its permissions."""
    with suppress(FileNotFoundError):
        temp.chmod(stat.S_IMODE(path.stat().st_mode))
    os.replace(temp, path)


def refuse_taken(folder: Path) -> None:
    """Raise unless *folder* is new or empty; a file, a device or a broken link is neither."""
    if os.path.lexists(folder) and (not folder.is_dir() or any(folder.iterdir())):
        raise StoreError(f"{folder}: exists already; name a new folder")
    above = next((place for place in folder.parents if os.path.lexists(place)), folder)
    if above != folder and not above.is_dir():
        raise StoreError(f"{folder}: {above} is not a folder; name a new folder elsewhere")


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

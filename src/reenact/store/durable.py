"""Durable writes: files that appear whole, synced directories, one sync for many threads."""

from __future__ import annotations

import errno
import fcntl
import os
from contextlib import suppress
from os import getpid
from pathlib import Path
from threading import Condition, get_ident
from typing import Final, Literal, Protocol, TypeAlias

from reenact.errors import StoreError
from reenact.process_state import left_to_parent, temp_numbers

Durability: TypeAlias = Literal["process", "disk"]
"""What a written event survives: the end of the process (``kill -9``), or of the machine's power too."""

TEMP_PREFIX: Final = ".tmp-"

_LOOK_AGAIN_S: Final = 0.1
"""The longest wait for a notification: Ctrl-C may interrupt the thread that was about to send it."""

_HIGH_NUMBERS: Final = (512, 128)

# Bound here because a capture may replace the names in `os` while it records what the agent does.
_fdatasync = getattr(os, "fdatasync", os.fsync)

_REMEDIES: Final = {
    errno.ENOSPC: "free some space and try again",
    errno.EDQUOT: "free some space and try again",
    errno.EFBIG: "raise the file size limit and try again",
    errno.EACCES: "choose a place you may write to",
    errno.EPERM: "choose a place you may write to",
    errno.EROFS: "choose a place you may write to",
    errno.ELOOP: "remove the link, or choose another path",
    errno.ENOTDIR: "choose a path whose parents are directories",
}


def unwritable(path: Path, error: OSError) -> StoreError:
    """The error to raise when the system refused to write *path*."""
    remedy = _REMEDIES.get(error.errno or 0, "check the path and the disk")
    return StoreError(f"{path}: cannot be written: {error.strerror or error}; {remedy}")


def write_all(fd: int, data: bytes) -> None:
    """Write all of *data*, with as many system calls as that takes."""
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(fd, rest) :]


def open_temp(folder: Path) -> tuple[int, Path]:
    """A new empty file with a name that readers ignore, made without random numbers: those are recorded."""
    while True:
        temp = folder / f"{TEMP_PREFIX}{getpid()}-{next(temp_numbers)}"
        with suppress(FileExistsError):
            return os.open(temp, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666), temp


def move_up(fd: int) -> int:
    """Move the open file *fd* to a number that no file of the program gets.

    Programs close descriptors that they did not open, such as ``os.closerange(3, 256)`` in a daemon. If a
    file of theirs got the number then, we would write into that.
    """
    for least in _HIGH_NUMBERS:
        with suppress(OSError):  # the limit is lower
            moved = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, least)
            os.close(fd)
            return moved
    return fd


def write_whole(target: Path, data: bytes, *, temp_folder: Path, sync: bool) -> None:
    """Write *target* so that it has all of *data* or does not appear; with *sync*, flush it to the disk."""
    try:
        fd, temp = open_temp(temp_folder)
        try:
            _fill(fd, data, sync=sync)
            os.replace(temp, target)
        except BaseException:
            temp.unlink(missing_ok=True)
            raise
        if sync:
            sync_folder(target.parent)
    except OSError as error:
        raise unwritable(target, error) from error


def _fill(fd: int, data: bytes, *, sync: bool) -> None:
    try:
        write_all(fd, data)
        if sync:
            os.fsync(fd)
    finally:
        os.close(fd)


def sync_folder(folder: Path) -> None:
    """Flush the names in *folder* to the disk."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


class GroupSync:
    """One sync of a file for all threads that wait for one.

    A thread that finds no sync under way starts one for everything written so far; the others wait for it.
    """

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._turn = Condition()
        self._leader: int | None = None
        self._written_bytes = 0
        self._synced_bytes = 0
        self._failure: OSError | None = None

    def wait(self, end_bytes: int) -> None:
        """Return when the first *end_bytes* of the file, written already, are on the disk."""
        with self._turn:
            self._written_bytes = max(self._written_bytes, end_bytes)
            while self._synced_bytes < end_bytes:
                if self._failure is not None:
                    # After a failed sync the system drops the unwritten data: a second try proves nothing.
                    raise self._failure
                if self._is_free():
                    self._sync_for_all()
                else:
                    self._turn.wait(_LOOK_AGAIN_S)

    def note_synced(self, end_bytes: int) -> None:
        """Wait for a running sync, and note that another sync, made elsewhere, covers *end_bytes*."""
        with self._turn:
            while not self._is_free():
                self._turn.wait(_LOOK_AGAIN_S)
            self._synced_bytes = max(self._synced_bytes, end_bytes)
            self._turn.notify_all()

    def _is_free(self) -> bool:
        # A signal handler may interrupt the sync of its own thread; waiting for that sync would never end.
        return self._leader is None or self._leader == get_ident()

    def _sync_for_all(self) -> None:
        self._leader, covered = get_ident(), self._written_bytes
        try:
            self._turn.release()
            _fdatasync(self._fd)
        except BaseException as error:
            covered = 0
            if not isinstance(error, OSError):
                raise
            self._failure = error
        finally:
            self._leader = None
            self._turn.acquire()
            self._synced_bytes = max(self._synced_bytes, covered)
            self._turn.notify_all()


class ParentsOwn(Protocol):
    """Something that only the process that made it may use."""

    def leave_to_parent(self) -> None:
        """Called in a forked child: close inherited files, take no lock, refuse further use."""


def leave_to_parent_on_fork(owned: ParentsOwn) -> None:
    """Have ``leave_to_parent`` called in every child forked while *owned* is alive."""
    left_to_parent.add(owned)


def _leave_all() -> None:
    for owned in left_to_parent:
        owned.leave_to_parent()


os.register_at_fork(after_in_child=_leave_all)

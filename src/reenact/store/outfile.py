"""The output files of all verbs; only regular files are ever replaced."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, Final

from reenact.errors import UsageError
from reenact.store.durable import open_temp, unwritable

_STANDARD_STREAMS: Final = (1, 2)


def write_output(target: Path, data: bytes) -> None:
    """Write *data* as :func:`open_output` does; replaces an existing file."""
    with open_output(target, replace=True) as stream:
        stream.write(data)


@contextmanager
def open_output(target: Path, *, replace: bool = False, private: bool = False) -> Iterator[BinaryIO]:
    """A stream to *target*, which must be new unless *replace* is true.

    A regular file appears complete when the block succeeds, and not at all otherwise; a replaced one keeps
    its permissions. A symbolic link is followed. A device, a pipe or a standard stream is written to, never
    replaced. Only its owner can read a *private* file.
    """
    if target.is_dir():
        raise UsageError(f"{target}: exists already; name a file in it")
    if is_written_through(target):
        with _write_through(target) as stream:
            yield stream
        return
    if target.exists() and not replace:
        raise UsageError(f"{target}: exists already; name another, or add --force")
    with _write_whole_file(target, private=private) as stream:
        yield stream


def is_written_through(target: Path) -> bool:
    """Whether *target* exists and is not a regular file with a name."""
    try:
        found = os.stat(target)
    except OSError:
        return False
    if stat.S_ISDIR(found.st_mode):
        return False
    if not stat.S_ISREG(found.st_mode) or _stream_of(found) is not None:
        return True
    try:  # a file reached through /proc/self/fd may have been deleted
        return not os.path.samestat(found, os.lstat(os.path.realpath(target)))
    except OSError:
        return True


def refuse_without_neighbour(target: Path, beside: str) -> None:
    """Raise if the file *beside* cannot be written next to *target*."""
    if is_written_through(target):
        raise UsageError(f"{target}: is not a regular file, and {beside} goes next to it; name a file")


def _stream_of(found: os.stat_result) -> int | None:
    """The standard stream that writes to the file *found*: opening it again would overwrite its start."""
    for fd in _STANDARD_STREAMS:
        with suppress(OSError):
            if os.path.samestat(found, os.fstat(fd)):
                return fd
    return None


@contextmanager
def _write_through(target: Path) -> Iterator[BinaryIO]:
    try:
        ours = _stream_of(os.stat(target))
        fd = os.dup(ours) if ours is not None else os.open(target, os.O_WRONLY | os.O_NOCTTY | os.O_CLOEXEC)
        with os.fdopen(fd, "wb") as stream:
            yield stream
    except OSError as error:
        raise _with_name(target, error, None) from error


@contextmanager
def _write_whole_file(target: Path, *, private: bool) -> Iterator[BinaryIO]:
    file = Path(os.path.realpath(target))
    try:
        if file.is_symlink():  # a link that leads back to itself
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
        file.parent.mkdir(parents=True, exist_ok=True)
        fd, temp = open_temp(file.parent)
    except OSError as error:
        raise unwritable(target, error) from error
    try:
        with os.fdopen(fd, "wb") as stream:
            _copy_mode(stream.fileno(), file, private)
            yield stream
        os.replace(temp, file)
    except BaseException as error:
        temp.unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise _with_name(target, error, os.fspath(temp)) from error
        raise


def _copy_mode(fd: int, file: Path, private: bool) -> None:
    """Copy the permissions of the *file* that will be replaced, if there is one."""
    if private:
        os.fchmod(fd, 0o600)
        return
    with suppress(FileNotFoundError):
        before = os.lstat(file)
        with suppress(PermissionError):
            os.fchown(fd, before.st_uid, before.st_gid)
        os.fchmod(fd, stat.S_IMODE(before.st_mode))


def _with_name(target: Path, error: OSError, temp: str | None) -> Exception:
    """*error* about the temporary file, with the name of *target* instead; other errors unchanged."""
    return unwritable(target, error) if error.filename in (None, temp, os.fspath(target)) else error

"""Files that people ask for: every verb writes its output here, and replaces nothing but regular files."""

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
    """Write *data* as :func:`open_output` does, in the place of a file that is there."""
    with open_output(target, replace=True) as stream:
        stream.write(data)


@contextmanager
def open_output(target: Path, *, replace: bool = False, private: bool = False) -> Iterator[BinaryIO]:
    """A stream to *target*, which is a new file, or with *replace* may be there already.

    A regular file appears whole when the block ends well and not at all when it does not; one that is
    replaced keeps its permissions. A symbolic link is followed. A device, a pipe or one of our own streams
    is written through, never replaced. A *private* file only its owner reads.
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
    """Whether *target* is there and is no regular file that has a name of its own."""
    try:
        found = os.stat(target)
    except OSError:
        return False
    if stat.S_ISDIR(found.st_mode):
        return False
    if not stat.S_ISREG(found.st_mode) or _stream_of(found) is not None:
        return True
    try:  # what is reached through /proc/self/fd may have lost its name
        return not os.path.samestat(found, os.lstat(os.path.realpath(target)))
    except OSError:
        return True


def refuse_without_neighbour(target: Path, beside: str) -> None:
    """Raise where *target* is no file to put *beside* next to."""
    if is_written_through(target):
        raise UsageError(f"{target}: is not a regular file, and {beside} goes next to it; name a file")


def _stream_of(found: os.stat_result) -> int | None:
    """The standard stream that goes to the file *found*: opening that anew would begin at its start."""
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
        if file.is_symlink():  # one that leads back to itself is where following ends
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
        file.parent.mkdir(parents=True, exist_ok=True)
        fd, temp = open_temp(file.parent)
    except OSError as error:
        raise unwritable(target, error) from error
    try:
        with os.fdopen(fd, "wb") as stream:
            _give_mode(stream.fileno(), file, private)
            yield stream
        os.replace(temp, file)
    except BaseException as error:
        temp.unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise _with_name(target, error, os.fspath(temp)) from error
        raise


def _give_mode(fd: int, file: Path, private: bool) -> None:
    """The permissions of the *file* that will be replaced, if there is one."""
    if private:
        os.fchmod(fd, 0o600)
        return
    with suppress(FileNotFoundError):
        before = os.lstat(file)
        with suppress(PermissionError):
            os.fchown(fd, before.st_uid, before.st_gid)
        os.fchmod(fd, stat.S_IMODE(before.st_mode))


def _with_name(target: Path, error: OSError, temp: str | None) -> Exception:
    """What the block read and could not has a name; what is written has none but the temporary one."""
    return unwritable(target, error) if error.filename in (None, temp, os.fspath(target)) else error

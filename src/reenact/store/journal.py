"""The journal: lines of JSON, each appended with one write.

Once :meth:`Journal.append` has returned, the line is in the kernel and survives the process; with
``durability="disk"`` it is on the disk. A killed process leaves at most one torn line at the end, which
:func:`cut_torn_tail` removes.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from threading import RLock
from typing import BinaryIO, Final

import msgspec

from reenact.errors import StoreError
from reenact.formats.lines import MAX_LINE_BYTES
from reenact.store.durable import (
    Durability,
    GroupSync,
    leave_to_parent_on_fork,
    move_up,
    sync_folder,
    unwritable,
    write_all,
)
from reenact.store.paths import open_inside

_CHUNK_BYTES: Final = 1024 * 1024
_NEW: Final = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC

_LF: Final = ord("\n")
_MAX_TEXT_BYTES: Final = MAX_LINE_BYTES + 1
_write: Final = os.write


class Journal:
    """An append-only file of lines, safe for all threads of the process that created it."""

    def __init__(self, path: Path, fd: int, durability: Durability) -> None:
        self.path = path
        self._fd = fd
        # Re-entrant: a signal handler or a finaliser may append in the middle of an append.
        self._lock = RLock()
        self._group = GroupSync(fd) if durability == "disk" else None
        self._count = 0
        self._size_bytes = 0
        self._hash = sha256()
        self._hashed_bytes = 0
        self._closed_because = ""
        leave_to_parent_on_fork(self)

    @classmethod
    def create(cls, path: Path, *, durability: Durability = "process") -> Journal:
        """A new empty journal; :class:`StoreError` if the file exists."""
        try:
            fd = move_up(os.open(path, _NEW, 0o666))
            if durability == "disk":
                sync_folder(path.parent)
        except FileExistsError:
            raise StoreError(f"{path}: exists already; remove it or record elsewhere") from None
        except OSError as error:
            raise unwritable(path, error) from error
        return cls(path, fd, durability)

    def append(self, line: bytes) -> int:
        """Add *line*, which has no line end yet, and return the offset in bytes where it starts.

        A line that cannot be written whole leaves no trace and is a :class:`StoreError`.
        """
        offset = self.write(line)
        if self._group is not None:
            self._wait_for_disk(self._group, offset + len(line) + 1)
        return offset

    def write(self, line: bytes, count: int = 1) -> int:
        """Like :meth:`append` without waiting for the disk; call :meth:`sync` after releasing other locks.

        *line* may be *count* lines that were checked already, with line ends between them.
        """
        text = line + b"\n"
        length = len(text)
        if (count == 1 and _LF in line) or not 1 < length <= _MAX_TEXT_BYTES * count:
            raise self._not_one_line(line)
        with self._lock:
            offset = self._size_bytes
            # Before the write, so that an append by a signal handler finds correct values.
            self._size_bytes = offset + length
            self._count += count
            try:
                written = _write(self._fd, text)
                if written != length:
                    write_all(self._fd, text[written:])
            except BaseException as error:
                self._take_back(offset, count, error)
                raise
        return offset

    def write_all(self, lines: Sequence[bytes]) -> None:
        """Add *lines* at once, all or none of them."""
        for line in lines:
            if _LF in line or not 0 < len(line) < _MAX_TEXT_BYTES:
                raise self._not_one_line(line)
        if lines:
            self.write(b"\n".join(lines), len(lines))

    def _not_one_line(self, line: bytes) -> StoreError:
        return StoreError(f"{self.path}: {len(line)} bytes are not one line; move large payloads to blobs")

    def sync(self) -> None:
        """Wait until everything written so far is as durable as chosen; threads share one sync."""
        if self._group is not None:
            self._wait_for_disk(self._group, self._size_bytes)

    @property
    def count(self) -> int:
        """How many lines were appended."""
        return self._count

    @property
    def size_bytes(self) -> int:
        return self._size_bytes

    @property
    def sha256_hex(self) -> str:
        """SHA-256 of all bytes appended so far.

        Computed from the file on request, each byte once: appends stay fast, and an append that was
        interrupted half-way cannot make it wrong.
        """
        with self._lock:
            while self._hashed_bytes < self._size_bytes:
                self._hash_next_chunk()
            return self._hash.hexdigest()

    def close(self) -> None:
        """Flush everything to the disk, whatever the durability, and refuse further lines."""
        with self._lock:
            if self._fd < 0:
                return
            _ = self.sha256_hex
            try:
                os.fsync(self._fd)
            except OSError as error:
                raise unwritable(self.path, error) from error
            if self._group is not None:
                self._group.note_synced(self._size_bytes)
            self._close_file("is closed; start a new run to record more")

    def leave_to_parent(self) -> None:
        """In a forked child: close the parent's file without changing it."""
        self._lock = RLock()  # the old one may be held by a thread that does not exist here
        self._close_file("belongs to the parent process; start a run of its own in the child")

    def _close_file(self, because: str) -> None:
        fd, self._fd = self._fd, -1
        if fd >= 0:
            self._closed_because = because
            with suppress(OSError):  # the program has closed it
                os.close(fd)

    def _take_back(self, offset: int, count: int, error: BaseException) -> None:
        """Make file and counters agree again after an append that failed."""
        with suppress(OSError):
            if self._fd >= 0 and os.fstat(self._fd).st_size == self._size_bytes:
                return  # interrupted after the write: the line is there
        if isinstance(error, OSError) and error.errno == errno.EBADF:
            self._close_file("was closed by the program; let it close only descriptors that it has opened")
        self._size_bytes = offset
        self._count -= count
        if self._fd < 0:
            raise StoreError(f"{self.path}: {self._closed_because}") from None
        try:
            os.ftruncate(self._fd, offset)
        except OSError:
            self._close_file("ends in a torn line after a failed write; run: reenact recover")
        if isinstance(error, OSError):
            raise unwritable(self.path, error) from error

    def _wait_for_disk(self, group: GroupSync, end_bytes: int) -> None:
        try:
            group.wait(end_bytes)
        except OSError as error:
            with self._lock:
                self._close_file("could not be put on the disk; check the disk and record again")
            raise unwritable(self.path, error) from error

    def _hash_next_chunk(self) -> None:
        left_bytes = self._size_bytes - self._hashed_bytes
        try:
            chunk = os.pread(self._fd, min(left_bytes, _CHUNK_BYTES), self._hashed_bytes)
        except OSError as error:
            reason = self._closed_because or f"cannot be read: {error.strerror}; check the disk"
            raise StoreError(f"{self.path}: {reason}") from error
        if not chunk:
            raise StoreError(f"{self.path}: was cut by someone else while being recorded; record again")
        self._hash.update(chunk)
        self._hashed_bytes += len(chunk)


@dataclass(frozen=True, slots=True)
class JournalScan:
    """The whole lines of a journal file, and the torn end after them."""

    count: int
    size_bytes: int
    """Of the whole lines only, like *count* and *sha256_hex*."""
    torn_bytes: int
    sha256_hex: str


def scan(source: Path | BinaryIO) -> JournalScan:
    """Measure a journal in constant memory; *source* is a path or a seekable stream.

    The last line is torn if it has no line end or is not JSON. Damage before it is not searched for.
    """
    if isinstance(source, Path):
        with open_inside(source.parent, source.name) as stream:
            return scan(stream)
    total_bytes = source.seek(0, os.SEEK_END)
    good_bytes = _good_end(source, total_bytes)
    count, digest = _measure(source, good_bytes)
    return JournalScan(count, good_bytes, total_bytes - good_bytes, digest)


def cut_torn_tail(path: Path) -> int:
    """Cut the torn end that :func:`scan` finds, and return its size in bytes."""
    torn_bytes = scan(path).torn_bytes
    if torn_bytes:
        try:
            _cut(path, torn_bytes)
        except OSError as error:
            raise unwritable(path, error) from error
    return torn_bytes


def _cut(path: Path, torn_bytes: int) -> None:
    fd = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        os.ftruncate(fd, os.fstat(fd).st_size - torn_bytes)
        os.fsync(fd)
    finally:
        os.close(fd)


def _good_end(stream: BinaryIO, total_bytes: int) -> int:
    end = _start_of_last_line(stream, total_bytes)
    start = _start_of_last_line(stream, end - 1)
    stream.seek(start)
    return end if _is_json(stream.read(min(end - start, MAX_LINE_BYTES + 1))) else start


def _start_of_last_line(stream: BinaryIO, before_bytes: int) -> int:
    """Where the last line that starts before *before_bytes* starts."""
    end = before_bytes
    while end > 0:
        start = max(0, end - _CHUNK_BYTES)
        stream.seek(start)
        found = stream.read(end - start).rfind(b"\n")
        if found >= 0:
            return start + found + 1
        end = start
    return 0


def _measure(stream: BinaryIO, size_bytes: int) -> tuple[int, str]:
    count, digest = 0, sha256()
    stream.seek(0)
    while size_bytes > 0 and (chunk := stream.read(min(size_bytes, _CHUNK_BYTES))):
        count += chunk.count(b"\n")
        digest.update(chunk)
        size_bytes -= len(chunk)
    return count, digest.hexdigest()


def _is_json(text: bytes) -> bool:
    try:
        msgspec.json.decode(text)
    except (msgspec.DecodeError, ValueError, RecursionError):
        return False
    return True

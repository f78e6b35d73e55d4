"""The claims of the processes that write a capture directory: files with a lock.

A claim is removed when the run is finished. The system drops its lock when the process ends, however it ends.
So the file shows that a run was started and not finished, and the lock shows whether a process still works
on it.
"""

from __future__ import annotations

import fcntl
import os
from contextlib import suppress
from os import getpid
from pathlib import Path
from typing import Final

import msgspec

from reenact.errors import FormatError, StoreError
from reenact.store.durable import move_up, open_temp, unwritable, write_all

OPEN_MANIFEST: Final = "manifest.open.json"
RECORDING_LOCK: Final = "recording.lock"


class OpenManifest(msgspec.Struct, frozen=True, kw_only=True):
    """The content of the file: the recording process, and the manifest as known at the start."""

    pid: int
    manifest: msgspec.Raw


class Claim:
    """An open ``manifest.open.json``, locked or not; or a ``recording.lock`` whose lock is tested."""

    def __init__(self, folder: Path, fd: int) -> None:
        self._folder = folder
        self._fd = fd

    @classmethod
    def make(cls, folder: Path, seed_manifest: bytes, *, sync: bool) -> Claim:
        """Write the file and lock it; no other process ever sees it unlocked."""
        content = OpenManifest(pid=getpid(), manifest=msgspec.Raw(seed_manifest))
        try:
            fd, temp = open_temp(folder)
            fd = move_up(fd)
            try:
                fcntl.flock(fd, fcntl.LOCK_EX)
                write_all(fd, msgspec.json.encode(content))
                if sync:
                    os.fsync(fd)
                os.replace(temp, folder / OPEN_MANIFEST)
            except BaseException:
                os.close(fd)
                temp.unlink(missing_ok=True)
                raise
        except OSError as error:
            raise unwritable(folder / OPEN_MANIFEST, error) from error
        return cls(folder, fd)

    def read(self) -> OpenManifest:
        """The content of the file, even if it was removed after it was opened."""
        text = os.pread(self._fd, os.fstat(self._fd).st_size, 0)
        try:
            return msgspec.json.decode(text, type=OpenManifest)
        except (msgspec.DecodeError, ValueError) as error:
            raise FormatError(
                f"{error}; record the run again", file=str(self._folder / OPEN_MANIFEST)
            ) from error

    @property
    def is_ours(self) -> bool:
        """False after it was released, and in a forked child."""
        return self._fd >= 0

    def is_held(self) -> bool:
        """Whether another process, or another part of this one, records or recovers the run.

        If nobody does, the claim is locked shared from then on, until it is released.
        """
        try:
            fcntl.flock(self._fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        return False

    def take_over(self) -> None:
        """Lock the file of a process that has ended; :class:`StoreError` if it has not."""
        if self.is_held():
            recorder = f"process {self.read().pid}"
            raise StoreError(f"{self._folder}: is still being recorded by {recorder}; wait until it ends")
        # Only readers that ask for the state can hold a lock now, and they release it at once.
        fcntl.flock(self._fd, fcntl.LOCK_EX)

    def remove(self) -> None:
        """Remove the file, then the lock: the run is finished."""
        try:
            (self._folder / OPEN_MANIFEST).unlink(missing_ok=True)
        except OSError as error:
            raise unwritable(self._folder / OPEN_MANIFEST, error) from error
        self.release()

    def release(self) -> None:
        # Closing only: unlocking in a forked child would take the lock from the parent as well.
        fd, self._fd = self._fd, -1
        if fd >= 0:
            with suppress(OSError):  # the program has closed it
                os.close(fd)


class FolderClaim:
    """The claim of a command on the directory into which its processes record; made before they start."""

    def __init__(self, folder: Path, fd: int) -> None:
        self._folder = folder
        self._fd = fd

    @classmethod
    def make(cls, folder: Path) -> FolderClaim:
        """Claim the existing *folder*; :class:`StoreError` if another command has claimed it."""
        file = folder / RECORDING_LOCK
        while True:
            try:
                fd = os.open(file, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
            except OSError as error:
                raise unwritable(file, error) from error
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if _is_same_file(fd, file):  # else its owner has just removed it
                    os.ftruncate(fd, 0)
                    write_all(fd, b"%d\n" % getpid())
                    return cls(folder, fd)
            except BlockingIOError:
                owner = os.pread(fd, 20, 0).decode("ascii", "replace").strip()
                os.close(fd)
                raise StoreError(
                    f"{folder}: is being recorded by process {owner}; record into another directory"
                ) from None
            except OSError as error:
                os.close(fd)
                raise unwritable(file, error) from error
            os.close(fd)

    def remove(self) -> None:
        """Release the directory; a missing file is not an error."""
        fd, self._fd = self._fd, -1
        if fd >= 0:
            with suppress(OSError):
                (self._folder / RECORDING_LOCK).unlink()
            os.close(fd)


def _is_same_file(fd: int, file: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(fd), os.lstat(file))
    except FileNotFoundError:
        return False

"""The capture directory and the life it shows from outside.

recording.lock        only while `reenact record` runs a command; it holds a lock on it
manifest.open.json    only while a run is open; the recording process holds a lock on it
manifest.json         appears when the run is complete, in one step, after the journal is on disk
recovered.json        beside manifest.json if the run was interrupted and completed later
events.jsonl          the journal
transcript.md         what the events say to a reader, made anew whenever they are
blobs/                payloads too large for a line
.tmp-*                something half-written; never read, removed by recovery
"""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from enum import Enum
from pathlib import Path
from typing import BinaryIO, Final, get_args

import msgspec

from reenact.errors import FormatError, StoreError, UsageError
from reenact.store.blobs import BlobStore
from reenact.store.claim import OPEN_MANIFEST, RECORDING_LOCK, Claim, FolderClaim, is_being_recorded
from reenact.store.durable import (
    TEMP_PREFIX,
    Durability,
    leave_to_parent_on_fork,
    sync_folder,
    unwritable,
    write_whole,
)
from reenact.store.journal import Journal, JournalScan, cut_torn_tail, scan
from reenact.store.paths import inside, open_inside

MANIFEST: Final = "manifest.json"
RECOVERED: Final = "recovered.json"
EVENTS: Final = "events.jsonl"
NEW_EVENTS: Final = "events.new.jsonl"
"""The journal while it is being replaced."""
BLOBS: Final = "blobs"
PARTS: Final = "parts"
"""What processes recorded that have not the directory itself."""


class RunState(Enum):
    """Where a capture directory is in its life."""

    OPEN = "open"
    """Being recorded, or being recovered, by a live process."""
    INTERRUPTED = "interrupted"
    """The recording process is gone and did not finish."""
    COMPLETE = "complete"
    RECOVERED = "recovered"
    """Interrupted once, completed by recovery."""


class _EventLog(msgspec.Struct, frozen=True, rename="camel"):
    """The one field of a manifest that the store itself follows."""

    event_log_path: str = EVENTS


class RunDir:
    """A capture directory to read from; nothing is kept open, every answer is what the disk says now."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @staticmethod
    def create(
        path: Path, seed_manifest: bytes, durability: Durability = "process", *, is_claimed: bool = False
    ) -> Recording:
        """Start a run in *path*, which must be new or empty; *seed_manifest* is JSON.

        Where it *is_claimed*, it is so for a command of which this process is a part.
        """
        if durability not in get_args(Durability):
            raise UsageError(f"durability {durability!r} is unknown; choose 'process' or 'disk'")
        make_empty_folder(path, besides=[RECORDING_LOCK] if is_claimed else [])
        # Of several processes that found the directory empty, one makes the journal.
        journal = Journal.create(path / EVENTS, durability=durability)
        try:
            claim = Claim.make(path, seed_manifest, sync=durability == "disk")
        except StoreError:
            journal.close()
            journal.path.unlink(missing_ok=True)
            raise
        try:
            if durability == "disk":
                sync_folder(path)
                sync_folder(path.parent)
        except OSError as error:
            journal.close()
            journal.path.unlink(missing_ok=True)
            claim.remove()
            raise unwritable(path, error) from error
        return Recording(path, journal, BlobStore(path / BLOBS, durability=durability), claim)

    @staticmethod
    def open(path: Path) -> RunDir:
        """The capture in *path*, whatever its state; :class:`StoreError` if there is none."""
        run = RunDir(path)
        _ = run.state
        return run

    def names(self) -> list[str]:
        """What stands in the directory, but for what is half-written."""
        return sorted(name for name in os.listdir(self.path) if not name.startswith(TEMP_PREFIX))

    @property
    def is_capture(self) -> bool:
        """Whether a manifest says that this is one, finished or not."""
        return any(inside(self.path, name).exists() for name in (MANIFEST, OPEN_MANIFEST))

    @property
    def state(self) -> RunState:
        if is_being_recorded(self.path):
            return RunState.OPEN
        with self._claim_if_unfinished() as claim:
            if claim is not None:
                return RunState.OPEN if claim.is_held() else RunState.INTERRUPTED
        is_recovered = inside(self.path, RECOVERED).exists()
        return RunState.RECOVERED if is_recovered else RunState.COMPLETE

    def read_manifest(self) -> bytes:
        """The manifest as written; of an unfinished run the one it was started with."""
        with self._claim_if_unfinished() as claim:
            if claim is not None:
                return bytes(claim.read().manifest)
        with open_inside(self.path, MANIFEST) as stream:
            return stream.read()

    def replace_manifest(self, manifest: bytes) -> None:
        """Put *manifest* in the place of a finished run's, in one step."""
        if self.state in (RunState.OPEN, RunState.INTERRUPTED):
            raise StoreError(f"{self.path}: is {self.state.value}; it has no manifest to replace yet")
        write_whole(inside(self.path, MANIFEST), manifest, temp_folder=self.path, sync=True)

    def write_file(self, name: str, content: bytes) -> None:
        """Put *content* into the file *name*, in one step."""
        write_whole(inside(self.path, name), content, temp_folder=self.path, sync=True)

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Nobody else changes a finished run in the block; waits for who does."""
        try:
            fd = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError as error:
            raise unwritable(self.path, error) from error
        try:
            fcntl.flock(fd, fcntl.LOCK_EX)
            yield
        finally:
            os.close(fd)

    def tidy(self, empty_folder: str) -> bool:
        """Remove what was left beside a finished run by a kill; returns whether there was anything."""
        left = [
            *_temps(self.path),
            *(self.path / name for name in (RECORDING_LOCK, OPEN_MANIFEST, NEW_EVENTS)),
        ]
        there = [file for file in left if os.path.lexists(file)]
        try:
            for file in there:
                file.unlink(missing_ok=True)
            folder = self.path / empty_folder
            if folder.is_dir() and not any(folder.iterdir()):
                folder.rmdir()
        except OSError as error:
            raise unwritable(self.path, error) from error
        return bool(there)

    def write_transcript(self) -> None:
        """Put beside the events what they say to a reader; they are whole without it."""
        from reenact.store.reader import EventLog
        from reenact.store.transcript import TRANSCRIPT, UNREADABLE_EVENT, transcript_of

        with suppress(Exception):  # a recording never fails for the sake of its transcript
            text = transcript_of(EventLog(self))
            if UNREADABLE_EVENT.encode() in text:
                return  # what cannot be read now can be read later, and none is better than a wrong one
            write_whole(inside(self.path, TRANSCRIPT), text, temp_folder=self.path, sync=False)

    @contextmanager
    def _claim_if_unfinished(self) -> Iterator[Claim | None]:
        # The claim is looked for first: it goes only after manifest.json has come.
        claim = Claim.find(self.path)
        try:
            is_finished = inside(self.path, MANIFEST).exists()
            if claim is None and not is_finished:
                what = f"there is no {MANIFEST}" if self.path.exists() else "No such file or directory"
                raise StoreError(f"{self.path}: {what}; name a capture directory")
            yield None if is_finished else claim
        finally:
            if claim is not None:
                claim.let_go()

    @property
    def events_path(self) -> Path:
        """The journal that the manifest names; never outside the directory."""
        return inside(self.path, self._events_name())

    def open_events(self) -> BinaryIO:
        return open_inside(self.path, self._events_name())

    @property
    def blobs(self) -> BlobStore:
        return BlobStore(inside(self.path, BLOBS))

    def _events_name(self) -> str:
        try:
            return msgspec.json.decode(self.read_manifest(), type=_EventLog).event_log_path
        except (msgspec.DecodeError, ValueError, RecursionError) as error:
            raise FormatError(f"{error}; record the run again", file=str(self.path / MANIFEST)) from error


class Recording(RunDir):
    """A run being recorded by this process; finish or abandon it."""

    def __init__(self, path: Path, journal: Journal, blobs: BlobStore, claim: Claim) -> None:
        super().__init__(path)
        self.journal = journal
        self._blobs = blobs
        self._claim = claim
        leave_to_parent_on_fork(self)

    @property
    def blobs(self) -> BlobStore:
        return self._blobs

    def finish(self, manifest: bytes) -> None:
        """Close the journal and turn the directory from open to complete.

        A manifest that counts or hashes the journal is made after ``journal.close()``.
        """
        if not self._claim.is_ours:
            raise StoreError(f"{self.path}: is not recorded by this process (any more); start a new run")
        self.journal.close()
        self.write_transcript()
        write_whole(inside(self.path, MANIFEST), manifest, temp_folder=self.path, sync=True)
        self._claim.remove()

    def abandon(self) -> None:
        """Stop without finishing: the directory shows as interrupted and can be recovered."""
        try:
            self.journal.close()
        finally:
            self._claim.let_go()

    def leave_to_parent(self) -> None:
        """In a forked child: the lock stays the parent's, and goes when the parent does."""
        self._claim.let_go()


class Recovery(RunDir):
    """An interrupted run, taken over; nothing in it is changed before :meth:`finish`."""

    def __init__(self, path: Path, claim: Claim) -> None:
        super().__init__(path)
        self._claim = claim
        self.events: JournalScan = scan(self.events_path)

    def finish(self, manifest: bytes, marker: bytes) -> None:
        """Turn the directory from interrupted to recovered; *marker* becomes ``recovered.json``.

        A torn last line and temporary files go.
        """
        for temp in _temps(self.path):
            temp.unlink(missing_ok=True)
        cut_torn_tail(self.events_path)
        self.write_transcript()
        # The marker comes first: a recovered run never looks like one that ended by itself.
        for name, text in ((RECOVERED, marker), (MANIFEST, manifest)):
            write_whole(inside(self.path, name), text, temp_folder=self.path, sync=True)
        self._claim.remove()

    def abandon(self) -> None:
        """Leave the directory interrupted, for another recovery."""
        self._claim.let_go()


def reopen_for_recovery(path: Path) -> Recovery:
    """Take over an interrupted run."""
    claim = Claim.find(path)
    if claim is None:
        raise StoreError(f"{path}: is {RunDir(path).state.value}; there is nothing to recover")
    try:
        claim.take_over()
        # Asked after the lock is taken: the run may have been finished a moment ago.
        if inside(path, MANIFEST).exists():
            raise StoreError(f"{path}: is {RunDir(path).state.value}; there is nothing to recover")
        return Recovery(path, claim)
    except BaseException:
        claim.let_go()
        raise


def claim_folder(path: Path) -> FolderClaim:
    """Make the folder of a run that a command is about to record, and keep others out of it."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except FileExistsError:
        raise StoreError(f"{path}: is a file; record into another directory") from None
    except OSError as error:
        raise unwritable(path, error) from error
    claim = FolderClaim.make(path)
    try:
        make_empty_folder(path, besides=[RECORDING_LOCK])
    except StoreError:
        claim.remove()
        raise
    return claim


def make_empty_folder(path: Path, *, besides: Collection[str] = ()) -> None:
    """Make the folder of a new run; :class:`StoreError` where something is in it already, *besides* these."""
    try:
        path.mkdir(parents=True, exist_ok=True)
        names = sorted(set(os.listdir(path)) - {*besides})
    except FileExistsError:
        raise StoreError(f"{path}: is a file; record into another directory") from None
    except OSError as error:
        raise unwritable(path, error) from error
    if names:
        raise StoreError(f"{path}: {_describe(path, names)}; remove it or record into another directory")


@contextmanager
def making_folder(path: Path) -> Iterator[Path]:
    """A folder that becomes *path*, which must be new or empty, if the block ends well, and else is gone."""
    was_there = path.exists()
    make_empty_folder(path)
    temp = path.parent / f"{TEMP_PREFIX}{os.getpid()}-{path.name}"
    try:
        temp.mkdir()
        yield temp
        os.replace(temp, path)
    except BaseException:
        shutil.rmtree(temp, ignore_errors=True)
        if not was_there:
            path.rmdir()
        raise


def _describe(path: Path, names: list[str]) -> str:
    if {EVENTS, MANIFEST} & {*names}:
        with suppress(StoreError):
            return f"holds a capture already ({RunDir(path).state.value})"
    return f"is not empty ({', '.join(names[:3])}{', …' if len(names) > 3 else ''})"


def _temps(folder: Path) -> list[Path]:
    """What was being written when somebody was killed."""
    return [temp for place in (folder, inside(folder, BLOBS)) for temp in place.glob(f"{TEMP_PREFIX}*")]

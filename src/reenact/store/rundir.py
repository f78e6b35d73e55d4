"""The capture directory: its files and its state.

recording.lock        only while `reenact record` runs a command: its claim (`store.claims`)
manifest.open.json    only while a run is open: the claim of the recording process
manifest.json         appears when the run is complete, in one step, after the journal is on disk
recovered.json        beside manifest.json if the run was interrupted and completed later
events.jsonl          the journal
transcript.md         the events as text for reviewers, written again whenever the events are
blobs/                payloads too large for a line
.tmp-*                an incomplete file; never read, removed by recovery
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from enum import Enum
from os import listdir
from pathlib import Path
from typing import BinaryIO, Final, get_args

import msgspec

from reenact.canonical import JsonField
from reenact.errors import FormatError, StoreError, UsageError
from reenact.formats.capture import EVENT_LOG_NAME
from reenact.store.blobs import BlobStore
from reenact.store.claims import OPEN_MANIFEST, RECORDING_LOCK, Claim, FolderClaim
from reenact.store.durable import (
    TEMP_PREFIX,
    Durability,
    leave_to_parent_on_fork,
    sync_folder,
    unwritable,
    write_whole,
)
from reenact.store.forked import MAX_GENERATIONS, ForkedFrom, RunIds, join_events
from reenact.store.journal import Journal, JournalScan, cut_torn_tail, scan
from reenact.store.paths import find_inside, inside, open_inside

MANIFEST: Final = "manifest.json"
RECOVERED: Final = "recovered.json"
EVENTS: Final = EVENT_LOG_NAME
NEW_EVENTS: Final = "events.new.jsonl"
"""The journal while it is being replaced."""
BLOBS: Final = "blobs"
PARTS: Final = "parts"
"""The recordings of processes other than the one that owns the directory."""
INDEX_MANIFEST: Final = "corpus.json"
"""The file that makes a folder an index of runs."""


def refuse_index(folder: Path) -> None:
    """Raise :class:`StoreError` if *folder* is an index of runs: it is not a run."""
    if (folder / INDEX_MANIFEST).is_file():
        raise StoreError(f"{folder}: is an index of runs; list them with: reenact show {folder}")


class RunState(Enum):
    """The state of a capture directory."""

    OPEN = "open"
    """Being recorded, or being recovered, by a live process."""
    INTERRUPTED = "interrupted"
    """The recording process ended without finishing the run."""
    COMPLETE = "complete"
    RECOVERED = "recovered"
    """Interrupted once, completed by recovery."""


class _LogFields(msgspec.Struct, frozen=True, rename="camel"):
    """The fields of a manifest that the store itself needs."""

    event_log_path: str = EVENTS
    capture_id: str = ""
    run_id: str = ""
    fork: ForkedFrom | None = None

    @property
    def ids(self) -> RunIds:
        return RunIds(self.capture_id, self.run_id)


class _Ids(msgspec.Struct, rename="camel"):
    capture_id: JsonField = ""
    run_id: JsonField = ""


def read_ids(manifest: bytes) -> RunIds:
    """The ids in a manifest, also of a damaged one; empty where it has none."""
    try:
        ids = msgspec.json.decode(manifest, type=_Ids)
    except (msgspec.DecodeError, UnicodeDecodeError):
        ids = _Ids()
    return RunIds(*(each if isinstance(each, str) else "" for each in (ids.capture_id, ids.run_id)))


class RunDir:
    """A capture directory to read from; no file stays open.

    State and manifest are read from the disk each time. The places of journal and blobs of a finished run
    are read once, and again after the state was read.
    """

    def __init__(self, path: Path, generation: int = 0) -> None:
        """*generation* counts the forks through which this run is reached as a parent."""
        self.path = path
        self._generation = generation
        self._is_finished = False
        self._log: _LogFields | None = None

    @staticmethod
    def create(
        path: Path, seed_manifest: bytes, durability: Durability = "process", *, is_claimed: bool = False
    ) -> Recording:
        """Start a run in *path*, which must be new or empty; *seed_manifest* is JSON.

        *is_claimed* says that the command to which this process belongs has claimed the directory.
        """
        if durability not in get_args(Durability):
            raise UsageError(f"durability {durability!r} is unknown; choose 'process' or 'disk'")
        was_there = os.path.isdir(path)  # the next lines report a path that cannot be read
        # The command has stored files of the workspace as blobs before its processes began.
        make_empty_folder(path, besides=[RECORDING_LOCK, BLOBS] if is_claimed else [])
        # If several processes found the directory empty, one of them creates the journal.
        journal = Journal.create(path / EVENTS, durability=durability)
        try:
            claim = Claim.make(path, seed_manifest, sync=durability == "disk")
        except StoreError:
            journal.close()
            journal.path.unlink(missing_ok=True)
            if not was_there:
                with suppress(OSError):
                    path.rmdir()
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

    @property
    def is_capture(self) -> bool:
        """Whether there is a manifest, of a finished or an unfinished run."""
        return inside(self.path, MANIFEST).exists() or inside(self.path, OPEN_MANIFEST).exists()

    @property
    def size_bytes(self) -> int:
        """The size of the events; 0 without any, and for a fork without those of its parent."""
        events = inside(self.path, EVENTS)
        return events.stat().st_size if events.exists() else 0

    @property
    def state(self) -> RunState:
        self._log = None
        with suppress(StoreError):  # then it is not a file of reenact
            fd = find_inside(self.path, RECORDING_LOCK)
            if fd is not None:
                command = Claim(self.path, fd)
                is_recording = command.is_held()
                command.release()
                if is_recording:
                    return RunState.OPEN
        with self._claim_if_unfinished() as claim:
            if claim is not None:
                return RunState.OPEN if claim.is_held() else RunState.INTERRUPTED
        is_recovered = inside(self.path, RECOVERED).exists()
        return RunState.RECOVERED if is_recovered else RunState.COMPLETE

    def read_manifest(self) -> bytes:
        """The manifest as written; for an unfinished run, the one written at its start."""
        with self._claim_if_unfinished() as claim:
            if claim is not None:
                return bytes(claim.read().manifest)
        with open_inside(self.path, MANIFEST) as stream:
            return stream.read()

    def replace_manifest(self, manifest: bytes) -> None:
        """Replace the manifest of a finished run, in one step."""
        if self.state in (RunState.OPEN, RunState.INTERRUPTED):
            raise StoreError(f"{self.path}: is {self.state.value}; it has no manifest to replace yet")
        write_whole(inside(self.path, MANIFEST), manifest, temp_folder=self.path, sync=True)
        self._log = None

    def write_file(self, name: str, content: bytes) -> None:
        """Write the file *name*, in one step."""
        write_whole(inside(self.path, name), content, temp_folder=self.path, sync=True)

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Keep others from changing a finished run during the block; waits for those who do."""
        try:
            fd = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError as error:
            raise unwritable(self.path, error) from error
        try:
            fcntl.flock(fd, fcntl.LOCK_EX)
            yield
        finally:
            os.close(fd)

    def remove_leftovers(self, empty_folder: str) -> bool:
        """Remove the files that a killed process left in a finished run; returns whether there were any."""
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
        """Write ``transcript.md`` from the events; the run is complete without it."""
        from reenact.store.reader import EventReader
        from reenact.store.transcript import TRANSCRIPT, UNREADABLE_EVENT, transcript_of

        with suppress(Exception):  # a recording never fails because of its transcript
            text = transcript_of(EventReader(self))
            if UNREADABLE_EVENT.encode() in text:
                return  # no transcript is better than a wrong one
            write_whole(inside(self.path, TRANSCRIPT), text, temp_folder=self.path, sync=False)

    @contextmanager
    def _claim_if_unfinished(self) -> Iterator[Claim | None]:
        # The claim is opened first, because it is removed only after manifest.json was written.
        fd = find_inside(self.path, OPEN_MANIFEST)
        claim = None if fd is None else Claim(self.path, fd)
        try:
            self._is_finished = inside(self.path, MANIFEST).exists()
            if claim is None and not self._is_finished:
                what = f"there is no {MANIFEST}" if self.path.exists() else "No such file or directory"
                refuse_index(self.path)
                raise StoreError(f"{self.path}: {what}; name a capture directory")
            yield None if self._is_finished else claim
        finally:
            if claim is not None:
                claim.release()

    @property
    def events_path(self) -> Path:
        """The journal that the manifest names; never outside the directory."""
        return inside(self.path, self.event_log().event_log_path)

    def open_events(self) -> BinaryIO:
        """All events; for a fork, those of its parent come first, with the ids of the fork."""
        log = self.event_log()
        if log.fork is None or not log.fork.is_part:
            return open_inside(self.path, log.event_log_path)
        parent = self._parent_of(log.fork)
        with open_inside(self.path, log.event_log_path) as own, parent.open_events() as shared:
            return join_events(
                shared, own, log.fork.parent, was=parent.event_log().ids, now=log.ids, fork=self.path
            )

    @property
    def blobs(self) -> BlobStore:
        fork = self.event_log().fork if self.is_capture else None
        parent = self._parent_of(fork).blobs if fork is not None and fork.is_part else None
        return BlobStore(inside(self.path, BLOBS), parent=parent)

    def parent(self) -> RunDir | None:
        """The parent of a fork; :class:`StoreError` if it is missing or another capture."""
        fork = self.event_log().fork
        return None if fork is None else self._parent_of(fork)

    def _parent_of(self, fork: ForkedFrom) -> RunDir:
        place = Path(os.path.normpath(self.path / fork.parent.path))
        what = f"{self.path}: is a fork of capture {fork.parent.capture_id} in {place}"
        if self._generation >= MAX_GENERATIONS:
            raise StoreError(f"{what}, and so on without end; make the fork again")
        parent = RunDir(place, self._generation + 1)
        try:
            found = parent.event_log().capture_id
        except (StoreError, FormatError, ValueError):
            raise StoreError(f"{what}, which is not there; put it back, or make the fork again") from None
        if found != fork.parent.capture_id:
            raise StoreError(f"{what}, but capture {found} is there; put the parent back")
        return parent

    def event_log(self) -> _LogFields:
        if self._log is not None:
            return self._log
        try:
            log = msgspec.json.decode(self.read_manifest(), type=_LogFields)
        except (msgspec.DecodeError, ValueError, RecursionError) as error:
            raise FormatError(f"{error}; record the run again", file=str(self.path / MANIFEST)) from error
        if self._is_finished:
            self._log = log
        return log


class Recording(RunDir):
    """A run that this process records; finish or abandon it."""

    def __init__(self, path: Path, journal: Journal, blobs: BlobStore, claim: Claim) -> None:
        super().__init__(path)
        self.journal = journal
        self._blobs = blobs
        self._claim = claim
        leave_to_parent_on_fork(self)

    @property
    def blobs(self) -> BlobStore:
        return self._blobs

    def finish(self, manifest: bytes, *, has_transcript: bool = True) -> None:
        """Close the journal and turn the directory from open to complete.

        A manifest that counts or hashes the journal is made after ``journal.close()``.
        """
        if not self._claim.is_ours:
            raise StoreError(f"{self.path}: is not recorded by this process (any more); start a new run")
        self.journal.close()
        if has_transcript:
            self.write_transcript()
        write_whole(inside(self.path, MANIFEST), manifest, temp_folder=self.path, sync=True)
        self._claim.remove()

    def abandon(self) -> None:
        """Stop without finishing: the directory shows as interrupted and can be recovered."""
        try:
            self.journal.close()
        finally:
            self._claim.release()

    def leave_to_parent(self) -> None:
        """In a forked child: close the inherited files; the lock remains with the parent."""
        self._claim.release()


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
        # The marker is written first, so that a recovered run never looks like one that finished itself.
        for name, text in ((RECOVERED, marker), (MANIFEST, manifest)):
            write_whole(inside(self.path, name), text, temp_folder=self.path, sync=True)
        self._claim.remove()

    def abandon(self) -> None:
        """Leave the directory interrupted, for another recovery."""
        self._claim.release()


def reopen_for_recovery(path: Path) -> Recovery:
    """Take over an interrupted run."""
    fd = find_inside(path, OPEN_MANIFEST)
    if fd is None:
        raise StoreError(f"{path}: is {RunDir(path).state.value}; there is nothing to recover")
    claim = Claim(path, fd)
    try:
        claim.take_over()
        # Checked after the lock is taken: the run may have been finished a moment ago.
        if inside(path, MANIFEST).exists():
            raise StoreError(f"{path}: is {RunDir(path).state.value}; there is nothing to recover")
        return Recovery(path, claim)
    except BaseException:
        claim.release()
        raise


def claim_folder(path: Path) -> FolderClaim:
    """Make the folder of a run that a command will record, and claim it."""
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
        try:
            make_empty_folder(path)  # reports existing files before our claim is one of them
        except StoreError as found:
            if inside(path, MANIFEST).exists():
                raise StoreError(f"{found}, or replace it with --force") from None
            raise
        raise
    return claim


def make_empty_folder(path: Path, *, besides: Collection[str] = ()) -> None:
    """Make the folder of a new run; :class:`StoreError` if it has any files *besides* these."""
    try:
        path.mkdir(parents=True, exist_ok=True)
        names = sorted(set(listdir(path)) - {*besides})
    except FileExistsError:
        raise StoreError(f"{path}: is a file; record into another directory") from None
    except OSError as error:
        raise unwritable(path, error) from error
    if names:
        raise StoreError(f"{path}: {_describe(path, names)}; remove it or choose another directory")


def _describe(path: Path, names: list[str]) -> str:
    if {EVENTS, MANIFEST} & {*names}:
        with suppress(StoreError):
            return f"holds a capture already ({RunDir(path).state.value})"
    return f"is not empty ({', '.join(names[:3])}{', …' if len(names) > 3 else ''})"


def _temps(folder: Path) -> list[Path]:
    """The temporary files of killed processes."""
    return [temp for place in (folder, inside(folder, BLOBS)) for temp in place.glob(f"{TEMP_PREFIX}*")]

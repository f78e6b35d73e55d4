"""Where a run's events go."""

from __future__ import annotations

import shutil
from contextlib import suppress
from pathlib import Path
from typing import Protocol, runtime_checkable

import msgspec

from reenact.errors import StoreError
from reenact.formats.capture import (
    CaptureManifest,
    CaptureSeed,
    Imported,
    Integrity,
    Model,
    RunStatus,
    seed_codec,
    with_own_digest,
    write_manifest,
)
from reenact.formats.record import ABSENT, Absent
from reenact.store.durable import Durability
from reenact.store.rundir import RunDir


class Ending(msgspec.Struct, frozen=True):
    """What is known only at the end of a run."""

    status: RunStatus
    completed_at_ms: int
    model: Model
    error: str | None = None
    warnings: tuple[str, ...] = ()
    imported: Imported | Absent = ABSENT
    workspace_end: str | None = None
    """The tree of the run's files, where files are recorded."""


class CaptureSink(Protocol):
    """Where a run's events go, append-only; :meth:`finalize` completes the run atomically."""

    def start(self, seed: CaptureSeed) -> None:
        """Begin the run."""

    def append(self, event: bytes, /) -> object:
        """Store one event, the canonical text of a line; returns when it is safe.

        A sink that needs time for that is a :class:`SyncedSink` too, one that stores many events faster
        than one by one a :class:`BatchSink`.
        """

    def put_blob(self, data: bytes, /) -> str:
        """Store a large payload; returns its digest."""

    @property
    def count(self) -> int:
        """How many events are stored."""

    def finalize(self, ending: Ending) -> CaptureManifest:
        """Finish the run atomically."""


@runtime_checkable
class SyncedSink(Protocol):
    """A sink whose :meth:`append` returns before the event is safe; many threads may wait together."""

    def sync(self) -> None:
        """Return when all appended events are safe."""


@runtime_checkable
class BatchSink(Protocol):
    """A sink that stores many events faster than one by one."""

    def append_all(self, events: list[bytes]) -> None:
        """Store all of *events* or none."""


class FileCaptureSink:
    """A capture directory: ``events.jsonl`` line by line, ``manifest.json`` at the end."""

    def __init__(
        self, path: str | Path, *, durability: Durability = "process", is_claimed: bool = False
    ) -> None:
        """*is_claimed* says that the parent command has created and claimed the directory."""
        # The agent may change the working directory while it is recorded.
        self._path = Path(path).absolute()
        self._durability: Durability = durability
        self._is_claimed = is_claimed
        self.sync = self._sync if durability == "disk" else None

    def start(self, seed: CaptureSeed) -> None:
        self._seed = seed
        text = seed_codec.to_bytes(seed) + b"\n"
        self._run = RunDir.create(self._path, text, self._durability, is_claimed=self._is_claimed)
        # Every event passes here: one call less, where no subclass does more.
        if type(self).append is FileCaptureSink.append:
            self.append = self._run.journal.write  # type: ignore[method-assign]
        if type(self).put_blob is FileCaptureSink.put_blob:
            self.put_blob = self._run.blobs.put  # type: ignore[method-assign]

    def append(self, event: bytes, /) -> object:
        return self._run.journal.write(event)

    def put_blob(self, data: bytes, /) -> str:
        return self._run.blobs.put(data)

    def append_all(self, events: list[bytes]) -> None:
        if type(self).append is FileCaptureSink.append:
            self._run.journal.write_all(events)
            return
        for event in events:
            self.append(event)

    def _sync(self) -> None:
        self._run.journal.sync()

    @property
    def count(self) -> int:
        return self._run.journal.count

    def discard(self) -> None:
        """Remove the unfinished capture and its directory."""
        self._run.abandon()
        shutil.rmtree(self._path, ignore_errors=True)

    def finalize(self, ending: Ending) -> CaptureManifest:
        try:
            journal = self._run.journal
            journal.close()
            manifest = finished_manifest(self._seed, ending, journal.count, journal.sha256_hex)
            self._run.finish(write_manifest(manifest))
        except BaseException:
            # Release the lock on the directory, so that it counts as interrupted and can be recovered.
            with suppress(StoreError):
                self._run.abandon()
            raise
        return manifest


def finished_manifest(
    seed: CaptureSeed, ending: Ending, event_count: int, sha256_hex: str
) -> CaptureManifest:
    """The manifest of a run that began with *seed* and ended with *ending*."""
    manifest = CaptureManifest(
        version=1,
        captureId=seed.captureId,
        runId=seed.runId,
        createdAt=seed.createdAt,
        completedAt=ending.completed_at_ms,
        mode=seed.mode,
        model=ending.model,
        eventCount=event_count,
        eventLogPath=seed.eventLogPath,
        redaction=seed.redaction,
        integrity=Integrity(algorithm="sha256", eventsHash=f"sha256:{sha256_hex}"),
        status=ending.status,
        error=ending.error if ending.error is not None else ABSENT,
        producer=seed.producer,
        blobThresholdBytes=seed.blobThresholdBytes,
        standIns=seed.standIns,
        volatile=seed.volatile,
        warnings=list(ending.warnings) or ABSENT,
        imported=ending.imported,
        workspaceEnd=ending.workspace_end if ending.workspace_end is not None else ABSENT,
        extra=seed.extra,
    )
    return with_own_digest(manifest)

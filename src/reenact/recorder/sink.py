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
    """What is known of a run only when it is over."""

    status: RunStatus
    completed_at_ms: int
    model: Model
    error: str | None = None
    warnings: tuple[str, ...] = ()
    imported: Imported | Absent = ABSENT
    workspace_end: str | None = None
    """The tree of its files, where these are recorded."""


class CaptureSink(Protocol):
    """Append-only: what was appended is never changed, and :meth:`finalize` makes it whole at once."""

    def start(self, seed: CaptureSeed) -> None:
        """Begin the run."""

    def append(self, event: bytes, /) -> object:
        """Keep one event, the canonical text of a line; returns when it is safe.

        Where that takes time a sink is a :class:`SettlingSink` too; where many at once take less than one by
        one, a :class:`BatchSink`.
        """

    def put_blob(self, data: bytes, /) -> str:
        """Keep a large payload; returns its digest."""

    @property
    def count(self) -> int:
        """How many events are kept."""

    def finalize(self, ending: Ending) -> CaptureManifest:
        """Finish the run atomically."""


@runtime_checkable
class SettlingSink(Protocol):
    """A sink whose :meth:`append` returns before the event is safe; many threads may wait together."""

    def settle(self) -> None:
        """Return when all that was appended is safe."""


@runtime_checkable
class BatchSink(Protocol):
    """A sink that keeps many events in less time than one by one."""

    def append_all(self, events: list[bytes]) -> None:
        """Keep *events*, all or none of them."""


class FileCaptureSink:
    """A capture directory: ``events.jsonl`` line by line, ``manifest.json`` at the end."""

    def __init__(
        self, path: str | Path, *, durability: Durability = "process", is_claimed: bool = False
    ) -> None:
        """*is_claimed* is for a directory that the command has claimed whose process this is."""
        # The agent may go to another directory while it is recorded.
        self._path = Path(path).absolute()
        self._durability: Durability = durability
        self._is_claimed = is_claimed
        self.settle = self._settle if durability == "disk" else None

    def start(self, seed: CaptureSeed) -> None:
        self._seed = seed
        text = seed_codec.to_bytes(seed) + b"\n"
        self._run = RunDir.create(self._path, text, self._durability, is_claimed=self._is_claimed)
        self.append = self._run.journal.write
        self.put_blob = self._run.blobs.put

    def append_all(self, events: list[bytes]) -> None:
        self._run.journal.write_all(events)

    def _settle(self) -> None:
        self._run.journal.settle()

    @property
    def count(self) -> int:
        return self._run.journal.count

    def discard(self) -> None:
        """Take away what was begun, directory and all."""
        self._run.abandon()
        shutil.rmtree(self._path, ignore_errors=True)

    def finalize(self, ending: Ending) -> CaptureManifest:
        try:
            journal = self._run.journal
            journal.close()
            manifest = finished_manifest(self._seed, ending, journal.count, journal.sha256_hex)
            self._run.finish(write_manifest(manifest))
        except BaseException:
            # Let go of the directory, so that it shows as interrupted and can be recovered.
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

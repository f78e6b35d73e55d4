"""Changes to a run that has ended: completing one that was killed, adding the exit status of a command.

Recovery keeps every acknowledged event and cuts a torn last line. The exit status is known only to the parent
process, after the run is closed.
"""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from time import time

import msgspec

from reenact.canonical import encode_clean
from reenact.formats.capture import (
    INTERRUPTED,
    NO_MODEL,
    CaptureManifest,
    LlmRequest,
    Model,
    PrintedLines,
    read_events,
    read_manifest,
    read_seed,
    write_manifest,
)
from reenact.formats.record import ABSENT, Absent
from reenact.recorder.sink import Ending, finished_manifest
from reenact.store.claims import OPEN_MANIFEST
from reenact.store.rundir import Recovery, RunDir, reopen_for_recovery


class Recovered(msgspec.Struct, frozen=True):
    """What recovery found."""

    manifest: CaptureManifest
    removed_bytes: int
    """The size of the torn last line that was cut."""


def recover(path: str | Path) -> Recovered:
    """Complete the interrupted capture in *path*.

    Raises :class:`~reenact.errors.StoreError` if there is nothing to recover or the run is still being
    recorded, :class:`~reenact.errors.FormatError` if more than the last line is damaged; the directory is
    unchanged then.
    """
    recovery = reopen_for_recovery(Path(path))
    try:
        manifest = _manifest(recovery)
        removed_bytes = recovery.events.torn_bytes
        marker = encode_clean({"recoveredAt": int(time() * 1000), "removedBytes": removed_bytes})
        recovery.finish(write_manifest(manifest), marker + b"\n")
    except BaseException:
        recovery.abandon()
        raise
    return Recovered(manifest, removed_bytes)


def _manifest(recovery: Recovery) -> CaptureManifest:
    seed = read_seed(recovery.read_manifest(), file=str(recovery.path / OPEN_MANIFEST))
    last_ms, model = int(seed.createdAt), NO_MODEL
    with recovery.open_events() as stream:
        events = read_events(stream, file=str(recovery.events_path))
        for _, event in islice(events, recovery.events.count):
            last_ms = int(event.ts)
            if model is NO_MODEL and isinstance(event, LlmRequest):
                model = Model(provider=event.data.provider, model=event.data.model)
    ending = Ending("error", last_ms, model, INTERRUPTED)
    return finished_manifest(seed, ending, recovery.events.count, recovery.events.sha256_hex)


def note_exit_status(
    path: Path,
    exit_status: int,
    printed: PrintedLines | Absent = ABSENT,
    workspace_end: str | Absent = ABSENT,
) -> CaptureManifest:
    """Write *exit_status*, what was *printed* and the tree of the files into the finished capture's manifest.

    A run that failed is no longer ``ok``.
    """
    run = RunDir.open(path)
    with run.lock():
        manifest = read_manifest(run.read_manifest(), file=str(run.path / "manifest.json"))
        manifest = msgspec.structs.replace(
            manifest, exitStatus=exit_status, stdout=printed, workspaceEnd=workspace_end
        )
        if exit_status and manifest.status == "ok":
            manifest = msgspec.structs.replace(manifest, status="error", error=f"exit status {exit_status}")
        run.replace_manifest(write_manifest(manifest))
    return manifest

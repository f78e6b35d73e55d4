"""How a recorded command ended: known only to the one that waited for it, after the run is closed."""

from __future__ import annotations

from pathlib import Path

import msgspec

from reenact.formats.capture import CaptureManifest, PrintedLines, read_manifest, write_manifest
from reenact.formats.record import ABSENT, Absent
from reenact.store.rundir import RunDir


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

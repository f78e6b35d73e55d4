"""Updates a recorded command: runs it again, answers recorded calls, and records new ones."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Literal

import msgspec

from reenact.errors import CheckFailed, StoreError, UsageError
from reenact.formats.record import ABSENT
from reenact.formats.volatile import VolatileRule
from reenact.gateway.upstreams import upstreams_of
from reenact.injected.handover import Handover, ToUpdate
from reenact.injected.launch import handover_folder, run_again
from reenact.injected.served import ServedUpdate
from reenact.recorder.recovery import note_exit_status
from reenact.run.merging import UpdatedCapture, UpdateResult, read_results
from reenact.run.rules import project_rules
from reenact.store.reader import CaptureReader, read_run_start
from reenact.store.remote import path_here
from reenact.workspace.history import WorkspaceHistory
from reenact.workspace.replaying import restore_start


class UpdateReport(msgspec.Struct, frozen=True):
    """The result of an updated command."""

    path: str
    outcome: Literal["updated", "unchanged", "failed"]
    """``failed`` if the exit status differs from the recorded one; the capture then stays unchanged."""
    exit_status: int
    """The exit status of the command."""
    answered: int = 0
    """The number of calls answered from the capture."""
    new_events: int = 0


def update_command(
    path: str | Path,
    words: Sequence[str],
    *,
    upstreams: Mapping[str, str] | None = None,
    volatile: Sequence[VolatileRule] = (),
    port: int | None = None,
    stdout: int = 1,
    repository: str | Path | None = None,
) -> UpdateReport:
    """Run the command *words* again and record only what the capture in *path* does not have.

    Recorded calls are answered from it; others are really made. The result replaces the capture in one step
    if the command ends as it did before. *upstreams* override those of the capture. The output of the command
    goes to the file descriptor *stdout*.

    If the capture has files, the command works in a new folder with them, as in
    :func:`reenact.replay_command`; *repository* is as there.
    """
    directory, rules = path_here(path), tuple(volatile)
    project_rules(Path.cwd())  # reports wrong rules before anything runs
    reader = CaptureReader(directory)
    restoring = restore_start(reader, repository) if WorkspaceHistory.has_one(reader) else nullcontext()
    run_start, recorded = read_run_start(reader), reader.manifest.exitStatus
    salt = reader.manifest.redaction.salt_bytes
    known = upstreams_of(os.environ) | (run_start.upstreams or {}) | dict(upstreams or {})
    updated = UpdatedCapture(directory)
    updated.open()
    try:
        with handover_folder() as handover, restoring as files:
            if files is not None:
                rules += tuple(project_rules(Path.cwd()))  # they cannot be found from the new folder
            served = ServedUpdate(
                directory,
                known,
                updated.blobs.root,
                volatile=rules,
                workspace=files,
                tree_file=str(handover.tree_file),
            )
            with served.serve(port=port or 0, on_call=handover.note_gateway_call) as gateway:
                orders = ToUpdate(
                    path=str(directory.absolute()),
                    gateway=gateway.address,
                    volatile=rules,
                    blobs=str(updated.blobs.root.absolute()),
                )
                status, printed = run_again(
                    words, orders, handover, run_start, salt, files=files, stdout=stdout
                )
            results = _collect_results(directory, handover, served)
        if status != (0 if recorded is ABSENT else recorded):
            return UpdateReport(str(directory), "failed", status)
        merged = updated.merge(results, served.result().ending.workspace_end)
        if updated.is_changed:
            note_exit_status(updated.folder, status, printed.end(), merged.workspaceEnd)
            updated.accept()
    finally:
        updated.discard()  # does nothing after accept()
    outcome: Literal["updated", "unchanged"] = "updated" if updated.is_changed else "unchanged"
    return UpdateReport(str(directory), outcome, status, updated.answered, updated.asked)


def _collect_results(directory: Path, handover: Handover, served: ServedUpdate) -> list[UpdateResult]:
    """The results of the processes and of the gateway; a process without a result has made no call."""
    for why in handover.notes("absent").values():
        raise UsageError(why)
    for why in [*handover.notes("failed").values(), *handover.notes("left-out").values()]:
        raise StoreError(f"{directory}: not updated: {why}")
    reports = handover.notes("updated")
    for pid in handover.notes("plays"):
        if pid not in reports:
            raise StoreError(f"{directory}: not updated: {handover.process(pid)} did not end normally")
    results = sorted(read_results(reports.values()), key=lambda result: str(result.root))
    through_gateway = served.result()
    if through_gateway.has_acted or read_run_start(served.context.source.reader).upstreams is not ABSENT:
        results.append(through_gateway)
    if not any(result.has_acted for result in results):
        raise CheckFailed(f"{directory}: not updated: the command made no call that reenact sees")
    return results

"""Records a command: its Python processes, and the requests to the gateway."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from itertools import count
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from reenact.errors import FormatError, StoreError, UsageError
from reenact.formats.capture import CaptureManifest, PrintedLines, RedactionProfile
from reenact.formats.event import count_steps, read_head
from reenact.formats.record import ABSENT, Absent
from reenact.formats.volatile import VolatileRule
from reenact.gateway.server import Gateway
from reenact.gateway.upstreams import upstreams_of
from reenact.injected.handover import Handover, ToRecord
from reenact.injected.launch import (
    handover_folder,
    run_recorded,
    subject,
)
from reenact.injected.served import ServedCapture
from reenact.recorder.joining import join_parts
from reenact.recorder.recovery import note_exit_status, recover
from reenact.run.capturing import Identity
from reenact.run.rules import project_beside
from reenact.store.blobs import BlobStore
from reenact.store.durable import Durability
from reenact.store.objects import ObjectStore, address_in
from reenact.store.place import put_in_place, staging_folder
from reenact.store.reader import CaptureReader
from reenact.store.remote import local_path
from reenact.store.rundir import BLOBS, MANIFEST, RunDir, RunState, claim_folder
from reenact.workspace.recording import Base, WorkspaceOrder
from reenact.workspace.scan import LIMIT_BYTES, LeftOut, Scanner

_EXAMPLES: Final = "OPENAI_BASE_URL, ANTHROPIC_BASE_URL, GOOGLE_GEMINI_BASE_URL or OLLAMA_HOST"


class RecordingReport(msgspec.Struct, frozen=True):
    """The result of recording a command."""

    path: str
    command: list[str]
    """The words that were run, with secrets redacted."""
    exit_status: int
    """The exit status of the command."""
    manifest: CaptureManifest | None
    """``None`` if the capture is incomplete; *notes* or *problem* say why."""
    notes: list[str]
    """Remarks on the recording for the user."""
    silence: str
    """If no call was recorded, the likely reason."""
    problem: Exception | None = None
    """The error that kept the capture from being completed; the command itself has ended by then."""
    left_out: list[LeftOut] = []
    """The files of the workspace that are not in the capture, at the end of the run."""
    steps: dict[str, int] = {}
    """The number of recorded steps of each kind, the most frequent first."""
    kept: str | None = None
    """The path of a complete capture that could not be stored at its address."""


def record_command(
    words: Sequence[str],
    path: str | Path | None = None,
    *,
    replace: bool = False,
    redact: RedactionProfile | None = None,
    durability: Durability = "process",
    upstreams: Mapping[str, str] | None = None,
    volatile: Sequence[VolatileRule] = (),
    port: int | None = None,
    workspace: str | Path | None = None,
    workspace_base: Base | None = None,
    workspace_limit_bytes: int = LIMIT_BYTES,
) -> RecordingReport:
    """Run the command *words* and record it in *path*, or in a new folder in ``runs``.

    The calls of its Python processes are recorded without a change to their code. Programs in other languages
    are recorded by their model calls, through a gateway on this host that listens on *port* and forwards to
    the known upstreams and *upstreams*, by name. *replace* replaces an existing capture when the new one is
    complete. The files of the folder *workspace* are recorded too, as in :func:`reenact.capture`;
    ``{workspace}`` in *words* stands for it.

    *path* may be an address such as ``s3://bucket/runs/monday``: the run is recorded in ``runs``, uploaded
    when the command has ended, and then removed here.
    """
    words = tuple(words)
    project_beside(Path.cwd())  # reports a wrong setting before anything runs
    known = upstreams_of(os.environ) | dict(upstreams or {})
    store = None if path is None else _open_store(path, replace=replace)
    if path is None or store is not None:
        target = _new_path(words, datetime.now().astimezone())
    else:
        target = Path(local_path(path))
    files = None
    if workspace is not None:
        files = WorkspaceOrder.for_folder(
            workspace, limit_bytes=workspace_limit_bytes, base=workspace_base, leave_out=(target,)
        )
    is_replaced = replace and _holds_capture(target)
    new = staging_folder(target) if is_replaced else target
    place = Path(os.path.realpath(new.parent), new.name)  # stays valid if a parent changes
    claim = claim_folder(new)
    identity = Identity.new()
    served = ServedCapture(
        place,
        words,
        known,
        redact=redact,
        durability=durability,
        volatile=tuple(volatile),
        identity=identity,
        workspace=files,
    )
    blobs = BlobStore(place / BLOBS, durability=durability)
    scanner: Scanner | None = None
    status: int | None = None
    manifest: CaptureManifest | None = None
    notes: list[str] = []
    silence = ""
    steps: dict[str, int] = {}
    problem: Exception | None = None
    try:
        with handover_folder() as handover:
            if files is not None:
                files = msgspec.structs.replace(files, leave_out=(*files.leave_out, str(place)))
                scanner = served.begin_files(files, blobs, handover.file_index, handover.tree_file)
            with served.serve(port=port or 0, on_call=handover.note_gateway_call) as gateway:
                orders = ToRecord(
                    path=str(place),
                    gateway=gateway.address,
                    redact=redact,
                    durability=durability,
                    identity=identity,
                    volatile=tuple(volatile),
                    workspace=served.workspace,
                )
                status, printed = run_recorded(words, orders, handover)
            claim.remove()
            ended = RecordedEnd(status, printed.end(), _scan_at_end(scanner, notes))
            manifest = finish_recording(new, ended, handover, gateway, notes)
            if manifest is not None:
                steps = count_steps(map(read_head, CaptureReader(place).lines()))
            if manifest is not None and is_replaced:
                put_in_place(new, target)
            silence = _explain_silence(handover, gateway)
    except Exception as error:
        if status is None:
            raise
        # The command has ended: a problem of the recording is reported and does not change its exit status.
        problem, manifest = error, None
    finally:
        claim.remove()
        _remove_if_empty(new)
    redacted = list(served.redacted_words())
    left_out = scanner.left_out() if scanner is not None else []
    report = RecordingReport(
        str(target), redacted, status, manifest, notes, silence, problem, left_out, steps
    )
    return report if store is None or manifest is None else _put_into(store, report)


def _open_store(path: str | Path, *, replace: bool) -> ObjectStore | None:
    """Open the store of an address and check it before the command runs; ``None`` for a path."""
    address = address_in(path)
    if address is None or address.startswith("file:"):
        return None
    if replace:
        raise UsageError(f"{address}: nothing is replaced in object storage; record to another address")
    store = ObjectStore(address, is_written=True)
    store.check()
    if store.find(MANIFEST) is not None:
        raise StoreError(f"{address}: holds a capture already; record to another address")
    return store


def _put_into(store: ObjectStore, report: RecordingReport) -> RecordingReport:
    """Move the capture into the *store*; if that fails, it stays here."""
    try:
        store.push("", Path(report.path))
    except (StoreError, FormatError, OSError) as error:
        return msgspec.structs.replace(report, manifest=None, problem=error, kept=report.path)
    shutil.rmtree(report.path, ignore_errors=True)
    return msgspec.structs.replace(report, path=store.address)


def _scan_at_end(scanner: Scanner | None, notes: list[str]) -> str | Absent:
    """Read the files after the command has ended."""
    if scanner is None:
        return ABSENT
    try:
        return scanner.take()
    except StoreError as error:
        notes.append(f"the files at the end are not recorded: {error}")
        return ABSENT


def _remove_if_empty(folder: Path) -> None:
    """Remove *folder* if nothing was recorded; recorded files alone are not a run."""
    with suppress(OSError):
        if os.listdir(folder) == [BLOBS]:
            shutil.rmtree(folder / BLOBS)
        folder.rmdir()


def _new_path(words: tuple[str, ...], now: datetime) -> Path:
    """``runs/agent-20260131-154500``, or with a number appended if that exists."""
    stem = f"{subject(words)}-{now:%Y%m%d-%H%M%S}"
    names = (stem if number == 1 else f"{stem}-{number}" for number in count(1))
    return next(path for path in (Path("runs") / name for name in names) if not path.exists())


class RecordedEnd(NamedTuple):
    """Facts about the command that are known after its end."""

    status: int
    printed: PrintedLines
    workspace_end: str | Absent


def _holds_capture(path: Path) -> bool:
    """Whether there is a capture that may be replaced; one that is being recorded may not."""
    if not path.exists():
        return False
    with suppress(StoreError):
        if RunDir.open(path).state is RunState.OPEN:
            raise UsageError(f"{path}: is being recorded; wait until it ends")
        return True
    return False


def finish_recording(
    path: Path, ended: RecordedEnd, handover: Handover, gateway: Gateway, notes: list[str]
) -> CaptureManifest | None:
    """Complete the capture in *path*; ``None``, with a note, if it is incomplete."""
    if not path.is_dir():
        notes.append(f"the capture is lost: {path} was removed while the command ran")
        return None
    if not {*os.listdir(path)} - {BLOBS}:
        failed = f"the command itself failed with exit status {ended.status}; " if ended.status else ""
        notes.append(f"nothing was recorded: {failed}{_explain_silence(handover, gateway)}")
        return None
    left_out = handover.notes("left-out").items()
    notes += [f"not recorded: {why}" for why in handover.notes("failed").values()]
    notes += [f"not recorded: {handover.process(pid)}: {why}" for pid, why in left_out]
    return _complete(path, ended, notes, handover.shared_acts())


def _complete(
    path: Path, ended: RecordedEnd, notes: list[str], shared: Sequence[str]
) -> CaptureManifest | None:
    state = RunDir.open(path).state
    if state is RunState.OPEN:
        notes.append(f"{path}: is still being recorded by a process that the command left running")
        return None
    if state is RunState.INTERRUPTED:
        cut_bytes = recover(path).removed_bytes
        cut = f"{cut_bytes:,} byte{'' if cut_bytes == 1 else 's'}"
        notes.append(f"{path}: the run was interrupted and has been recovered, {cut} cut")
    join_parts(path, shared)
    return note_exit_status(path, ended.status, ended.printed, ended.workspace_end)


def _explain_silence(handover: Handover, gateway: Gateway) -> str:
    for why in handover.notes("left-out").values():
        return why
    for name in gateway.unknown_names:
        return (
            f"a request for /{name} came to the gateway, but no upstream has this name; "
            f"add it with --upstream {name}=URL"
        )
    if handover.notes("started"):
        return (
            "the program made no call that reenact sees; mark what reaches the outside with @reenact.tool, "
            "and if a process of its own does the work, record that one"
        )
    for why in [*handover.notes("absent").values(), *handover.notes("failed").values()]:
        return why
    return (
        "the command started no Python that reads our PYTHONPATH (python -I and -E do not), and nothing came "
        f"to the gateway; let the agent take its base URL from {_EXAMPLES}, or give it {{gateway}}/NAME "
        "in its arguments or, with --port, in its configuration"
    )

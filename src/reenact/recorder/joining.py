"""One capture of what several processes recorded of one run.

The first of them has the capture directory; another records into a part of it, as a capture of its own. When
all are over, the parts' events are put between the others by time. Ids and lanes of calls are different
already; the numbers of events are given anew. How the run ended is told by the first process and the gateway;
how other processes ended is beside it, since whoever started them has taken it into account.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from hashlib import sha256
from heapq import merge
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote, unquote

import msgspec

from reenact.boundary import ROOT
from reenact.canonical import encode_clean
from reenact.formats.capture import NO_MODEL, CaptureManifest, RunStatus, write_manifest
from reenact.formats.record import ABSENT
from reenact.recorder.recovery import recover
from reenact.store.reader import CaptureReader
from reenact.store.rundir import RunDir, RunState

_PARTS: Final = "parts"
_PROCESS: Final = "process-"


def part_of(path: Path, name: str) -> Path:
    """Where the part *name* of the capture in *path* is recorded."""
    return path / _PARTS / name


def process_part(path: Path, root: str) -> Path:
    """Where the process is recorded whose first lane is *root*, if it has not the directory itself."""
    return part_of(path, f"{_PROCESS}{quote(root, safe='')}")


def join_parts(path: Path) -> None:
    """Put the parts of the finished capture in *path* into it; one that is still open is left beside."""
    readers = [_finished(part) for part in sorted(path.glob(f"{_PARTS}/*"))]
    parts = [part for part in readers if part is not None]
    if not parts:
        return
    for part in parts:
        for digest in RunDir(part.path).blobs:
            RunDir(path).blobs.put(part.blob(digest))
    logs = [_Log(reader) for reader in (CaptureReader(path), *parts)]
    lines = [*_renumbered(logs)]
    events = b"".join(line + b"\n" for line in lines)
    manifest = _manifest(logs, len(lines), events)
    RunDir.open(path).replace_events(
        events, lambda name: write_manifest(msgspec.structs.replace(manifest, eventLogPath=name))
    )
    for part in parts:
        shutil.rmtree(part.path)
    if len(parts) == len(readers):
        (path / _PARTS).rmdir()


def _finished(part: Path) -> CaptureReader | None:
    state = RunDir.open(part).state
    if state is RunState.INTERRUPTED:
        recover(part)
    return CaptureReader(part) if state is not RunState.OPEN else None


class _Event(msgspec.Struct):
    captureId: str  # noqa: N815 — the wire's own names
    data: dict[str, Any]
    runId: str  # noqa: N815
    seq: int
    ts: int | float
    type: str
    version: int


_decode_event: Final = msgspec.json.Decoder(_Event).decode


class _Log:
    """What one party recorded."""

    def __init__(self, reader: CaptureReader) -> None:
        self.manifest = reader.manifest
        self.events = [_decode_event(line) for line in reader.lines()]
        name = reader.path.name
        self.root = unquote(name.removeprefix(_PROCESS)) if name.startswith(_PROCESS) else None
        """The first lane of a process that has not the directory itself."""
        self.numbers = {0: 0, 1: 1}
        """The new number of each event, for what refers to it."""

    @property
    def tells_the_end(self) -> bool:
        return self.root in (None, ROOT)

    def one(self, event_type: str) -> _Event | None:
        return next((event for event in self.events if event.type == event_type), None)

    def between(self) -> Iterator[tuple[_Event, _Log]]:
        return ((event, self) for event in self.events if event.type not in ("run_start", "run_end"))

    def process(self) -> dict[str, Any]:
        start = self.one("run_start")
        argv = {"argv": start.data["argv"]} if start is not None else {}
        return argv | {"ended": self.one("run_end") is not None}


def _renumbered(logs: list[_Log]) -> Iterator[bytes]:
    """The events of all, by time; one beginning, and one end where it is known."""
    starts = [start for log in logs if (start := log.one("run_start"))]
    began = {name: value for start in starts[::-1] for name, value in start.data.items()}
    processes = {log.root: log.process() for log in logs if log.root is not None}
    yield _line(starts[0], 1, began | ({"processes": processes} if processes else {}))
    seq = 1
    for event, log in merge(*(log.between() for log in logs), key=lambda pair: pair[0].ts):
        seq += 1
        log.numbers[event.seq] = seq
        data = event.data
        if "opened" in data:
            data = data | {"opened": log.numbers[data["opened"]]}
        yield _line(event, seq, data)
    ends = [log.one("run_end") for log in logs if log.tells_the_end]
    known = [end for end in ends if end is not None]
    if len(known) == len(ends):
        last = max(known, key=lambda end: end.ts)
        last.ts = max(log.events[-1].ts for log in logs)
        yield _line(last, seq + 1, _ended([end.data for end in known]))


def _ended(ends: list[dict[str, Any]]) -> dict[str, Any]:
    """The end of all: a failure of one is one of the whole."""
    told = {name: value for end in ends for name, value in end.items()}
    return told | {"status": "error" if any(end["status"] == "error" for end in ends) else "ok"}


def _line(event: _Event, seq: int, data: dict[str, Any]) -> bytes:
    return encode_clean(msgspec.to_builtins(msgspec.structs.replace(event, seq=seq, data=data)))


def _manifest(logs: list[_Log], count: int, events: bytes) -> CaptureManifest:
    """That of the first, about all."""
    manifests = [log.manifest for log in logs]
    first = manifests[0]
    failed = [log.manifest for log in logs if log.tells_the_end and log.manifest.status == "error"]
    status: RunStatus = "error" if failed else "ok"
    warnings = [warning for manifest in manifests for warning in manifest.warnings or ()]
    warnings += [
        f"process {log.root} ended with an error: {log.manifest.error}"
        for log in logs
        if not log.tells_the_end and log.manifest.status == "error"
    ]
    models = [manifest.model for manifest in manifests if manifest.model != NO_MODEL]
    stand_ins = [
        manifest.standIns for manifest in manifests if manifest.standIns and manifest.standIns.sources
    ]
    return msgspec.structs.replace(
        first,
        completedAt=max(manifest.completedAt or 0 for manifest in manifests),
        model=models[0] if models else NO_MODEL,
        eventCount=count,
        integrity=msgspec.structs.replace(first.integrity, eventsHash=f"sha256:{sha256(events).hexdigest()}"),
        status=status,
        error=failed[0].error if failed else ABSENT,
        warnings=warnings or ABSENT,
        standIns=stand_ins[0] if stand_ins else first.standIns,
    )

"""One capture of what several processes recorded of one run.

The first of them has the capture directory; another records into a part of it, as a capture of its own. When
all are over, the parts' events are put between the others by time. Ids and lanes of calls are different
already; the numbers of events are given anew.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from hashlib import sha256
from heapq import merge
from pathlib import Path
from typing import Any, Final

import msgspec

from reenact.canonical import encode_clean
from reenact.formats.capture import NO_MODEL, CaptureManifest, RunStatus, write_manifest
from reenact.formats.record import ABSENT
from reenact.recorder.recovery import recover
from reenact.store.reader import CaptureReader
from reenact.store.rundir import RunDir, RunState

_PARTS: Final = "parts"


def part_of(path: Path, name: str) -> Path:
    """Where the part *name* of the capture in *path* is recorded."""
    return path / _PARTS / name


def join_parts(path: Path) -> None:
    """Put the parts of the finished capture in *path* into it; one that is still open is left beside."""
    readers = [_finished(part) for part in sorted(path.glob(f"{_PARTS}/*"))]
    parts = [part for part in readers if part is not None]
    if not parts:
        return
    whole = CaptureReader(path)
    for part in parts:
        for digest in RunDir(part.path).blobs:
            RunDir(path).blobs.put(part.blob(digest))
    lines = [*_renumbered([whole, *parts])]
    events = b"".join(line + b"\n" for line in lines)
    manifest = _manifest([whole.manifest, *(part.manifest for part in parts)], len(lines), events)
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


def _renumbered(readers: list[CaptureReader]) -> Iterator[bytes]:
    """The events of all, by time; one beginning, and one end where all have ended."""
    logs = [[_decode_event(line) for line in reader.lines()] for reader in readers]
    starts = [event for log in logs for event in log if event.type == "run_start"]
    ends = [event for log in logs for event in log if event.type == "run_end"]
    numbers: list[dict[int, int]] = [{0: 0, 1: 1} for _ in logs]
    """By log: the new number of each event, for what refers to it."""
    yield _line(starts[0], 1, {name: value for start in starts[::-1] for name, value in start.data.items()})
    seq = 1
    for event, log in merge(*map(_between, logs, range(len(logs))), key=lambda pair: pair[0].ts):
        seq += 1
        numbers[log][event.seq] = seq
        data = event.data
        if "opened" in data:
            data = data | {"opened": numbers[log][data["opened"]]}
        yield _line(event, seq, data)
    if len(ends) == len(logs):
        last = max(ends, key=lambda end: end.ts)
        yield _line(last, seq + 1, _ended([end.data for end in ends]))


def _between(log: list[_Event], number: int) -> Iterator[tuple[_Event, int]]:
    return ((event, number) for event in log if event.type not in ("run_start", "run_end"))


def _ended(ends: list[dict[str, Any]]) -> dict[str, Any]:
    """The end of all: a failure of one is one of the whole."""
    told = {name: value for end in ends for name, value in end.items()}
    return told | {"status": "error" if any(end["status"] == "error" for end in ends) else "ok"}


def _line(event: _Event, seq: int, data: dict[str, Any]) -> bytes:
    return encode_clean(msgspec.to_builtins(msgspec.structs.replace(event, seq=seq, data=data)))


def _manifest(manifests: list[CaptureManifest], count: int, events: bytes) -> CaptureManifest:
    """That of the first, about all."""
    first = manifests[0]
    failed = [manifest for manifest in manifests if manifest.status == "error"]
    status: RunStatus = "error" if failed else "ok"
    warnings = [warning for manifest in manifests for warning in manifest.warnings or ()]
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

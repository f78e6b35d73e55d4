"""Joins what several processes recorded of one run into one capture.

The first process owns the capture directory; each other one records a capture of its own into a part of it.
When all have ended, the events are merged by time and numbered again; ids and lanes are distinct already.
The first process and the gateway decide how the run ended. The exit of another process does not count: the
process that started it has dealt with that.
"""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from hashlib import sha256
from heapq import merge
from pathlib import Path
from typing import Final
from urllib.parse import quote, unquote

import msgspec

from reenact.canonical import encode_clean
from reenact.errors import FormatError, StoreError
from reenact.formats.capture import (
    EVENT_LOG_NAME,
    INTERRUPTED,
    NO_MODEL,
    CaptureManifest,
    RunStart,
    RunStatus,
    read_manifest,
    write_manifest,
)
from reenact.formats.event import RunEvent, read_event
from reenact.formats.record import ABSENT
from reenact.lane_name import ROOT, LaneName
from reenact.recorder.recovery import recover
from reenact.store.durable import unwritable
from reenact.store.journal import scan
from reenact.store.paths import inside
from reenact.store.reader import CaptureReader
from reenact.store.rundir import MANIFEST, NEW_EVENTS, PARTS, RunDir, RunState

_PROCESS: Final = "process-"
_JOINED: Final = "joinedParts"
"""In the manifest from the moment the parts' events are in the log until the parts are removed."""


def part_of(path: Path, name: str) -> Path:
    """Where the part *name* of the capture in *path* is recorded."""
    return path / PARTS / name


def process_part(path: Path, root: str) -> Path:
    """Where a process other than the first is recorded; *root* is its first lane."""
    return part_of(path, f"{_PROCESS}{quote(root, safe='')}")


def join_parts(path: Path, shared: Sequence[str] = ()) -> bool:
    """Merge the parts of the finished capture in *path* into it, except parts that are still open.

    *shared* says in which order processes took what they share, for the last event.

    Safe to kill at any moment and to repeat: one atomic step replaces the log and names the parts it holds,
    so no event is merged twice. Returns whether there was anything to do.
    """
    run = RunDir.open(path)
    if run.state in (RunState.OPEN, RunState.INTERRUPTED):
        raise StoreError(f"{path}: is {run.state.value}; complete it with: reenact recover {path}")
    with run.lock():
        was_left = _finish_join(run)
        whole = _read_manifest(run)
        folders = sorted(folder for folder in path.glob(f"{PARTS}/*") if folder.is_dir())
        parts = [log for folder in folders if (log := _read_part(folder, whole)) is not None]
        if not parts and not shared:
            return was_left
        main = _Log.of(CaptureReader(path))
        if (end := main.first_of("run_end")) is not None:
            end.order += shared
        missing = [part for part in parts if not main.includes(part)]
        for part in missing:
            for digest in (blobs := RunDir(part.path).blobs):
                run.blobs.put(blobs.get(digest))
        logs = [main, *missing]
        lines = [*_renumber(logs)]
        _commit(run, lines, _manifest(logs), [part.path.name for part in parts])
        _finish_join(run)
    return True


def mend_doubled(path: Path) -> int:
    """Remove the events that an earlier version merged into the log of *path* twice; returns how many."""
    run = RunDir.open(path)
    with run.lock():
        reader = CaptureReader(path)
        began = reader.event(1) if len(reader) else None
        if not isinstance(began, RunStart) or not (began.data.processes or began.data.upstreams):
            return 0  # it never had parts
        log = _Log.of(reader)
        removed = log.drop_doubles()
        if removed:
            warnings = list(dict.fromkeys(log.manifest.warnings or ())) or ABSENT
            manifest = msgspec.structs.replace(log.manifest, warnings=warnings)
            lines = [
                _line(event, seq, log.with_new_numbers(event.data)) for seq, event in enumerate(log.events, 1)
            ]
            _commit(run, lines, manifest, [])
            _finish_join(run)
    return removed


def _commit(run: RunDir, lines: list[bytes], manifest: CaptureManifest, joined: list[str]) -> None:
    """Replace the log of a finished run atomically: writing the manifest is the commit."""
    events = b"".join(line + b"\n" for line in lines)
    run.write_file(NEW_EVENTS, events)
    integrity = msgspec.structs.replace(manifest.integrity, eventsHash=f"sha256:{sha256(events).hexdigest()}")
    manifest = msgspec.structs.replace(
        manifest,
        eventCount=len(lines),
        eventLogPath=NEW_EVENTS,
        integrity=integrity,
        extra=manifest.extra | {_JOINED: joined},
    )
    run.replace_manifest(write_manifest(manifest))


def _finish_join(run: RunDir) -> bool:
    """Remove the merged parts and rename the new log; returns whether there was anything to do."""
    manifest = _read_manifest(run)
    joined = manifest.extra.get(_JOINED, [])
    for name in joined:
        _remove(inside(run.path, f"{PARTS}/{name}"))
    if manifest.eventLogPath == NEW_EVENTS:
        with run.open_events() as stream:
            run.write_file(EVENT_LOG_NAME, stream.read())
        run.write_transcript()
        extra = {name: value for name, value in manifest.extra.items() if name != _JOINED}
        manifest = msgspec.structs.replace(manifest, eventLogPath=EVENT_LOG_NAME, extra=extra)
        run.replace_manifest(write_manifest(manifest))
    return run.remove_leftovers(PARTS) or bool(joined)


def _remove(folder: Path) -> None:
    try:
        if folder.exists():
            shutil.rmtree(folder)
    except OSError as error:
        raise unwritable(folder, error) from error


def _read_manifest(run: RunDir) -> CaptureManifest:
    return read_manifest(run.read_manifest(), file=str(run.path / MANIFEST))


def _read_part(folder: Path, whole: CaptureManifest) -> _Log | None:
    """Read the part in *folder*, recovered if its process was killed; ``None`` while it is open."""
    if not RunDir(folder).is_capture:
        return _Log(folder, msgspec.structs.replace(whole, **_CUT_OFF), _read_whole_lines(folder))
    state = RunDir.open(folder).state
    if state is RunState.INTERRUPTED:
        recover(folder)
    return _Log.of(CaptureReader(folder)) if state is not RunState.OPEN else None


_CUT_OFF: Final = {"status": "error", "error": INTERRUPTED, "warnings": ABSENT, "model": NO_MODEL}
"""The end of a part whose manifest is lost; its other fields are those of the whole run."""


def _read_whole_lines(folder: Path) -> list[bytes]:
    file = inside(folder, EVENT_LOG_NAME)
    if not file.exists():
        return []
    with file.open("rb") as stream:
        return stream.read(scan(file).size_bytes).splitlines()


class _Log:
    """The log of one process or of the gateway."""

    def __init__(self, path: Path, manifest: CaptureManifest, lines: Iterable[bytes]) -> None:
        self.path = path
        self.manifest = manifest
        self.events = [read_event(line) for line in lines]
        name = path.name
        self.root = unquote(name.removeprefix(_PROCESS)) if name.startswith(_PROCESS) else None
        """The first lane of a process other than the first."""
        self.numbers = {0: 0, 1: 1}
        """The new number of each event, for references to it."""

    @classmethod
    def of(cls, reader: CaptureReader) -> _Log:
        return cls(reader.path, reader.manifest, reader.lines())

    def includes(self, part: _Log) -> bool:
        """Whether this log holds the events of *part* already: earlier versions left that when killed."""
        prints = Counter(_content(event) for event, _ in part.inner_events())
        return bool(prints) and prints <= Counter(_content(event) for event, _ in self.inner_events())

    def drop_doubles(self) -> int:
        """Remove the events of parts that were merged more than once; returns how many.

        A call is made once, so a second copy shows how often all events of its process were merged.
        """
        counts = Counter(map(_content, self.events))
        times: dict[str, int] = {}
        process_of_call: dict[str, LaneName] = {}
        for event in self.events:
            call_id, lane = event.data.get("callId"), event.data.get("lane")
            if isinstance(call_id, str) and isinstance(lane, str):
                process = LaneName(lane).process
                process_of_call[call_id] = process
                times[process] = max(times.get(process, 1), counts[_content(event)])
        kept: list[RunEvent] = []
        numbers: dict[bytes, list[int]] = {}
        for event in self.events:
            content, lane = _content(event), event.data.get("lane")
            made_by = process_of_call.get(str(event.data.get("callId")), LaneName())
            process = LaneName(lane).process if isinstance(lane, str) else made_by
            places = numbers.setdefault(content, [])
            if len(places) < max(1, counts[content] // times.get(process, 1)):
                kept.append(event)
                places.append(len(kept))
            self.numbers[event.seq] = places[-1]
        removed = len(self.events) - len(kept)
        self.events = kept
        return removed

    def with_new_numbers(self, data: dict[str, object]) -> dict[str, object]:
        """*data* of one of its events with references to the new numbers."""
        if "opened" not in data:
            return data
        number = data["opened"]
        if not isinstance(number, int) or number not in self.numbers:
            file = str(self.path / EVENT_LOG_NAME)
            raise FormatError(f"a stream opened at event {number}, which is not there", file=file)
        return data | {"opened": self.numbers[number]}

    @property
    def has_end(self) -> bool:
        return self.root in (None, ROOT)

    def first_of(self, event_type: str) -> RunEvent | None:
        return next((event for event in self.events if event.type == event_type), None)

    def inner_events(self) -> Iterator[tuple[RunEvent, _Log]]:
        return ((event, self) for event in self.events if event.type not in ("run_start", "run_end"))

    def process(self) -> dict[str, object]:
        start = self.first_of("run_start")
        data = start.data if start is not None else {}
        known = {name: data[name] for name in ("argv", "pids") if name in data}
        return known | {"ended": self.first_of("run_end") is not None}


def _renumber(logs: list[_Log]) -> Iterator[bytes]:
    """Merge the events by time, with one start and, where every deciding log has one, one end."""
    starts = [start for log in logs if (start := log.first_of("run_start"))]
    began = {name: value for start in starts[::-1] for name, value in start.data.items()}
    processes = {log.root: log.process() for log in logs if log.root is not None}
    yield _line(starts[0], 1, began | ({"processes": processes} if processes else {}))
    seq = 1
    for event, log in merge(*(log.inner_events() for log in logs), key=lambda pair: pair[0].ts):
        seq += 1
        log.numbers[event.seq] = seq
        yield _line(event, seq, log.with_new_numbers(event.data))
    ends = [log.first_of("run_end") for log in logs if log.has_end]
    known = [end for end in ends if end is not None]
    if len(known) == len(ends):
        last = max(known, key=lambda end: end.ts)
        last.ts = max(log.events[-1].ts for log in logs)
        wrote = [
            place for log in logs if (end := log.first_of("run_end")) for place in end.data.get("wrote", ())
        ]
        yield _line(last, seq + 1, _merge_ends([end.data for end in known], wrote))


def _merge_ends(ends: list[dict[str, object]], wrote: list[str]) -> dict[str, object]:
    """One end for all: an error of one is an error of the run, and *wrote* lists the files of all."""
    fields = {name: value for end in ends for name, value in end.items()}
    if wrote:
        fields["wrote"] = list(dict.fromkeys(wrote))
    return fields | {"status": "error" if any(end["status"] == "error" for end in ends) else "ok"}


def _content(event: RunEvent) -> bytes:
    """The content of *event* without its position in a log."""
    data = {name: value for name, value in event.data.items() if name != "opened"}
    return encode_clean([event.type, event.ts, data])


def _line(event: RunEvent, seq: int, data: dict[str, object]) -> bytes:
    return encode_clean(msgspec.to_builtins(msgspec.structs.replace(event, seq=seq, data=data)))


def _manifest(logs: list[_Log]) -> CaptureManifest:
    """The first manifest with the facts of all; :func:`_commit` adds those of the log."""
    manifests = [log.manifest for log in logs]
    first = manifests[0]
    failed = [log.manifest for log in logs if log.has_end and log.manifest.status == "error"]
    status: RunStatus = "error" if failed else "ok"
    warnings = [warning for manifest in manifests for warning in manifest.warnings or ()]
    warnings += [
        f"process {log.root} ended with an error: {log.manifest.error}"
        for log in logs
        if not log.has_end and log.manifest.status == "error"
    ]
    models = [manifest.model for manifest in manifests if manifest.model != NO_MODEL]
    stand_ins = [
        manifest.standIns for manifest in manifests if manifest.standIns and manifest.standIns.sources
    ]
    return msgspec.structs.replace(
        first,
        completedAt=max(manifest.completedAt or 0 for manifest in manifests),
        model=models[0] if models else NO_MODEL,
        status=status,
        error=failed[0].error if failed else ABSENT,
        warnings=warnings or ABSENT,
        standIns=stand_ins[0] if stand_ins else first.standIns,
    )

"""Merging a recording with its update.

Every process of the run reports which recorded calls were made again, and which events are new. Repeated
events keep their lines, new ones are inserted where they happened. A line changes only if its number or lane
changes, if the request that it refers to is gone, if it now lists what tasks did before a call that is gone,
or, for the first line, if the run has other processes.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

from reenact._version import __version__
from reenact.canonical import JsonValue, encode_clean
from reenact.errors import UsageError
from reenact.formats.capture import (
    BLOB_THRESHOLD_BYTES,
    NO_MODEL,
    CaptureManifest,
    CaptureSeed,
    seed_codec,
    with_own_digest,
    write_manifest,
)
from reenact.formats.event import read_head
from reenact.formats.record import ABSENT
from reenact.gateway.lane import is_below
from reenact.lane_name import ROOT
from reenact.recorder.sink import Ending, finished_manifest
from reenact.replayer.source import RecordedCall, ReplaySource
from reenact.store.blobs import BlobStore
from reenact.store.place import discard, put_in_place, staging_folder
from reenact.store.reader import CaptureReader, blobs_in_line
from reenact.store.rundir import BLOBS, RunDir
from reenact.volatile.places import mark_places
from reenact.workspace.history import blobs_below, tree_in_line

_LAST: Final = sys.maxsize
"""Sorts after all other events at a position."""
_decode: Final = msgspec.json.Decoder().decode
_REFERENCE: Final = b'"$ref"'


class NewEvent(msgspec.Struct, frozen=True):
    """An event that was not recorded before."""

    line: str
    behind: int
    """The recorded event that it follows."""
    instead: int = 0
    """The recorded event that it replaces; 0 for none."""

    @property
    def has_tree(self) -> bool:
        """Whether it has a tree of the files."""
        return tree_in_line(self.line.encode()) is not None


class ProcessResult(msgspec.Struct, frozen=True, kw_only=True):
    """The result of one process of a repeated run, or of its gateway."""

    root: str | None
    """The first lane; ``None`` for the gateway."""
    end: str
    """Its ``run_end``."""
    ending: Ending
    argv: list[str] = []

    @property
    def has_acted(self) -> bool:
        """Whether it made any call."""
        raise NotImplementedError

    @property
    def has_end(self) -> bool:
        return self.root in (None, ROOT)


class UpdateResult(ProcessResult, frozen=True, kw_only=True):
    """The result of updating one process."""

    kept: dict[int, str]
    """The recorded calls that were made again, by number, with their new lanes."""
    new: list[NewEvent]
    """In order."""
    has_other_results: bool = False
    """Whether tasks had other results than recorded."""
    places: Mapping[str, str] = msgspec.field(default_factory=dict)
    """The folders of the run, if it worked in recorded files."""

    @property
    def has_acted(self) -> bool:
        return bool(self.kept) or not all(new.has_tree for new in self.new)


class _NewEvent(NamedTuple):
    """One event of the new run."""

    line: bytes
    old_seq: int = 0
    new: tuple[int, int] = (0, 0)
    """The index of the process and the number of the event there; both 0 for a recorded event."""
    may_be_elsewhere: bool = False
    """Whether a recorded one may stand at another place among the others than it did."""


class _Time(NamedTuple):
    """The time of an event that is new, or stands elsewhere."""

    ts_ms: float
    later_ms: int
    """So much later it really was."""
    latency_ms: float | None
    """How long the call took that it ends, where the times do not tell."""


class UpdatedCapture:
    """The new recording of the run in *place*, written beside it until it is accepted."""

    def __init__(self, place: Path) -> None:
        self._place = place.absolute()
        self._reader = CaptureReader(self._place)
        if self._reader.manifest.fork is not ABSENT:
            raise UsageError(f"{place}: is a fork, and is what it is; fork its parent again instead")
        self.seed = seed_for_repetition(self._reader.manifest)
        self.folder = staging_folder(self._place)
        self.blobs = BlobStore(self.folder / BLOBS)
        """For payloads of new events of all processes."""
        self.manifest: CaptureManifest | None = None
        self.is_changed = False
        self.answered = 0
        """The number of recorded calls that were made again."""
        self.asked = 0
        """The number of new events, without the start and the end of the run."""

    def open(self) -> None:
        """Create the folder of the new recording."""
        self._run = RunDir.create(self.folder, seed_codec.to_bytes(self.seed) + b"\n")

    def merge(self, results: Sequence[UpdateResult], workspace_end: str | None = None) -> CaptureManifest:
        """Write the new recording from the results of all processes; *workspace_end* is the final tree."""
        lines = _renumber(list(_Merge(self._reader, self._run, self.seed, results).events()))
        before, ending = self._reader.manifest, merge_endings(results)
        is_by_exit_status = before.error is not ABSENT and before.error.startswith("exit status ")
        is_ended_alike = ending.status == before.status or (ending.status == "ok" and is_by_exit_status)
        is_other = lines != list(self._reader.lines()) or any(result.has_other_results for result in results)
        has_other_files = workspace_end is not None and workspace_end != before.workspaceEnd
        self.is_changed = is_other or not is_ended_alike or has_other_files
        if is_other and self.seed.standIns is not ABSENT:
            # Recorded deadlines and task results belong to the old run.
            stand_ins = msgspec.structs.replace(self.seed.standIns, deadlines=ABSENT)
            self.seed = msgspec.structs.replace(self.seed, standIns=stand_ins)
        self.answered = sum(len(result.kept) for result in results)
        self.asked = sum(not new.has_tree for result in results for new in result.new)
        trees = [workspace_end]
        for line in lines:
            self._run.journal.write(line)
            for digest in blobs_in_line(line):
                self._copy_blob(digest)
            trees.append(tree_in_line(line))
        copied: set[str] = set()
        for tree in filter(None, trees):
            for digest in blobs_below(self._read_blob, tree, copied):
                self._copy_blob(digest)
        self._run.journal.close()
        ending = msgspec.structs.replace(ending, workspace_end=workspace_end)
        if ending.model == NO_MODEL:
            ending = msgspec.structs.replace(ending, model=before.model)
        manifest = finished_manifest(self.seed, ending, len(lines), self._run.journal.sha256_hex)
        self.manifest = with_own_digest(
            msgspec.structs.replace(
                manifest, completedAt=self._end_ms(lines[-1]), updatedAt=ending.completed_at_ms
            )
        )
        self._run.finish(write_manifest(self.manifest))
        return self.manifest

    def _end_ms(self, last_line: bytes) -> float:
        """When the run was over, in the times of its events."""
        if last_line == self._reader.line(len(self._reader)) and self._reader.manifest.completedAt:
            return self._reader.manifest.completedAt
        return read_head(last_line).ts

    def _read_blob(self, digest: str) -> bytes:
        return (self._reader.blob if self.blobs.find_missing([digest]) else self.blobs.get)(digest)

    def _copy_blob(self, digest: str) -> None:
        if self.blobs.find_missing([digest]):
            self.blobs.put(self._reader.blob(digest))

    def accept(self) -> None:
        """Replace the old recording in one step, unless they are equal."""
        if self.is_changed:
            put_in_place(self.folder, self._place)
        else:
            self.discard()

    def discard(self) -> None:
        """Delete the new recording and keep the old one."""
        discard(self.folder)


def seed_for_repetition(before: CaptureManifest) -> CaptureSeed:
    """The seed of a run that continues the run of *before*."""
    return CaptureSeed(
        version=1,
        captureId=before.captureId,
        runId=before.runId,
        createdAt=before.createdAt,
        mode="capture",
        model=NO_MODEL,
        eventLogPath=before.eventLogPath,
        redaction=before.redaction,
        producer=f"reenact {__version__}",
        blobThresholdBytes=before.blobThresholdBytes,
        standIns=before.standIns,
        volatile=before.volatile,
        extra=before.extra,
    )


def merge_start(recorded: bytes, results: Sequence[ProcessResult]) -> bytes:
    """The start of the run: the *recorded* one, unless the processes differ."""
    event = _decode(recorded)
    before: dict[str, object] = event["data"].get("processes", {})
    acted = {result.root: result.argv for result in results if result.root is not None and result.has_acted}
    now = {root: marked for root, marked in before.items() if root in acted}
    for root, argv in acted.items():
        if root != ROOT and root not in now:
            now[root] = {"argv": argv, "ended": True}
    if now == before:
        return recorded
    event["data"] = {key: value for key, value in event["data"].items() if key != "processes"}
    event["data"] |= {"processes": now} if now else {}
    return encode_clean(event)


def unknown_places(
    places: Iterable[Mapping[str, str]], known: Mapping[str, str], manifest: CaptureManifest
) -> dict[str, str]:
    """The names (``cwd/1f0c…``) by which a replay recognizes *places* that are not *known*."""
    marks = [mark_places(each, manifest.redaction.salt_bytes) for each in places]
    return {
        f"{name.partition('/')[0]}/{mark[:8]}": mark
        for marked in marks
        for name, mark in marked.items()
        if mark not in known.values()
    }


def merge_ends(results: Sequence[ProcessResult]) -> dict[str, JsonValue]:
    """The event that ends the run of all processes."""
    ends = [_decode(result.end.encode()) for result in results if result.has_end]
    ends = ends or [_decode(result.end.encode()) for result in results]
    data = {name: value for end in ends for name, value in end["data"].items()}
    every = [_decode(result.end.encode())["data"] for result in results]
    wrote = dict.fromkeys(place for end in every for place in end.get("wrote", ()))
    data |= {"wrote": list(wrote)} if wrote else {}
    is_failed = any(end["data"]["status"] == "error" for end in ends)
    data["status"] = "error" if is_failed else "ok"
    end: dict[str, Any] = ends[-1]
    return end | {"data": data}


def merge_endings(results: Sequence[ProcessResult]) -> Ending:
    """The end of the whole run: a failure of the first process or of the gateway is its failure."""
    telling = [result.ending for result in results if result.has_end] or [result.ending for result in results]
    failed = [ending for ending in telling if ending.status == "error"]
    models = [result.ending.model for result in results if result.ending.model != NO_MODEL]
    return Ending(
        "error" if failed else "ok",
        max(result.ending.completed_at_ms for result in results),
        models[0] if models else NO_MODEL,
        failed[0].error if failed else None,
        tuple(dict.fromkeys(warning for result in results for warning in result.ending.warnings)),
    )


class _Merge:
    """Puts recorded and new events in the order of the new run."""

    def __init__(
        self, reader: CaptureReader, run: RunDir, seed: CaptureSeed, results: Sequence[UpdateResult]
    ) -> None:
        self._reader = reader
        self._run = run
        self._seed = seed
        self._results = results
        self._source = ReplaySource(reader.path)
        self._has_new = False
        self._kept = {seq: lane for result in results for seq, lane in result.kept.items()}
        self._keep_unasked()
        self._derived = dict(self._derived_events())
        self._trees = {
            encode_clean(_decode(line)["data"]): seq
            for seq in range(2, len(reader) + 1)
            if tree_in_line(line := reader.line(seq)) is not None
        }
        """The recorded events with a tree, by tree."""

    def _keep_unasked(self) -> None:
        """Keep recorded events that nothing asks for: traffic beside the run, programs in answered calls."""
        calls = self._source.calls
        gone = [call for call in calls if call.seq not in self._kept and call.name.startswith("process/")]
        self._kept |= {call.seq: call.lane for call in self._source.beside}
        for call in calls:
            if is_below(call.lane) and not any(one.seq < call.seq < one.outcome_seq for one in gone):
                self._kept[call.seq] = call.lane

    def _derived_events(self) -> Iterator[tuple[tuple[str, str], int]]:
        for seq in range(1, len(self._reader) + 1):
            if b'"derived":true' in (line := self._reader.line(seq)):
                event = _decode(line)
                yield (event["type"], str(event["data"].get("callId"))), seq

    def events(self) -> list[_NewEvent]:
        """All events in order, with the recorded start."""
        events: list[tuple[tuple[int, int, int], _NewEvent]] = []
        calls = [*self._source.calls, *self._source.beside]
        dropped = {call.call_id for call in calls if call.seq not in self._kept}
        for call in calls:
            if call.seq in self._kept:
                lane = self._kept[call.seq]
                for seq in {call.seq, call.outcome_seq} - {0}:
                    line = _move(self._reader.line(seq), call, lane if seq == call.seq else None)
                    events.append(((seq, 0, 0), _NewEvent(self._whole(line, dropped), old_seq=seq)))
        for index, result in enumerate(self._results, 1):
            places = _Places(result, len(self._reader))
            for number, new in enumerate(result.new, 1):
                line = new.line.encode()
                if new.has_tree:
                    continue
                if (same := self._find_equal_derived(line)) is not None:
                    places.reached = max(places.reached, same)
                    events.append(((same, 0, 0), _NewEvent(self._reader.line(same), old_seq=same)))
                else:
                    place = places.of(new), index, number
                    events.append((place, _NewEvent(line, new=(index, number))))
                    self._has_new = True
            events += self._tree_events(result, index, places)
        events.sort(key=lambda each: each[0])
        end = ((len(self._reader), 0, 0), self._end())
        return [self._start(), *self._with_acts_of_gone_events([*events, end])]

    def _with_acts_of_gone_events(
        self, events: Sequence[tuple[tuple[int, int, int], _NewEvent]]
    ) -> Iterator[_NewEvent]:
        """Add the acts that the recorded events list that are gone to the events that follow them."""
        kept = {event.old_seq for _, event in events}
        gone = deque(seq for seq in range(2, len(self._reader)) if seq not in kept)
        for (place, _, _), event in events:
            acts: list[str] = []
            while gone and gone[0] <= place:
                acts += _decode(self._reader.line(gone.popleft())).get("order", ())
            if acts:
                value = _decode(event.line)
                value["order"] = [*acts, *value.get("order", ())]
                event = event._replace(line=encode_clean(value))
            yield event

    def _tree_events(
        self, result: UpdateResult, index: int, places: _Places
    ) -> Iterator[tuple[tuple[int, int, int], _NewEvent]]:
        """The trees of a process, at the positions of the calls around them."""
        for number, new in enumerate(result.new, 1):
            if not new.has_tree:
                continue
            line = new.line.encode()
            place = places.of_tree(new, index, number)
            same = self._trees.get(encode_clean(_decode(line)["data"]))
            if same is not None:
                yield place, _NewEvent(self._reader.line(same), old_seq=same, may_be_elsewhere=True)
            else:
                yield place, _NewEvent(line, new=(index, number))

    def _find_equal_derived(self, line: bytes) -> int | None:
        """The equal recorded event that was derived from model traffic, if there is one."""
        if b'"derived":true' not in line:
            return None
        event = _decode(line)
        seq = self._derived.get((event["type"], str(event["data"].get("callId"))))
        if seq is None or _decode(self._reader.line(seq))["data"] != event["data"]:
            return None
        return seq

    def _start(self) -> _NewEvent:
        line = merge_start(self._reader.line(1), self._results)
        new = [result.places for result in self._results]
        if self._has_new and any(new):
            event = _decode(line)
            known = event["data"].get("places", {})
            event["data"]["places"] = known | unknown_places(new, known, self._reader.manifest)
            line = encode_clean(event)
        return _NewEvent(line, old_seq=1)

    def _end(self) -> _NewEvent:
        """The recorded end, if this run ended the same."""
        old = self._reader.line(len(self._reader))
        end = merge_ends(self._results)
        was = _decode(old)
        if was["type"] == "run_end" and was["data"] == end["data"]:
            return _NewEvent(old, old_seq=len(self._reader))
        return _NewEvent(encode_clean(end))

    def _whole(self, line: bytes, dropped: set[str | None]) -> bytes:
        """Write a request in full if the one that it refers to is gone."""
        if _REFERENCE not in line or not dropped.intersection(find_referred_calls(_decode(line)["data"])):
            return line
        event = _decode(line)
        whole = encode_clean(self._reader.resolve(event["data"]["request"]))
        if len(whole) > int(self._seed.blobThresholdBytes or BLOB_THRESHOLD_BYTES):
            event["data"]["request"] = {"$blob": self._run.blobs.put(whole), "bytes": len(whole)}
        else:
            event["data"]["request"] = msgspec.Raw(whole)
        return encode_clean(event)


class _Places:
    """The positions of the new events of a process: each after its predecessor in its task and call.

    The events of a new process come at the end.
    """

    def __init__(self, result: UpdateResult, count: int) -> None:
        self._first = 1 if result.root == ROOT else min(result.kept, default=count) - 1
        self.reached = 1
        """Events derived from traffic follow this recorded event."""
        self._lanes: dict[str, int] = {}
        self._calls: dict[str, int] = {}
        self._lane_of: dict[str, str] = {}
        self._latest: dict[str, int] = {}
        """The position of the latest event of a call."""

    def of_tree(self, new: NewEvent, index: int, number: int) -> tuple[int, int, int]:
        """The position of a tree: directly after the outcome that it follows, or before the call."""
        details = _decode(new.line.encode())["data"]["details"]
        after = [self._latest[call] for call in details.get("after", ()) if call in self._latest]
        before = [self._calls[call] for call in details.get("before", ()) if call in self._calls]
        if after or before:
            return max(after) if after else min(before), index, number
        return new.behind, 0 if "after" in details else _LAST, number

    def of(self, new: NewEvent) -> int:
        data = _decode(new.line.encode())["data"]
        call_id, parent = data.get("callId", ""), data.get("parent", "")
        lane = data.get("lane") or self._lane_of.get(call_id, "")
        place = max(
            new.instead or max(new.behind, self._first, self.reached),
            self._lanes.get(lane, 0),
            self._calls.get(call_id, 0),
            self._calls.get(parent, 0),
        )
        self._lane_of.setdefault(call_id, lane)
        self._calls.setdefault(call_id, place)
        self._latest[call_id] = place
        self._lanes[lane] = place
        return place


def _move(line: bytes, call: RecordedCall, lane: str | None) -> bytes:
    if lane is None or lane == call.lane:
        return line
    event = _decode(line)
    event["data"]["lane"] = lane
    return encode_clean(event)


def _continue_times(events: Sequence[_NewEvent]) -> dict[int, _Time]:
    """By place: the times of new events, which go on from the recorded ones and end before the next of them.

    New events that follow each other keep their distances as far as there is room.
    """
    heads = [read_head(event.line) for event in events]
    latest_ms, bound_ms = heads[0].ts, float("inf")
    bounds_ms = [bound_ms] * len(events)
    for place in reversed(range(len(events))):
        bounds_ms[place] = bound_ms
        if events[place].old_seq and not events[place].may_be_elsewhere:
            bound_ms = min(bound_ms, heads[place].ts)
    times: dict[int, _Time] = {}
    began: dict[str, tuple[float, float]] = {}
    """By a new call's id: its time, and when it really was."""
    before_ms: float | None = None
    """When the event before really was, where it is new."""
    for place, (event, head) in enumerate(zip(events, heads, strict=True)):
        if event.old_seq:
            ts_ms = head.ts
            if event.may_be_elsewhere and not latest_ms <= ts_ms <= bounds_ms[place]:
                ts_ms = max(latest_ms, min(ts_ms, bounds_ms[place]))
                times[place] = _Time(ts_ms, 0, None)
            before_ms = None
        else:
            distance_ms = 0 if before_ms is None else max(0, head.ts - before_ms)
            ts_ms = max(latest_ms, min(latest_ms + distance_ms, bounds_ms[place]))
            before_ms = head.ts if before_ms is None else max(before_ms, head.ts)
            asked = began.setdefault(head.data.callId, (ts_ms, head.ts)) if head.data.callId else (0, 0)
            latency_ms = max(0, head.ts - asked[1])
            is_stated = not head.data.callId or ts_ms - asked[0] == latency_ms
            times[place] = _Time(ts_ms, max(0, int(head.ts - ts_ms)), None if is_stated else latency_ms)
        latest_ms = max(latest_ms, ts_ms)
    return times


def _renumber(events: list[_NewEvent]) -> list[bytes]:
    numbers: dict[tuple[int, int], int] = {}
    for seq, event in enumerate(events, 1):
        numbers[(0, event.old_seq) if event.old_seq else event.new] = seq
    called: dict[str, int] = {}
    times = _continue_times(events)
    return [
        _number(_with_time(event, times.get(seq - 1)), seq, numbers, called)
        for seq, event in enumerate(events, 1)
    ]


def _with_time(event: _NewEvent, time: _Time | None) -> _NewEvent:
    if time is None:
        return event
    value = _decode(event.line) | {"ts": time.ts_ms}
    if time.later_ms:
        value["laterMs"] = time.later_ms
    if time.latency_ms is not None:
        value["data"]["latencyMs"] = time.latency_ms
    return event._replace(line=encode_clean(value))


def _number(event: _NewEvent, seq: int, numbers: dict[tuple[int, int], int], called: dict[str, int]) -> bytes:
    """The line of *event* with the number *seq*; adds new calls to *called*, the positions of calls."""
    value: dict[str, Any] = _decode(event.line)
    data = value["data"]
    began = called.setdefault(data["callId"], seq) if "callId" in data else seq
    opened = None
    if "opened" in data:
        # New events are numbered from the start of their process.
        place = (0, data["opened"]) if event.old_seq else (event.new[0], data["opened"] - 1)
        opened = max(began, numbers.get(place, 0))
    if seq == event.old_seq == value["seq"] and opened in (None, data.get("opened")):
        return event.line
    value["seq"] = seq
    if opened is not None:
        data["opened"] = opened
    return encode_clean(value)


def find_referred_calls(value: object) -> set[str]:
    """The calls to whose requests *value* refers."""
    if isinstance(value, list):
        return set().union(*map(find_referred_calls, value))
    if not isinstance(value, dict):
        return set()
    own = {value["$ref"]["call"]} if isinstance(value.get("$ref"), dict) else set()
    return own.union(*map(find_referred_calls, value.values()))


def read_results(texts: Iterable[str]) -> list[UpdateResult]:
    """Read the results that processes have written."""
    return [msgspec.json.decode(text, type=UpdateResult) for text in texts]

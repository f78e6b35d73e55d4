"""A recording and what its update came to, merged into one.

Every process of the run tells which recorded calls came again, and which events are new. Recorded events that
came again keep their lines, new ones stand where they happened. A line changes only where its number or its
lane does, where the request that it repeats is gone, or, the first one, where the run has other processes.
"""

from __future__ import annotations

import sys
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
    write_manifest,
)
from reenact.formats.record import ABSENT
from reenact.gateway.lane import is_below
from reenact.lane_name import ROOT
from reenact.recorder.sink import Ending, finished_manifest
from reenact.replayer.source import RecordedCall, ReplaySource
from reenact.store.blobs import BlobStore
from reenact.store.place import discard, put_in_place, staging_folder
from reenact.store.reader import CaptureReader, blobs_in
from reenact.store.rundir import BLOBS, RunDir
from reenact.volatile.places import mark_places
from reenact.workspace.history import blobs_below, tree_in_event

_LAST: Final = sys.maxsize
"""Behind all other events at a place."""
_decode: Final = msgspec.json.Decoder().decode
_REFERENCE: Final = b'"$ref"'


class NewEvent(msgspec.Struct, frozen=True):
    """An event that was not recorded before."""

    line: str
    behind: int
    """The recorded event behind which it stands."""
    instead: int = 0
    """The recorded event whose place it takes; 0 where it takes none."""

    @property
    def tells_tree(self) -> bool:
        """Whether it says how the files are."""
        return _tells_tree(self.line.encode())


class Half(msgspec.Struct, frozen=True, kw_only=True):
    """What one process of a run came to that is made again, or the gateway."""

    root: str | None
    """Its first lane; ``None`` for the gateway."""
    end: str
    """Its ``run_end``."""
    ending: Ending
    argv: list[str] = []

    @property
    def has_acted(self) -> bool:
        """Whether it made any call."""
        raise NotImplementedError

    @property
    def tells_the_end(self) -> bool:
        return self.root in (None, ROOT)


class UpdateHalf(Half, frozen=True, kw_only=True):
    """What the update of one process came to."""

    kept: dict[int, str]
    """By number: the recorded calls that came again, and their lanes now."""
    new: list[NewEvent]
    """In their order."""
    has_other_results: bool = False
    """Whether tasks came to something else than they had."""
    places: Mapping[str, str] = msgspec.field(default_factory=dict)
    """The folders that the run had of its own, where it worked among recorded files."""

    @property
    def has_acted(self) -> bool:
        return bool(self.kept) or not all(new.tells_tree for new in self.new)


class _Event(NamedTuple):
    """One event of the new run."""

    line: bytes
    old_seq: int = 0
    new: tuple[int, int] = (0, 0)
    """Which process's, and its number there; for a recorded one both are 0."""


class UpdatedCapture:
    """The new recording of the run in *place*, made beside it until it is accepted."""

    def __init__(self, place: Path) -> None:
        self._place = place.absolute()
        self._reader = CaptureReader(self._place)
        if self._reader.manifest.fork is not ABSENT:
            raise UsageError(f"{place}: is a fork, and is what it is; fork its parent again instead")
        self.seed = seed_again(self._reader.manifest)
        self.folder = staging_folder(self._place)
        self.blobs = BlobStore(self.folder / BLOBS)
        """Where payloads of new events go, from any process."""
        self.manifest: CaptureManifest | None = None
        self.is_changed = False
        self.answered = 0
        """How many recorded calls came again."""
        self.asked = 0
        """How many events are new; the start and the end of the run are not counted."""

    def open(self) -> None:
        """Begin to make it."""
        self._run = RunDir.create(self.folder, seed_codec.to_bytes(self.seed) + b"\n")

    def merge(self, halves: Sequence[UpdateHalf], workspace_end: str | None = None) -> CaptureManifest:
        """Write the new recording, of what all processes came to; *workspace_end* is the tree at its end."""
        lines = _renumber(list(_Merge(self._reader, self._run, self.seed, halves).events()))
        before, ending = self._reader.manifest, ending_of(halves)
        is_by_exit_status = before.error is not ABSENT and before.error.startswith("exit status ")
        is_ended_alike = ending.status == before.status or (ending.status == "ok" and is_by_exit_status)
        is_other = lines != list(self._reader.lines()) or any(half.has_other_results for half in halves)
        has_other_files = workspace_end is not None and workspace_end != before.workspaceEnd
        self.is_changed = is_other or not is_ended_alike or has_other_files
        if is_other and self.seed.standIns is not ABSENT:
            # What the recording says of deadlines, and of what tasks came to, is of another run.
            stand_ins = msgspec.structs.replace(self.seed.standIns, deadlines=ABSENT)
            self.seed = msgspec.structs.replace(self.seed, standIns=stand_ins)
        self.answered = sum(len(half.kept) for half in halves)
        self.asked = sum(not new.tells_tree for half in halves for new in half.new)
        trees = [workspace_end]
        for line in lines:
            self._run.journal.write(line)
            if b'"$blob"' in line:
                for digest in blobs_in(_decode(line)["data"]):
                    self._copy_blob(digest)
            if b'"workspace"' in line:
                trees.append(tree_in_event(_decode(line)))
        copied: set[str] = set()
        for tree in filter(None, trees):
            for digest in blobs_below(self._read_blob, tree, copied):
                self._copy_blob(digest)
        self._run.journal.close()
        ending = msgspec.structs.replace(ending, workspace_end=workspace_end)
        if ending.model == NO_MODEL:
            ending = msgspec.structs.replace(ending, model=before.model)
        self.manifest = finished_manifest(self.seed, ending, len(lines), self._run.journal.sha256_hex)
        self._run.finish(write_manifest(self.manifest))
        return self.manifest

    def _read_blob(self, digest: str) -> bytes:
        return (self._reader.blob if self.blobs.find_missing([digest]) else self.blobs.get)(digest)

    def _copy_blob(self, digest: str) -> None:
        if self.blobs.find_missing([digest]):
            self.blobs.put(self._reader.blob(digest))

    def accept(self) -> None:
        """Put it in the place of the old one, in one step, unless they are equal."""
        if self.is_changed:
            put_in_place(self.folder, self._place)
        else:
            self.discard()

    def discard(self) -> None:
        """Leave the old recording as it is."""
        discard(self.folder)


def seed_again(before: CaptureManifest) -> CaptureSeed:
    """What a run begins with that goes on where the one of *before* is."""
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


def merge_start(recorded: bytes, halves: Sequence[Half]) -> bytes:
    """The start of the run, which is the *recorded* one unless it has other processes now."""
    event = _decode(recorded)
    before: dict[str, Any] = event["data"].get("processes", {})
    acted = {half.root: half.argv for half in halves if half.root is not None and half.has_acted}
    now = {root: marked for root, marked in before.items() if root in acted}
    for root, argv in acted.items():
        if root != ROOT and root not in now:
            now[root] = {"argv": argv, "ended": True}
    if now == before:
        return recorded
    event["data"] = {key: value for key, value in event["data"].items() if key != "processes"}
    event["data"] |= {"processes": now} if now else {}
    return encode_clean(event)


def _tells_tree(line: bytes) -> bool:
    """Whether the line of an event tells how the files are."""
    return b'"workspace"' in line and tree_in_event(_decode(line)) is not None


def unknown_places(
    places: Iterable[Mapping[str, str]], known: Mapping[str, str], manifest: CaptureManifest
) -> dict[str, str]:
    """By what a replay recognises *places* that are not *known*, as ``cwd/1f0c…`` and the like."""
    marks = [mark_places(each, manifest.redaction.salt_bytes) for each in places]
    return {
        f"{name.partition('/')[0]}/{mark[:8]}": mark
        for marked in marks
        for name, mark in marked.items()
        if mark not in known.values()
    }


def merge_ends(halves: Sequence[Half]) -> dict[str, JsonValue]:
    """The event that ends the run of all processes."""
    ends = [_decode(half.end.encode()) for half in halves if half.tells_the_end]
    ends = ends or [_decode(half.end.encode()) for half in halves]
    data = {name: value for end in ends for name, value in end["data"].items()}
    every = [_decode(half.end.encode())["data"] for half in halves]
    wrote = dict.fromkeys(place for end in every for place in end.get("wrote", ()))
    data |= {"wrote": list(wrote)} if wrote else {}
    is_failed = any(end["data"]["status"] == "error" for end in ends)
    data["status"] = "error" if is_failed else "ok"
    end: dict[str, Any] = ends[-1]
    return end | {"data": data}


def ending_of(halves: Sequence[Half]) -> Ending:
    """How the whole ended: a failure of the first process, or behind the gateway, is one of the whole."""
    telling = [half.ending for half in halves if half.tells_the_end] or [half.ending for half in halves]
    failed = [ending for ending in telling if ending.status == "error"]
    models = [half.ending.model for half in halves if half.ending.model != NO_MODEL]
    return Ending(
        "error" if failed else "ok",
        max(half.ending.completed_at_ms for half in halves),
        models[0] if models else NO_MODEL,
        failed[0].error if failed else None,
        tuple(dict.fromkeys(warning for half in halves for warning in half.ending.warnings)),
    )


class _Merge:
    """Puts recorded and new events in the order of the new run."""

    def __init__(
        self, reader: CaptureReader, run: RunDir, seed: CaptureSeed, halves: Sequence[UpdateHalf]
    ) -> None:
        self._reader = reader
        self._run = run
        self._seed = seed
        self._halves = halves
        self._source = ReplaySource(reader.path)
        self._has_new = False
        self._kept = {seq: lane for half in halves for seq, lane in half.kept.items()}
        self._keep_unasked()
        self._derived = dict(self._derived_events())
        self._trees = {
            encode_clean(_decode(line)["data"]): seq
            for seq in range(2, len(reader) + 1)
            if _tells_tree(line := reader.line(seq))
        }
        """The recorded events that tell trees, by what they say."""

    def _keep_unasked(self) -> None:
        """Traffic beside the run is none of it; programs below a call that is answered do not run again."""
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

    def events(self) -> list[_Event]:
        """All of them; the start is the recorded one."""
        events: list[tuple[tuple[int, int, int], _Event]] = []
        calls = [*self._source.calls, *self._source.beside]
        dropped = {call.call_id for call in calls if call.seq not in self._kept}
        for call in calls:
            if call.seq in self._kept:
                lane = self._kept[call.seq]
                for seq in {call.seq, call.outcome_seq} - {0}:
                    line = _move(self._reader.line(seq), call, lane if seq == call.seq else None)
                    events.append(((seq, 0, 0), _Event(self._whole(line, dropped), old_seq=seq)))
        for index, half in enumerate(self._halves, 1):
            places = _Places(half, len(self._reader))
            for number, new in enumerate(half.new, 1):
                line = new.line.encode()
                if new.tells_tree:
                    continue
                if (same := self._same_derived(line)) is not None:
                    places.reached = max(places.reached, same)
                    events.append(((same, 0, 0), _Event(self._reader.line(same), old_seq=same)))
                else:
                    place = places.of(new), index, number
                    events.append((place, _Event(line, new=(index, number))))
                    self._has_new = True
            events += self._told_trees(half, index, places)
        ordered = [event for _, event in sorted(events, key=lambda each: each[0])]
        return [self._start(), *ordered, self._end()]

    def _told_trees(
        self, half: UpdateHalf, index: int, places: _Places
    ) -> Iterator[tuple[tuple[int, int, int], _Event]]:
        """The trees that a process told, where the calls are before or after which it did."""
        for number, new in enumerate(half.new, 1):
            if not new.tells_tree:
                continue
            line = new.line.encode()
            place = places.of_tree(new, index, number)
            same = self._trees.get(encode_clean(_decode(line)["data"]))
            if same is not None:
                yield place, _Event(self._reader.line(same), old_seq=same)
            else:
                yield place, _Event(line, new=(index, number))

    def _same_derived(self, line: bytes) -> int | None:
        """The recorded event that was read from the model traffic as this one was, if it says the same."""
        if b'"derived":true' not in line:
            return None
        event = _decode(line)
        seq = self._derived.get((event["type"], str(event["data"].get("callId"))))
        if seq is None or _decode(self._reader.line(seq))["data"] != event["data"]:
            return None
        return seq

    def _start(self) -> _Event:
        line = merge_start(self._reader.line(1), self._halves)
        new = [half.places for half in self._halves]
        if self._has_new and any(new):
            event = _decode(line)
            known = event["data"].get("places", {})
            event["data"]["places"] = known | unknown_places(new, known, self._reader.manifest)
            line = encode_clean(event)
        return _Event(line, old_seq=1)

    def _end(self) -> _Event:
        """The recorded end, where this run came to the same."""
        old = self._reader.line(len(self._reader))
        end = merge_ends(self._halves)
        was = _decode(old)
        if was["type"] == "run_end" and was["data"] == end["data"]:
            return _Event(old, old_seq=len(self._reader))
        return _Event(encode_clean(end))

    def _whole(self, line: bytes, dropped: set[str | None]) -> bytes:
        """A request that repeats one which is gone says all of it by itself."""
        if _REFERENCE not in line or not dropped.intersection(referred_calls(_decode(line)["data"])):
            return line
        event = _decode(line)
        whole = encode_clean(self._reader.resolve(event["data"]["request"]))
        if len(whole) > int(self._seed.blobThresholdBytes or BLOB_THRESHOLD_BYTES):
            event["data"]["request"] = {"$blob": self._run.blobs.put(whole), "bytes": len(whole)}
        else:
            event["data"]["request"] = msgspec.Raw(whole)
        return encode_clean(event)


class _Places:
    """Where the new events of a process stand: each behind what it follows in its own task and call.

    Those of a process that is new itself stand at the end.
    """

    def __init__(self, half: UpdateHalf, count: int) -> None:
        self._first = 1 if half.root == ROOT else min(half.kept, default=count) - 1
        self.reached = 1
        """Behind this recorded event stands what was read from the traffic since."""
        self._lanes: dict[str, int] = {}
        self._calls: dict[str, int] = {}
        self._lane_of: dict[str, str] = {}
        self._latest: dict[str, int] = {}
        """Where the latest event of a call is."""

    def of_tree(self, new: NewEvent, index: int, number: int) -> tuple[int, int, int]:
        """Where a tree is told: right behind the outcome after which it was so, or before the call."""
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


def _renumber(events: list[_Event]) -> list[bytes]:
    numbers: dict[tuple[int, int], int] = {}
    for seq, event in enumerate(events, 1):
        numbers[(0, event.old_seq) if event.old_seq else event.new] = seq
    called: dict[str, int] = {}
    return [_number(event, seq, numbers, called) for seq, event in enumerate(events, 1)]


def _number(event: _Event, seq: int, numbers: dict[tuple[int, int], int], called: dict[str, int]) -> bytes:
    """The line of *event* as number *seq*; *called* knows where calls began, and learns it."""
    value: dict[str, Any] = _decode(event.line)
    data = value["data"]
    began = called.setdefault(data["callId"], seq) if "callId" in data else seq
    opened = None
    if "opened" in data:
        # A new event counts the start of its process as the first one.
        place = (0, data["opened"]) if event.old_seq else (event.new[0], data["opened"] - 1)
        opened = max(began, numbers.get(place, 0))
    if seq == event.old_seq == value["seq"] and opened in (None, data.get("opened")):
        return event.line
    value["seq"] = seq
    if opened is not None:
        data["opened"] = opened
    return encode_clean(value)


def referred_calls(value: object) -> set[str]:
    """The calls whose requests *value* repeats."""
    if isinstance(value, list):
        return set().union(*map(referred_calls, value))
    if not isinstance(value, dict):
        return set()
    own = {value["$ref"]["call"]} if isinstance(value.get("$ref"), dict) else set()
    return own.union(*map(referred_calls, value.values()))


def halves_from(texts: Iterable[str]) -> list[UpdateHalf]:
    """What processes left behind."""
    return [msgspec.json.decode(text, type=UpdateHalf) for text in texts]

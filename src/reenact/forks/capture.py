"""Writing a fork as a capture: the shared events by reference, and the new events in order."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from hashlib import sha256
from itertools import count
from pathlib import Path
from typing import Any, Final

import msgspec

from reenact.canonical import JsonValue, digest_of_bytes, encode_clean
from reenact.errors import StoreError
from reenact.forks.change import ForkChange, ForkPlan
from reenact.forks.order import moved_acts, without_acts
from reenact.forks.recorder import Happening
from reenact.formats.capture import (
    BLOB_THRESHOLD_BYTES,
    NO_MODEL,
    CaptureManifest,
    CaptureSeed,
    Fork,
    ForkParent,
    ForkPause,
    ForkShares,
    seed_codec,
    with_own_digest,
    write_manifest,
)
from reenact.formats.record import ABSENT
from reenact.recorder.eventlog import MOST_ACTS, count_acts
from reenact.recorder.sink import finished_manifest
from reenact.replayer.source import ReplaySource
from reenact.run.capturing import Identity
from reenact.run.merging import (
    ProcessResult,
    find_referred_calls,
    merge_endings,
    merge_ends,
    merge_start,
    seed_for_repetition,
    unknown_places,
)
from reenact.run.redact import make_redactor
from reenact.store.blobs import BlobStore
from reenact.store.forked import PORTION_LINES, RunIds, ids_changer, portion_changer
from reenact.store.place import become_folder, discard, refuse_taken, staging_folder
from reenact.store.reader import CaptureReader, blobs_in_line
from reenact.store.rundir import BLOBS, RunDir
from reenact.workspace.history import WorkspaceHistory, blobs_below, tree_in_event, tree_in_line

_decode: Final = msgspec.json.Decoder().decode
_OWN: Final = ("run_start", "run_end")
"""Events that the fork has once, whichever process reports them."""


class ForkResult(ProcessResult, frozen=True, kw_only=True):
    """The result of forking one process."""

    happenings: list[Happening]
    taken: list[int]
    """The event numbers of the recorded calls that were answered again."""
    is_other: bool
    """Whether it has left the recording."""
    changed_line: str | None = None
    nearest: int = 0
    live: int = 0
    notes: tuple[str, ...] = ()
    places: Mapping[str, str] = msgspec.field(default_factory=dict)
    """The folders of this run."""

    @property
    def has_acted(self) -> bool:
        return bool(self.taken or self.nearest or self.live)


def refuse_place(place: Path, parent: Path) -> None:
    """Raise if a fork of *parent* cannot be written to *place*."""
    refuse_taken(place)
    target = Path(os.path.realpath(place))
    if target.is_relative_to(os.path.realpath(parent)):
        raise StoreError(f"{place}: is inside the capture that is forked; name another folder")


class ForkedCapture:
    """The capture of a fork of *parent*, written beside *place* until it is complete."""

    def __init__(
        self,
        parent: Path,
        place: Path,
        plan: ForkPlan,
        reader: CaptureReader,
        *,
        standalone: bool = False,
        secrets: Sequence[str] = (),
    ) -> None:
        """*secrets* are redacted in the description of the change, as in every event."""
        self._secrets = secrets
        self._parent = parent.absolute()
        self.place = Path(os.path.realpath(place)) if place.is_symlink() else place.absolute()
        self._plan = plan
        self._is_standalone = standalone
        refuse_place(place, parent)
        self.reader = reader
        identity = Identity.new()
        self.seed = _seed_of(self.reader.manifest, identity.capture_id, identity.run_id)
        self.folder = staging_folder(self.place)
        self.blobs = BlobStore(self.folder / BLOBS)
        """For payloads of new events of all processes."""
        self.manifest: CaptureManifest | None = None

    def open(self) -> None:
        """Create the folder of the fork."""
        self._run = RunDir.create(self.folder, seed_codec.to_bytes(self.seed) + b"\n")

    def write(
        self,
        results: Sequence[ForkResult],
        source: ReplaySource | None = None,
        workspace_end: str | None = None,
    ) -> CaptureManifest:
        """Write it from the results of all processes; :meth:`accept` moves it to its place.

        *source* is the parent's, if it is open already. *workspace_end* is the tree of the files at the end,
        if the run worked in recorded files.
        """
        before = self.reader.manifest
        ids = RunIds(self.seed.captureId, self.seed.runId)
        was = RunIds(before.captureId, before.runId)
        source = source or ReplaySource(self._parent)
        end = merge_ends(results)
        start = merge_start(self.reader.line(1), results)
        is_same = self._is_same(source, results, start, end) and self._has_same_files(results, workspace_end)
        shared = len(self.reader) if is_same else self._plan.shared
        own_events = _Suffix(self.reader, self.blobs, results, shared, end, self.seed.createdAt)
        suffix = [] if is_same else own_events.lines()
        moved = moved_acts(happening for result in results for happening in result.happenings)
        if moved:
            again = range(min(moved), shared + 1)
            suffix = [*(without_acts(self.reader.line(seq), moved.get(seq, [])) for seq in again), *suffix]
            shared = again[0] - 1
        is_whole = self._is_standalone or start != self.reader.line(1)
        suffix = list(map(ids_changer(was, ids), suffix))
        digest = sha256()
        own = []
        with_ids = portion_changer(was, ids)
        for lines, number in self._portions(start, shared):
            portion = with_ids(lines, number)
            digest.update(portion)
            if is_whole:
                own += portion.split(b"\n")[:-1]
        for line in suffix:
            digest.update(line + b"\n")
        own += suffix
        for line in own:
            self._run.journal.write(line)
        self._run.journal.close()
        self._keep_blobs(own, workspace_end, is_whole=is_whole)
        ending = msgspec.structs.replace(merge_endings(results), workspace_end=workspace_end)
        if ending.model == NO_MODEL:
            ending = msgspec.structs.replace(ending, model=before.model)
        manifest = finished_manifest(self.seed, ending, shared + len(suffix), digest.hexdigest())
        fork = self._fork(source, results, shared, own_events.pause, is_whole=is_whole, is_same=is_same)
        self.manifest = with_own_digest(msgspec.structs.replace(manifest, fork=fork))
        self._run.finish(write_manifest(self.manifest), has_transcript=is_whole)
        return self.manifest

    def _portions(self, start: bytes, shared: int) -> Iterator[tuple[bytes, int]]:
        """The lines of the shared events, with *start* as the first, and their number."""
        yield start + b"\n", 1
        for first in range(2, shared + 1, PORTION_LINES):
            last = min(shared, first + PORTION_LINES - 1)
            yield self.reader.text(first, last), last - first + 1

    def _is_same(
        self, source: ReplaySource, results: Sequence[ForkResult], start: bytes, end: dict[str, Any]
    ) -> bool:
        """Whether the fork did exactly what its parent did."""
        if any(result.is_other or result.changed_line for result in results) or start != self.reader.line(1):
            return False
        taken = {seq for result in results for seq in result.taken}
        if any(call.seq not in taken for call in source.calls):
            return False
        last = _decode(self.reader.line(len(self.reader)))
        was, now = last["data"], end["data"]
        if "entered" in was and set(was["entered"]) <= set(now.get("entered", ())):
            now = now | {"entered": was["entered"]}  # the program may have written more files, by chance
        return bool(last["type"] == "run_end" and was == now)

    def _has_same_files(self, results: Sequence[ForkResult], workspace_end: str | None) -> bool:
        """Whether the files always equalled those of the parent."""
        if workspace_end is None:
            return True
        history = WorkspaceHistory(self.reader)
        known = {state.tree for state in history.states}
        trees = {
            tree
            for result in results
            for happening in result.happenings
            if (tree := tree_in_line(happening.line.encode()))
        }
        return workspace_end == history.end_tree and trees <= known | {workspace_end}

    def _fork(
        self,
        source: ReplaySource,
        results: Sequence[ForkResult],
        shared: int,
        pause: ForkPause | None,
        *,
        is_whole: bool,
        is_same: bool,
    ) -> Fork:
        above = self.reader.manifest.fork
        pauses = [] if above is ABSENT or above.pauses is ABSENT else list(above.pauses)
        if pause is not None:
            pauses = [*(each for each in pauses if each.afterSeq < pause.afterSeq), pause]
        ordered = ABSENT if above is ABSENT else above.ordered
        if not is_same and ordered is not ABSENT and ordered >= shared:
            ordered = ABSENT  # known from all events after them
        change = self._plan.change
        return Fork(
            parent=ForkParent(
                captureId=self.reader.manifest.captureId,
                path=os.path.relpath(self._parent.resolve(), self.place.parent.resolve() / self.place.name),
                events=shared,
                eventHash=digest_of_bytes(self.reader.line(shared)),
                eventsHash=f"sha256:{sha256(self.reader.view(shared)).hexdigest()}",
                logHash=self.reader.manifest.integrity.eventsHash,
            ),
            at=self._plan.at,
            stored="whole" if is_whole else "suffix",
            shares=count_shares(source, self._plan, results),
            change=self._redact_change(change) if change.is_any and not is_same else ABSENT,
            ordered=ordered,
            places=self._new_places(results) or ABSENT,
            pauses=pauses or ABSENT,
        )

    def _new_places(self, results: Sequence[ForkResult]) -> dict[str, str]:
        """The folders of this run and of its parents that the first run did not have."""
        above = self.reader.manifest.fork
        before = dict(above.places or {}) if above is not ABSENT else {}
        first = _decode(self.reader.line(1))["data"].get("places") or {}
        return before | unknown_places(
            [result.places for result in results], first | before, self.reader.manifest
        )

    def _redact_change(self, change: ForkChange) -> Any:
        redaction = self.reader.manifest.redaction
        salt = redaction.salt_bytes
        text = encode_clean(msgspec.to_builtins(change))
        return _decode(make_redactor(redaction.profile, self._secrets, salt).redact_json(text))

    def _keep_blobs(self, lines: Sequence[bytes], workspace_end: str | None, *, is_whole: bool) -> None:
        """Copy the blobs that its own events need."""
        used = {digest for line in lines for digest in blobs_in_line(line)}
        own = {*self.blobs}

        def read(digest: str) -> bytes:
            return self.blobs.get(digest) if digest in own else self.reader.blob(digest)

        seen: set[str] = set()
        for tree in filter(None, [*map(tree_in_line, lines), workspace_end]):
            # A tree of the parent is complete there.
            used |= {*blobs_below(read, tree, seen, lambda digest: is_whole or digest in own)}
        for digest in own - used:
            self.blobs.path_of(digest).unlink()
        if is_whole:
            for digest in self.blobs.find_missing(sorted(used)):
                self.blobs.put(self.reader.blob(digest))

    def accept(self) -> None:
        """Move it to its place, which must still be free."""
        refuse_taken(self.place)
        try:
            self.place.parent.mkdir(parents=True, exist_ok=True)
            become_folder(self.folder, self.place)
        except OSError as error:
            raise StoreError(f"{self.place}: cannot be written: {error.strerror}") from error

    def discard(self) -> None:
        """Delete it; does nothing after :meth:`accept`."""
        discard(self.folder)


def seed_of_fork(parent: Path, capture_id: str, run_id: str) -> CaptureSeed:
    """The seed of the fork with these ids, the same in all its processes."""
    return _seed_of(CaptureReader(parent).manifest, capture_id, run_id)


def _seed_of(parent: CaptureManifest, capture_id: str, run_id: str) -> CaptureSeed:
    now_ms = time.time_ns() // 1_000_000
    return msgspec.structs.replace(
        seed_for_repetition(parent), captureId=capture_id, runId=run_id, createdAt=now_ms, extra={}
    )


def count_shares(source: ReplaySource, plan: ForkPlan, results: Sequence[ForkResult]) -> ForkShares:
    """Count how calls were answered, without the changed one."""
    taken = {seq for result in results for seq in result.taken}
    at = source.by_seq.get(plan.at)
    if plan.change.changes_outcome or (plan.changes_requests and at is not None and at.type == "llm_request"):
        taken -= {plan.at}
    ends = [call.outcome_seq for call in source.calls if call.seq in taken]
    prefix = len([end for end in ends if 0 < end <= plan.shared])
    return ForkShares(
        prefix=prefix,
        recording=len(ends) - prefix,
        nearest=sum(result.nearest for result in results),
        live=sum(result.live for result in results),
    )


class _Suffix:
    """The events of a fork after those it shares with its parent."""

    def __init__(
        self,
        reader: CaptureReader,
        blobs: BlobStore,
        results: Sequence[ForkResult],
        shared: int,
        end: dict[str, Any],
        created_at_ms: float,
    ) -> None:
        self.pause: ForkPause | None = None
        """The pause between the shared events and these; set by :meth:`lines`."""
        self._created_at_ms = created_at_ms
        self._reader = reader
        self._blobs = blobs
        self._shared = shared
        self._end = end
        self._results = results
        self._threshold_bytes = int(reader.manifest.blobThresholdBytes or BLOB_THRESHOLD_BYTES)
        self._began: dict[str, tuple[int, int]] = {}
        """By call id of a stream: the latest event at its beginning, and the number of the stream."""
        self._openings = count(1)
        self._acts: list[str] = []
        """The acts of tasks since the last event."""
        self._calls: set[str] = set()
        """The calls after the shared events."""

    def _shared_events(self, text: bytes) -> Iterator[dict[str, Any]]:
        return (_decode(line) for line in map(self._reader.line, range(1, self._shared + 1)) if text in line)

    @cached_property
    def _last_opening(self) -> int:
        """The number of streams that began before."""
        return max(
            (event["data"].get("opening", 0) for event in self._shared_events(b'"opening":')), default=0
        )

    @cached_property
    def _derived(self) -> set[bytes]:
        """The events derived from model traffic so far."""
        events = self._shared_events(b'"derived":true')
        return {_identity_of(event) for event in events if event["data"].get("derived") is True}

    @cached_property
    def _shared_calls(self) -> set[str]:
        lines = map(self._reader.line, range(1, self._shared + 1))
        return {_decode(line)["data"].get("callId", "") for line in lines}

    def lines(self) -> list[bytes]:
        """The numbered lines; their times continue those of the shared events."""
        lines: list[bytes] = []
        latest_ms = self._reader.event(self._shared).ts
        for event, at_ms in self._events(lines):
            if at_ms is None:  # it comes at its recorded time
                latest_ms = max(latest_ms, event["ts"])
            else:
                latest_ms = self._continue_time(latest_ms, at_ms, self._shared + len(lines))
            numbered = event | {"seq": self._shared + len(lines) + 1, "ts": latest_ms}
            lines.append(encode_clean(self._write_in_full(numbered)))
        end_ms = self._continue_time(latest_ms, self._end["ts"], self._shared + len(lines))
        end = self._with_order(self._end | {"seq": self._shared + len(lines) + 1, "ts": end_ms})
        lines.append(encode_clean(end))
        return lines

    def _continue_time(self, latest_ms: float, at_ms: float, after_seq: int) -> float:
        """The new time of an event of *at_ms* that follows one of *latest_ms*.

        The first new event follows its predecessor at once, or at its distance from the beginning of the
        fork.
        """
        if self.pause is None:
            began_ms = self._created_at_ms if self._shared == 1 else at_ms
            self.pause = ForkPause(afterSeq=after_seq, ms=max(0, int(began_ms - latest_ms)))
        return max(latest_ms, at_ms - self.pause.ms)

    def _events(self, lines: list[bytes]) -> Iterator[tuple[dict[str, Any], float | None]]:
        """The events in order, each with its time; *lines* are the lines written so far.

        The changed outcome has its recorded time.
        """
        changed = {result.changed_line for result in self._results} - {None}
        changed_by_seq = {_decode(line)["seq"]: line for line in changed if line is not None}
        every = [happening for result in self._results for happening in _sorted_by_time(result.happenings)]
        for happening in sorted(every, key=lambda each: each.at_ns):
            if happening.began:
                opening = self._last_opening + next(self._openings)
                self._began.setdefault(happening.began, (self._shared + len(lines), opening))
                continue
            if happening.act:
                self._acts.append(happening.act)
                continue
            seq = happening.seq
            if 0 < seq <= self._shared:
                continue
            event = _decode(changed_by_seq.get(seq) or happening.line or self._reader.line(seq))
            if event["type"] in _OWN or (event["data"].get("derived") is True and self._is_known(event)):
                continue
            if happening.rounds is not None and seq not in changed_by_seq:
                joined = {} if happening.rounds < 0 else {"joined": happening.rounds}
                event["data"].pop("joined", None)
                event["data"].pop("behind", None)
                event["data"] |= joined
            event = self._with_order(event)
            event.pop("laterMs", None)
            if happening.place is not None:
                event["data"] = _with_place(event["data"], *happening.place)
            self._calls.add(event["data"].get("callId", ""))
            at_ms = None if seq in changed_by_seq else happening.at_ns // 1_000_000
            yield self._with_opening(event, is_new=not seq), at_ms

    def _with_order(self, event: dict[str, Any]) -> dict[str, Any]:
        """*event* with the acts of tasks before it."""
        event.pop("order", None)
        acts, self._acts = self._acts[:MOST_ACTS], []
        return event | {"order": count_acts(acts)} if acts else event

    def _is_known(self, event: dict[str, Any]) -> bool:
        """Whether the log already has this event, derived from model traffic."""
        if "callId" not in event["data"] and tree_in_event(event) is not None:
            return False  # the files may have an earlier state again
        identity = _identity_of(event)
        if identity in self._derived:
            return True
        self._derived.add(identity)
        return False

    def _with_opening(self, event: dict[str, Any], *, is_new: bool) -> dict[str, JsonValue]:
        data = event["data"]
        if "opened" not in data or (not is_new and data["opened"] <= self._shared):
            return event
        opened, opening = self._began.get(data["callId"], (self._shared, self._last_opening))
        return event | {"data": data | {"opened": opened, "opening": opening}}

    def _write_in_full(self, event: dict[str, Any]) -> dict[str, JsonValue]:
        """Write a request in full if the one that it refers to is not in the fork."""
        data = event["data"]
        referred = find_referred_calls(data) - self._calls
        if not referred or referred <= self._shared_calls:
            return event
        whole = encode_clean(self._reader.resolve(data["request"]))
        request: object = msgspec.Raw(whole)
        if len(whole) > self._threshold_bytes:
            request = {"$blob": self._blobs.put(whole), "bytes": len(whole)}
        return event | {"data": data | {"request": request}}


def _with_place(data: dict[str, object], lane: str, within: str) -> dict[str, object]:
    """The data of a call, with its *lane* and the id of the call that contains it, if any."""
    moved = {name: value for name, value in data.items() if name != "parent"} | {"lane": lane}
    return moved | {"parent": within} if within else moved


def _sorted_by_time(happenings: Sequence[Happening]) -> Iterator[Happening]:
    """The same in an order that is safe against clocks that were set back."""
    latest_ns = 0
    for happening in happenings:
        latest_ns = max(latest_ns, happening.at_ns)
        yield msgspec.structs.replace(happening, at_ns=latest_ns)


def _identity_of(event: dict[str, Any]) -> bytes:
    """The identity of an event: a call begins once and ends once, whatever else its data say."""
    return encode_clean([event["type"], event["data"].get("callId") or event["data"]])

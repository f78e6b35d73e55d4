"""A run that is answered from its recording as far as it still matches, and recorded where it does not.

The engine matches first; what misses goes to a recorder. At the end the two are merged: recorded events that
came again keep their lines, new ones stand where they happened. A line changes only where its number or its
lane does, or where the request that it repeats is gone.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Literal, NamedTuple, Self

import msgspec

from reenact import seams
from reenact._version import __version__
from reenact.boundary import ROOT, Call, Instant, Lane, RunMode, Step, entered, process_of
from reenact.canonical import encode_clean
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
from reenact.formats.volatile import VolatileRule
from reenact.recorder.context import CaptureContext
from reenact.recorder.sink import Ending, finished_manifest
from reenact.redaction import Redactor
from reenact.replayer.engine import ReplayEngine
from reenact.replayer.lanes import Key
from reenact.replayer.source import RecordedCall, ReplaySource
from reenact.run.evidence import RunEvidence
from reenact.run.redact import Redact, make_redactor, profile_and_secrets
from reenact.run.rules import project_beside, project_rules
from reenact.run.run import Run
from reenact.seams import probes, stdlib, telemetry
from reenact.seams.stdlib.draws import Draws
from reenact.seams.stdlib.written import Written, watched_by
from reenact.store.place import discard, put_in_place, staging_folder
from reenact.store.reader import blobs_in
from reenact.store.rundir import RunDir
from reenact.values.objects import message_of

_decode: Final = msgspec.json.Decoder().decode
_CALL_ID: Final = re.compile(r"c(\d+)")
_INSIDE: Final = re.compile(r"/(\d+)(.*)")
"""What the lane of something that happened inside a call has behind the call's own."""
_REFERENCE: Final = b'"$ref"'


class Missed(Exception):
    """No recorded call that has not come yet is this one; *instead* is the one that was due."""

    def __init__(self, instead: RecordedCall | None) -> None:
        self.instead = instead
        super().__init__()


class _Placed(NamedTuple):
    """Where a recorded call came again."""

    call: RecordedCall
    lane: str
    ordinal: int


class MatchingFirst(ReplayEngine):
    """A replay that hands what it cannot answer to *recorder*, where it is made and recorded."""

    mode: RunMode = "capture"

    def __init__(
        self,
        source: ReplaySource,
        redactor: Redactor,
        volatile: Iterable[VolatileRule],
        seed: CaptureSeed,
        evidence: RunEvidence,
    ) -> None:
        super().__init__(source, redactor, volatile=volatile, evidence=evidence)
        self.placed: dict[int, _Placed] = {}
        """By the number of its event: the recorded calls that came again."""
        self.is_missed = False
        """Whether any call was not answered from the recording."""
        self._reached_seq = 1
        self._awaited: list[RecordedCall] = []
        self.merge = _Merge(self, seed)
        numbers = (_CALL_ID.fullmatch(call.call_id or "") for call in source.calls)
        last_number = max((int(found[1]) for found in numbers if found), default=0)
        self.recorder = CaptureContext(self.merge, seed, redactor, first_call=last_number + 1)

    def step(self, call: Call, lane: Lane) -> Step:
        try:
            return super().step(call, lane)
        except Missed as missed:
            self._pass_over(missed)
            return self.recorder.step(call, lane)

    def instant(self, instant: Instant, lane: Lane, produce: Callable[[], Any]) -> Any:
        calls = lane.calls
        try:
            return super().instant(instant, lane, produce)
        except Missed as missed:
            self._pass_over(missed)
            lane.calls = calls  # the recorder counts for itself
            return self.recorder.instant(instant, lane, produce)

    def is_live(self, lane: Lane) -> bool:  # noqa: ARG002
        """Nothing is guarded: what misses is made."""
        return True

    def unplaced(self, call: Call) -> None:  # type: ignore[override]
        self.recorder.unplaced(call)

    def stand_in(
        self,
        lane: Lane,
        key: Key,
        request_text: bytes,
        call: Call | None = None,  # noqa: ARG002
    ) -> RecordedCall:
        """An equal call further on in the lane, if there is one; what stands before it is passed over."""
        with self._lock:
            recorded = self._lanes.expected(lane)
            if recorded is None:
                raise Missed(None)
            found = self._nearest.equal(recorded, self.keys(key, request_text))
            if found is None:
                raise Missed(None if recorded.is_loose else recorded.upcoming())
            if lane.recorded is None:
                lane.recorded, recorded.is_bound = recorded, True
            if not recorded.is_loose:
                recorded.pass_by(found)
            self._note(found, lane)
            return found

    def _may_still_come(self, lane: Lane, key: Key, request_text: bytes) -> bool:  # noqa: ARG002
        """What is due in another task is not waited for: what cannot be matched now is made."""
        return False

    def _find(self, lane: Lane, key: Key, request_text: bytes) -> RecordedCall | None:
        recorded = super()._find(lane, key, request_text)
        if recorded is not None:
            self._note(recorded, lane)
        return recorded

    def _note(self, recorded: RecordedCall, lane: Lane) -> None:
        with self._lock:
            self.placed[recorded.seq] = _Placed(recorded, lane.placed(self.source.root), lane.calls)
            self._reached_seq = max(self._reached_seq, recorded.seq)
            self._awaited.append(recorded)

    def _pass_over(self, missed: Missed) -> None:
        """Nobody waits for a call whose place another has taken; should it come after all, it is answered."""
        self.is_missed = True
        if missed.instead is not None:
            self.turns.happened([missed.instead.seq, missed.instead.outcome_seq])

    def reached_seq(self) -> int:
        """The last event of the recording that has happened again."""
        with self._lock:
            came = [call for call in self._awaited if self.turns.has_happened(call.outcome_seq)]
            self._awaited = [call for call in self._awaited if call not in came]
            self._reached_seq = max([self._reached_seq, *(call.outcome_seq for call in came)])
            return self._reached_seq

    def kept_calls(self) -> dict[int, tuple[RecordedCall, str]]:
        """By number: every recorded call that is part of the new run, and its lane there."""
        kept: dict[int, tuple[RecordedCall, str]] = {}
        for placed in self.placed.values():
            self._keep(placed.call, placed.lane, str(placed.ordinal), kept)
        return kept

    def _keep(
        self, call: RecordedCall, lane: str, ordinal: str | None, kept: dict[int, tuple[RecordedCall, str]]
    ) -> None:
        """*ordinal* is the call's own in its lane, where that may be another than in the recording."""
        kept[call.seq] = call, lane
        for nested in self._nested.get(call.call_id or "", ()):
            behind = _INSIDE.fullmatch(nested.lane.removeprefix(call.lane))
            inside = nested.lane if behind is None else f"{lane}/{ordinal or behind[1]}{behind[2]}"
            self._keep(nested, inside, None, kept)


class _Event(NamedTuple):
    """One event of the new run."""

    line: bytes
    old_seq: int = 0
    new_seq: int = 0
    """Its number among the recorded, or among the new ones; the other is 0."""


class _Merge:
    """Where new events go, and where they are put among the recorded ones; a sink."""

    def __init__(self, engine: MatchingFirst, seed: CaptureSeed) -> None:
        self._engine = engine
        self._seed = seed
        self._lines: list[tuple[int, bytes]] = []
        """New events, each with the recorded one behind which it stands."""
        self._place = Path(engine.source.reader.path)
        self.folder = staging_folder(self._place)
        self.is_changed = False

    def start(self, seed: CaptureSeed) -> None:
        self._run = RunDir.create(self.folder, seed_codec.to_bytes(seed) + b"\n")

    def append(self, event: bytes) -> None:
        self._lines.append((self._engine.reached_seq(), event))

    def put_blob(self, data: bytes) -> str:
        return self._run.blobs.put(data)

    @property
    def count(self) -> int:
        return len(self._lines)

    def finalize(self, ending: Ending) -> CaptureManifest:
        reader = self._engine.source.reader
        lines = self._renumbered(list(self._events()))
        before = reader.manifest
        self.is_changed = lines != list(reader.lines()) or ending.status != before.status
        for line in lines:
            self._run.journal.write(line)
            if b'"$blob"' in line:
                for digest in blobs_in(_decode(line)["data"]):
                    self._copy_blob(digest)
        self._run.journal.close()
        if ending.model == NO_MODEL:
            ending = msgspec.structs.replace(ending, model=before.model)
        manifest = finished_manifest(self._seed, ending, len(lines), self._run.journal.sha256_hex)
        self._run.finish(write_manifest(manifest))
        return manifest

    def _copy_blob(self, digest: str) -> None:
        if self._run.blobs.missing([digest]):
            self._run.blobs.put(self._engine.source.reader.blob(digest))

    def _events(self) -> Iterable[_Event]:
        """Recorded and new events in the order of the new run; the start is the recorded one."""
        reader = self._engine.source.reader
        kept = self._engine.kept_calls()
        events: list[tuple[tuple[int, int], _Event]] = [((1, 0), _Event(reader.line(1), old_seq=1))]
        dropped = {call.call_id for call in self._engine.source.calls if call.seq not in kept}
        for call, lane in kept.values():
            for seq in {call.seq, call.outcome_seq} - {0}:
                line = self._moved(reader.line(seq), call, lane if seq == call.seq else None)
                events.append(((seq, 0), _Event(self._whole(line, dropped), old_seq=seq)))
        for number, (behind, line) in enumerate(self._lines[1:-1], 2):
            events.append(((behind, number), _Event(line, new_seq=number)))
        ordered = [event for _, event in sorted(events, key=lambda each: each[0])]
        return [*ordered, self._end()]

    def _end(self) -> _Event:
        """The recorded end, where this run came to the same."""
        reader = self._engine.source.reader
        old, new = reader.line(len(reader)), self._lines[-1][1]
        was, now = _decode(old), _decode(new)
        if (was["type"], was["data"]) == (now["type"], now["data"]):
            return _Event(old, old_seq=len(reader))
        return _Event(new, new_seq=len(self._lines))

    def _moved(self, line: bytes, call: RecordedCall, lane: str | None) -> bytes:
        if lane is None or lane == call.lane:
            return line
        event = _decode(line)
        event["data"]["lane"] = lane
        return encode_clean(event)

    def _whole(self, line: bytes, dropped: set[str | None]) -> bytes:
        """A request that repeats one which is gone says all of it by itself."""
        if _REFERENCE not in line or not dropped.intersection(_referred(_decode(line)["data"])):
            return line
        event = _decode(line)
        whole = encode_clean(self._engine.source.reader.resolved(event["data"]["request"]))
        if len(whole) > int(self._seed.blobThresholdBytes or BLOB_THRESHOLD_BYTES):
            event["data"]["request"] = {"$blob": self._run.blobs.put(whole), "bytes": len(whole)}
        else:
            event["data"]["request"] = msgspec.Raw(whole)
        return encode_clean(event)

    def _renumbered(self, events: list[_Event]) -> list[bytes]:
        numbers = {
            "old": {event.old_seq: seq for seq, event in enumerate(events, 1)},
            "new": {event.new_seq: seq for seq, event in enumerate(events, 1)},
        }
        called: dict[str, int] = {}
        return [
            _numbered(event, seq, numbers["old" if event.old_seq else "new"], called)
            for seq, event in enumerate(events, 1)
        ]


def _numbered(event: _Event, seq: int, numbers: dict[int, int], called: dict[str, int]) -> bytes:
    """The line of *event* as number *seq*; *called* knows where calls began, and learns it."""
    value: dict[str, Any] = _decode(event.line)
    data = value["data"]
    began = called.setdefault(data["callId"], seq) if "callId" in data else seq
    opened = max(began, numbers.get(data["opened"], 0)) if "opened" in data else None
    if seq == event.old_seq and opened in (None, data.get("opened")):
        return event.line
    value["seq"] = seq
    if opened is not None:
        data["opened"] = opened
    return encode_clean(value)


def _referred(value: Any) -> set[str]:
    """The calls whose requests *value* repeats."""
    if isinstance(value, list):
        return set().union(*map(_referred, value))
    if not isinstance(value, dict):
        return set()
    own = {value["$ref"]["call"]} if isinstance(value.get("$ref"), dict) else set()
    return own.union(*map(_referred, value.values()))


class UpdateRun(Run):
    """See the module's docstring; :meth:`accept` puts what came of it in the recording's place."""

    mode: RunMode = "capture"

    def __init__(
        self,
        path: str | Path,
        *,
        redact: Redact = None,
        volatile: Iterable[VolatileRule] = (),
        accepts_at_end: bool = False,
    ) -> None:
        """Where it *accepts_at_end*, a block that ends well replaces the recording; no other does."""
        super().__init__()
        self._accepts_at_end = accepts_at_end
        source = ReplaySource(path, beside_hosts=project_beside(Path.cwd()))
        if any(process_of(call.lane) != ROOT for call in source.calls):
            raise UsageError(f"{path}: several programs were recorded in it; record it anew")
        source.reader.check_blobs(source.blob_digests())
        before = source.manifest()
        _, values = profile_and_secrets(redact)
        salt = before.redaction.salt
        redactor = make_redactor(
            before.redaction.profile, values, bytes.fromhex(salt) if salt is not ABSENT else b""
        )
        seed = CaptureSeed(
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
        self._place = Path(path)
        self._evidence = RunEvidence("none", draws=Draws())
        rules = [*project_rules(Path.cwd()), *volatile]
        self._engine = MatchingFirst(source, redactor, rules, seed, self._evidence)
        self._written = Written()
        self._stand_ins = before.standIns or stdlib.NOTHING
        self.warnings = self._engine.recorder.warnings
        self._open = ExitStack()

    @property
    def context(self) -> MatchingFirst:
        return self._engine

    @property
    def folder(self) -> Path:
        """Where the new recording is until it is accepted."""
        return self._engine.merge.folder

    @property
    def answered(self) -> int:
        """How many recorded calls came again."""
        return len(self._engine.kept_calls())

    @property
    def asked(self) -> int:
        """How many events are new; the start and the end of the run are not counted."""
        return self._engine.merge.count - 2

    @property
    def is_changed(self) -> bool:
        """Whether the recording is another one now; known after the run."""
        return self._engine.merge.is_changed

    def __enter__(self) -> Self:
        self._engine.recorder.start()
        for attached in self.attachments():
            self._open.enter_context(attached)
        self._engine.recorder.record_event("run_start", {})
        self._evidence.begin(time.time())
        return self

    def attachments(self) -> Iterable[AbstractContextManager[Any]]:
        """What is put into this process so that its calls come to us."""
        yield seams.attached()
        yield telemetry.beside_hosts(project_beside(Path.cwd()))
        yield stdlib.attached(self._stand_ins, self._engine)
        yield probes.asked_by(self._engine, lambda host, port: True)  # noqa: ARG005
        yield watched_by(self._written)
        yield entered(self._engine)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._open.close()
        self._engine.turns.close()
        status: Literal["ok", "error"] = "ok" if error is None else "error"
        message = None if error is None else f"{type(error).__name__}: {message_of(error)}".removesuffix(": ")
        self.manifest = self._engine.recorder.finalize(
            status, message, self.final_output, self.confidence, self._written.left_behind()
        )
        if self._accepts_at_end:
            is_good = error is None and self.manifest is not None and self.manifest.status == "ok"
            (self.accept if is_good else self.discard)()

    def accept(self) -> None:
        """Put the new recording in the place of the old one, in one step, unless they are equal."""
        if self.is_changed:
            put_in_place(self.folder, self._place)
        else:
            self.discard()

    def discard(self) -> None:
        """Leave the old recording as it is."""
        discard(self.folder)

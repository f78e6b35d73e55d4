"""A run that is answered from its recording where it matches, and recorded where it does not.

The engine matches first; a call that misses goes to a recorder. At the end both are merged.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from time import time
from types import TracebackType
from typing import Any, Final, Literal, NamedTuple, Self

import msgspec

from reenact import seams
from reenact.boundary import A, Call, Instant, Lane, RunMode, Step, enter_context
from reenact.errors import StoreError, UsageError
from reenact.formats.capture import CaptureManifest, CaptureSeed
from reenact.formats.volatile import VolatileRule
from reenact.gateway.lane import LANE, is_below
from reenact.lane_name import ROOT, LaneName
from reenact.process_state import hosts_beside
from reenact.recorder.context import CaptureContext
from reenact.recorder.eventlog import ProcessNames, last_call_number
from reenact.recorder.sink import Ending
from reenact.redaction import Redactor
from reenact.replayer.engine import ReplayEngine
from reenact.replayer.guard import run_unguarded
from reenact.replayer.lanes import Key
from reenact.replayer.source import LaneTest, RecordedCall, ReplaySource
from reenact.run.capturing import without_places
from reenact.run.evidence import RunEvidence
from reenact.run.merging import NewEvent, UpdatedCapture, UpdateResult, seed_for_repetition
from reenact.run.redact import Redact, make_redactor, profile_and_secrets
from reenact.run.rules import project_beside, project_rules
from reenact.run.run import Run
from reenact.run.zone import zone_of_run
from reenact.seams import probes, stdlib
from reenact.seams.entered import ExecutedFiles
from reenact.seams.stdlib.draws import Draws
from reenact.seams.stdlib.places import workspace_known
from reenact.seams.stdlib.written import WrittenFiles, watch_written_files
from reenact.seams.typed import typed_input
from reenact.store.blobs import BlobStore
from reenact.store.reader import read_run_start
from reenact.values.objects import message_of
from reenact.volatile.places import own_places, working_folder
from reenact.workspace.history import WorkspaceHistory
from reenact.workspace.replaying import WorkspaceReplay


class Missed(Exception):
    """No open recorded call matches; *instead* is the one that was due."""

    def __init__(self, instead: RecordedCall | None) -> None:
        self.instead = instead
        super().__init__()


class _Placed(NamedTuple):
    """The position at which a recorded call was made again."""

    call: RecordedCall
    lane: str
    ordinal: int
    after: int
    """The number of new events before it."""


class MatchingFirst(ReplayEngine):
    """A replay that passes unmatched calls to *recorder*, which makes and records them."""

    mode: RunMode = "capture"

    def __init__(
        self,
        source: ReplaySource,
        redactor: Redactor,
        volatile: Iterable[VolatileRule],
        seed: CaptureSeed,
        evidence: RunEvidence,
        blobs: BlobStore,
        *,
        find_root: Callable[[], str] | None = None,
        is_causal: bool = False,
        names: ProcessNames | None = None,
    ) -> None:
        """*names* are the names of new calls, if they differ from those of the replayed process."""
        super().__init__(
            source, redactor, volatile=volatile, evidence=evidence, find_root=find_root, is_causal=is_causal
        )
        self.placed: dict[int, _Placed] = {}
        """The recorded calls that were made again, by event number."""
        self.due_instead: dict[str, int] = {}
        """The recorded call that was due instead of a new one, by the id of the new call."""
        self._passed_over: set[int] = set()
        self._reached_seq = 1
        self._awaited: list[RecordedCall] = []
        self.new_events = _UnmatchedEvents(self, blobs)
        last_number = last_call_number(source.reader.lines())
        self.recorder = self.make_recorder(
            self.new_events,
            seed,
            redactor,
            find_names=lambda: names or self._own_names(),
            first_call=last_number + 1,
        )

    make_recorder = CaptureContext

    def record_files(self, files: WorkspaceReplay, tree: str, tree_file: str | None) -> None:
        """Work in *files*, which have *tree* at the start, and record their changes."""
        self.files = files
        self.noted_from = 1
        self.recorder.record_files(files.scanner, tree, files.find_recorded, tree_file)

    def set_aside(self, call: RecordedCall, lane: Lane) -> list[int]:
        """Treat a tool or program call as new if the files before it differ."""
        if self.files is not None and not call.is_instant and not call.beside:
            if call.may_write and self.files.difference_before(call.seq) is not None:
                with self._lock:
                    call.taken = False
                    self.placed.pop(call.seq, None)
                    self._awaited.remove(call)
                raise Missed(call)
            with self.new_events.place_after(call.seq - 1):
                self.recorder.note_files_before(call.call_id, call.parent)
        return super().set_aside(call, lane)

    def compare_files(self, recorded: RecordedCall, lane: Lane) -> None:
        """Accept differences: an update may change files."""

    def change_files(self, recorded: RecordedCall) -> None:
        try:
            super().change_files(recorded)
        except StoreError as error:
            self.recorder.warn(f"event {recorded.outcome_seq}: not all it did to files was done: {error}")
        if not recorded.beside:
            with self.new_events.place_after(recorded.outcome_seq):
                self.recorder.note_files_after(recorded.call_id, may_write=recorded.may_write)

    def _own_names(self) -> ProcessNames:
        self.choose_process()
        return ProcessNames.of_process(self.source.root)

    def step(self, call: Call[A], lane: Lane) -> Step[A]:
        try:
            step = super().step(call, lane)
        except Missed as missed:
            due = self._pass_over(missed)
            made = self.recorder.step(call, lane)
            if due:
                self.due_instead[made.call_id] = due
            return made
        self.note_recorded_answer(call, step.call_id)
        return step

    def note_recorded_answer(self, call: Call, call_id: str) -> None:
        """Note that *call* gets the answer of the recorded call *call_id*."""

    def instant(self, instant: Instant, lane: Lane, produce: Callable[[], Any]) -> Any:
        calls = lane.calls
        try:
            return super().instant(instant, lane, produce)
        except Missed as missed:
            due = self._pass_over(missed)
            lane.calls = calls  # the recorder has its own counters
            if instant.is_read:  # this may make further calls
                return self.recorder.instant(instant, lane, produce)
            self.new_events.due.seq = due
            try:
                return self.recorder.instant(instant, lane, produce)
            finally:
                self.new_events.due.seq = 0

    def is_live(self, lane: Lane) -> bool:  # noqa: ARG002
        """Always true: unmatched calls are made."""
        return True

    def refuse_unplaced(self, call: Call) -> None:  # type: ignore[override]
        self.recorder.refuse_unplaced(call)

    def stand_in(
        self,
        lane: Lane,
        key: Key,
        request_text: bytes,
        call: Call | None = None,  # noqa: ARG002
    ) -> RecordedCall:
        """An equal call later in the lane, if there is one; the calls before it are skipped."""
        with self._lock:
            recorded = self._lanes.expected(lane)
            if recorded is None:
                raise Missed(None)
            found = self._nearest.take_equal(recorded, self.keys(key, request_text))
            if found is None:
                raise Missed(None if recorded.is_loose else recorded.find_next())
            if lane.recorded is None:
                lane.recorded, recorded.is_bound = recorded, True
            if not recorded.is_loose:
                recorded.pass_by(found)
            self._note(found, lane)
            return found

    def _pass_by_loose(self, found: RecordedCall) -> None:
        """For calls without order, let *found* wait for no other call."""
        before = (call for call in self.source.calls if call.seq < found.seq and call.lane == found.lane)
        for call in before:
            if not call.taken:
                self.turns.note_happened([call.seq, call.outcome_seq])

    def _may_still_come(self, lane: Lane, key: Key, request_text: bytes) -> bool:  # noqa: ARG002
        """Never wait for a call of another task: an unmatched call is made at once."""
        return False

    def _find_in_place(self, lane: Lane, key: Key) -> RecordedCall | None:
        recorded = super()._find_in_place(lane, key)
        if recorded is not None:
            self._note(recorded, lane)
        return recorded

    def _find_elsewhere(self, lane: Lane, key: Key, request_text: bytes) -> RecordedCall | None:
        recorded = super()._find_elsewhere(lane, key, request_text)
        if recorded is not None:
            self._note(recorded, lane)
        return recorded

    def _note(self, recorded: RecordedCall, lane: Lane) -> None:
        with self._lock:
            name = lane.name_under(self.source.root)
            self.placed[recorded.seq] = _Placed(recorded, name, lane.calls, self.new_events.count - 1)
            self._reached_seq = max(self._reached_seq, recorded.seq)
            self._awaited.append(recorded)
            if lane.is_loose:
                self._pass_by_loose(recorded)

    def _pass_over(self, missed: Missed) -> int:
        """Stop waiting for a call that another one replaced; if it comes later, it is still answered.

        Returns its number, unless it was replaced before.
        """
        due = missed.instead
        if due is None:
            return 0
        with self._lock:
            is_vacant = due.seq not in self._passed_over
            self._passed_over.add(due.seq)
        self.turns.note_happened([due.seq, due.outcome_seq])
        return due.seq if is_vacant else 0

    def next_kept(self, lane: str, number: int) -> int | None:
        """The recorded call that was made again in *lane* after the new event *number*, if any."""
        later = (seq for seq, placed in self.placed.items() if placed.lane == lane and placed.after >= number)
        return min(later, default=None)

    def reached_seq(self) -> int:
        """The last recorded event that has happened again."""
        with self._lock:
            came = [call for call in self._awaited if self.turns.has_happened(call.outcome_seq)]
            self._awaited = [call for call in self._awaited if call not in came]
            self._reached_seq = max([self._reached_seq, *(call.outcome_seq for call in came)])
            return self._reached_seq

    def kept_calls(self) -> dict[int, str]:
        """All recorded calls of the new run, by number, with their lanes."""
        kept: dict[int, str] = {}
        for placed in self.placed.values():
            self._keep(placed.call, placed.lane, placed.ordinal, kept)
        return kept

    def _keep(self, call: RecordedCall, lane: str, ordinal: int | None, kept: dict[int, str]) -> None:
        """Keep a call; *ordinal* is its new position in its lane."""
        kept[call.seq] = lane
        for nested in self._nested.get(call.call_id or "", ()):
            place = LaneName(nested.lane).inside_of(call.lane)
            inside = nested.lane
            if place is not None:
                inside = LaneName(lane).in_call(place[0] if ordinal is None else ordinal, place[1])
            self._keep(nested, inside, None, kept)


class _Due(threading.local):
    """The recorded call that was due when a thread recorded an immediate value."""

    seq = 0
    """0 if none was due."""
    place: int | None = None
    """The recorded event that its events follow; ``None`` for the latest one."""


class _UnmatchedEvents:
    """A sink for the events of unmatched calls, which are read at the end of the run."""

    def __init__(self, engine: MatchingFirst, blobs: BlobStore) -> None:
        self._engine = engine
        self._blobs = blobs
        self._lines: list[tuple[bytes, int, int]] = []
        """Each with the recorded event that it follows, and the recorded call that was due instead."""
        self.due = _Due()
        self.ending: Ending | None = None

    def start(self, seed: CaptureSeed) -> None:
        """Nothing is written before the end."""

    @contextmanager
    def place_after(self, seq: int) -> Iterator[None]:
        """Events of this thread in the block follow the recorded event *seq*."""
        self.due.place = seq
        try:
            yield
        finally:
            self.due.place = None

    def append(self, event: bytes) -> None:
        place = self.due.place
        reached = self._engine.reached_seq() if place is None else place
        self._lines.append((event, reached, self.due.seq))

    def put_blob(self, data: bytes) -> str:
        return self._blobs.put(data)

    @property
    def count(self) -> int:
        return len(self._lines)

    def finalize(self, ending: Ending) -> CaptureManifest:
        self.ending = ending
        return self._engine.source.reader.manifest

    def _with_recorded_folder(self, line: bytes) -> str:
        """Replace the folder of restored files by the recorded folder, if that is known."""
        text = line.decode()
        if self._engine.files is None:
            return text
        return self._engine.likeness.with_recorded_names(text) or text

    def result(
        self, root: str | None, kept: dict[int, str], argv: list[str], places: Mapping[str, str]
    ) -> UpdateResult:
        """The result after the end, without the first event, which is the recorded start."""
        assert self.ending is not None
        calls = {call.seq: call for call in self._engine.source.calls}
        lane_of: dict[str, str] = {}
        new: list[NewEvent] = []
        for number, (tree_file, reached, due) in enumerate(self._lines[1:-1], 1):
            line = self._with_recorded_folder(tree_file)
            data = msgspec.json.decode(line)["data"]
            call_id = data.get("callId", "")
            is_outcome = call_id in lane_of
            lane = lane_of.setdefault(call_id, data.get("lane", ""))
            due = self._engine.due_instead.get(call_id, due)
            instead = 0
            if due and due not in kept:
                instead = calls[due].outcome_seq if is_outcome else due
            coming = self._engine.next_kept(lane, number)
            behind = reached if coming is None else min(reached, coming - 1)
            new.append(NewEvent(line, behind, instead))
        has_other_results = bool(self._engine.differing_tasks())
        end = self._lines[-1][0].decode()
        return UpdateResult(
            root=root,
            kept=kept,
            new=new,
            end=end,
            ending=self.ending,
            argv=argv,
            has_other_results=has_other_results,
            places=dict(places),
        )


class UpdatePart(msgspec.Struct, frozen=True):
    """The part of one process in a run of several."""

    blobs: str
    """The folder for payloads of new events of all processes."""
    is_ours: LaneTest
    root: str = ROOT
    find_root: Callable[[], str] | None = None
    within: str | None = None
    is_gateway: bool = False
    places: Mapping[str, str] | None = None
    """The folders of the command, if they differ from those of this process."""
    tree_file: str | None = None
    """The file in which all processes share the latest recorded tree."""


_ONLY_PROCESS: Final = UpdatePart("", lambda lane: not is_below(lane))


class UpdateRun(Run):
    """An update of a recorded run; :meth:`accept` replaces the recording."""

    mode: RunMode = "capture"

    make_engine = MatchingFirst

    def __init__(
        self,
        path: str | Path,
        *,
        redact: Redact = None,
        volatile: Iterable[VolatileRule] = (),
        accepts_at_end: bool = False,
        part: UpdatePart | None = None,
        workspace: Path | None = None,
        repository: Path | None = None,
    ) -> None:
        """With *accepts_at_end*, a block that ends well replaces the recording.

        As a *part*, this is one of several processes, and another process merges their results. *workspace*
        is the folder in which it works, with the recorded files of the start, and *repository* the git
        repository with the files that the capture only names.
        """
        super().__init__()
        self._accepts_at_end = accepts_at_end
        self._part = own = part or _ONLY_PROCESS
        source = ReplaySource(path, own.is_ours, own.root, project_beside(Path(working_folder())))
        if part is None and any(LaneName(call.lane).process != ROOT for call in source.calls):
            raise UsageError(
                f"{path}: several programs were recorded in it; use: reenact update {path} -- COMMAND"
            )
        if workspace is None and WorkspaceHistory.has_one(source.reader):
            raise UsageError(f"{path}: has files; name the folder in which the run works, as workspace=…")
        source.reader.check_blobs(source.blob_digests())
        before = source.manifest()
        _, values = profile_and_secrets(redact)
        redactor = make_redactor(before.redaction.profile, values, before.redaction.salt_bytes)
        self.updated: UpdatedCapture | None = None
        if part is None:
            self.updated = UpdatedCapture(Path(path))
            blobs = self.updated.blobs
        else:
            blobs = BlobStore(Path(part.blobs))
        places = own_places(str(workspace)) if workspace is not None else None
        if own.places is not None:
            places = dict(own.places)
        self._evidence = RunEvidence("none", draws=Draws(), places=places)
        self._engine = self.make_engine(
            source,
            redactor,
            [*project_rules(Path(working_folder())), *volatile],
            seed_for_repetition(before),
            self._evidence,
            blobs,
            find_root=own.find_root,
            is_causal=own.is_gateway,
            names=ProcessNames(call_prefix=LANE) if own.is_gateway else None,
        )
        if workspace is not None:
            history = WorkspaceHistory(source.reader, repository=repository, aside=run_unguarded)
            files = WorkspaceReplay(history, workspace, redactor, self._engine.likeness.places, own=blobs)
            self._engine.record_files(files, history.start.tree, own.tree_file)
        self._written = WrittenFiles()
        self._entered = ExecutedFiles(self._engine)
        self._stand_ins = before.standIns or stdlib.NOTHING
        self._redactor = redactor
        self.warnings = self._engine.recorder.warnings
        self._open = ExitStack()

    @property
    def context(self) -> MatchingFirst:
        return self._engine

    @property
    def is_changed(self) -> bool:
        """Whether the recording has changed; known after the run."""
        return self.updated is not None and self.updated.is_changed

    def arguments(self) -> list[str]:
        """The command line of this process, as a recording has it."""
        return without_places(self._redactor.redact_arguments(sys.orig_argv))

    def result(self) -> UpdateResult:
        """The result, after the end."""
        root = None if self._part.is_gateway else self._engine.source.root
        places = self._evidence.places() if self._engine.files is not None else {}
        return self._engine.new_events.result(root, self._engine.kept_calls(), self.arguments(), places)

    def __enter__(self) -> Self:
        if self.updated is not None:
            self.updated.open()
        self._engine.recorder.start()
        for attached in self.attachments():
            self._open.enter_context(attached)
        self._engine.recorder.record_event("run_start", {})
        self._evidence.begin(time())
        return self

    def attachments(self) -> Iterable[AbstractContextManager[object]]:
        """The patches and hooks that route the calls of this process to us."""
        began = read_run_start(self._engine.source.reader)
        yield zone_of_run(began)
        yield typed_input(began.terminal or ())
        yield seams.attach_seams()
        yield hosts_beside.holding(project_beside(Path(working_folder())))
        yield stdlib.attach_stdlib(self._stand_ins, self._engine)
        yield workspace_known(self._engine.files.root if self._engine.files is not None else None)
        yield probes.record_probes(self._engine, lambda host, port: True)  # noqa: ARG005
        yield watch_written_files(self._written)
        yield enter_context(self._engine, self._part.within)
        self._entered.is_whole = self.is_test
        yield self._entered

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._open.close()
        self._engine.turns.close()
        status: Literal["ok", "error"] = "ok" if error is None else "error"
        message = None if error is None else f"{type(error).__name__}: {message_of(error)}".removesuffix(": ")
        written = self.list_written()
        ended = self._engine.recorder.finalize(
            status, message, self.final_output, self.confidence, written, self._entered.files
        )
        if ended is None or self.updated is None:
            self.manifest = ended
            return
        result = self.result()
        self.manifest = self.updated.merge([result], result.ending.workspace_end)
        if self._accepts_at_end:
            (self.accept if error is None and self.manifest.status == "ok" else self.discard)()

    def list_written(self) -> list[str]:
        """The files that the run or answered calls have written."""
        wrote = self._engine.recorded_files()
        return [*wrote, *(place for place in self._written.list_written() if place not in wrote)]

    def accept(self) -> None:
        """Replace the old recording by the new one in one step, unless they are equal."""
        if self.updated is not None:
            self.updated.accept()

    def discard(self) -> None:
        """Delete the new recording and keep the old one."""
        if self.updated is not None:
            self.updated.discard()

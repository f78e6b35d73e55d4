"""A forked run: replayed up to its point, changed there, and recorded from there on."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Literal, Self, get_args

import msgspec

from reenact.errors import CheckFailed, Diverged, UsageError
from reenact.forks.capture import ForkedCapture, ForkResult
from reenact.forks.change import (
    FROM_START,
    ChangeFunction,
    ForkChange,
    ForkPlan,
    OnMiss,
    change_outcome,
    read_change,
)
from reenact.forks.engine import ForkEngine, ForkPart
from reenact.forks.live import check_live_answers
from reenact.forks.transcript import TranscriptFork, is_transcript, plan_transcript_fork
from reenact.formats.capture import ForkShares
from reenact.formats.record import ABSENT
from reenact.formats.volatile import AnyRule
from reenact.gateway.lane import is_below
from reenact.lane_name import ROOT, LaneName
from reenact.providers import RequestChange
from reenact.redaction import Redactor
from reenact.replayer.allow import AllowLike, read_allow
from reenact.replayer.source import RecordedCall, ReplaySource
from reenact.run.redact import Redact, profile_and_secrets
from reenact.run.replaying import STALL_S, ReplayRun, open_source
from reenact.run.rules import read_rules
from reenact.seams.entered import ExecutedFiles
from reenact.seams.stdlib.written import WrittenFiles, watch_written_files
from reenact.store.reader import CaptureReader
from reenact.values.objects import message_of
from reenact.workspace.history import WorkspaceHistory
from reenact.workspace.replaying import WorkspaceReplay

_decode: Final = msgspec.json.Decoder().decode
_BEFORE: Final = "the run differs from its recording before the point of the fork"


def make_plan(
    source: ReplaySource,
    at: int | None,
    change: ForkChange,
    on_miss: OnMiss,
    function: ChangeFunction | None = None,
) -> ForkPlan:
    """Plan a fork of *source*; :class:`UsageError` if it is impossible."""
    path = source.reader.given
    at = check_options(at, on_miss)
    inherited = _inherited_request(path, source, FROM_START if at is None else at)
    request = change.request.combine(inherited)
    if request != inherited and on_miss == "fail":
        raise UsageError(
            "another model, prompt or temperature needs new answers; choose --on-miss live, or nearest"
        )
    change = change.with_request(request)
    is_inherited = request == inherited
    if at is None:
        if change.changes_outcome:
            raise UsageError(f"{path}: name the call whose outcome to change; reenact show lists them")
        return ForkPlan(FROM_START, 1, change, on_miss, is_inherited)
    call = source.by_seq.get(at)
    if call is None:
        raise UsageError(
            f"{path}: {_describe_event(source, at)}; name the event of a call, reenact show lists them"
        )
    if call.parent is not None:
        around = next((one for one in source.calls if one.call_id == call.parent), None)
        place = f"event {around.seq}" if around is not None else "that call"
        raise UsageError(
            f"{path}: event {at} happened inside another call, which is answered as a whole; fork at {place}"
        )
    if change.changes_outcome:
        _try_change(path, source, call, change, function)
    shared = call.seq - 1
    if change.changes_outcome:  # which a stream has at its beginning
        shared = min(call.outcome_seq - 1, call.due_after)
    return ForkPlan(call.seq, shared, change, on_miss, is_inherited)


def check_plan(path: Path, at: int | None, change: ForkChange, on_miss: OnMiss) -> None:
    """Raise unless the run in *path*, recorded or imported from a transcript, can be forked like this."""
    reader = CaptureReader(path)
    if is_transcript(reader):
        plan_transcript_fork(reader, check_options(at, on_miss), change, on_miss)
    else:
        make_plan(ReplaySource(path), at, change, on_miss)


def check_options(at: int | None, on_miss: str) -> int | None:
    """Raise unless *at* may be the number of an event, and *on_miss* is known; returns *at*."""
    if on_miss not in get_args(OnMiss):
        raise UsageError(f"on_miss {on_miss!r} is unknown; choose {', '.join(get_args(OnMiss))}")
    if at is not None and type(at) is not int:
        raise UsageError(f"at {at!r} is not the number of an event; reenact show lists them")
    return at


def _inherited_request(path: str, source: ReplaySource, at: int) -> RequestChange:
    """The request change of the parent, if it is a fork and *at* is after its point."""
    above = source.fork
    if above is ABSENT or not isinstance(above.change, dict):
        return RequestChange()
    known = {name: above.change[name] for name in RequestChange.__struct_fields__ if name in above.change}
    request = msgspec.convert(known, RequestChange)
    if request.is_any and at <= above.parent.events:
        raise UsageError(
            f"{path}: event {at} comes before this fork asks its models otherwise, and is its parent's; "
            f"fork {above.parent.path} instead"
        )
    return request


def _describe_event(source: ReplaySource, at: int) -> str:
    if not 1 <= at <= len(source.reader):
        return f"there is no event {at}, the last one is {len(source.reader)}"
    event = _decode(source.reader.line(at))
    if not event["data"].get("derived"):
        return f"event {at} ({event['type']}) is not a call"
    models = (call.seq for call in source.calls if call.type == "llm_request" and call.seq < at)
    asked = max(models, default=0)
    hint = f", whose model was asked at event {asked}" if asked else ""
    return f"event {at} ({event['type']}) is a tool that the agent ran itself{hint}"


def _try_change(
    path: str, source: ReplaySource, call: RecordedCall, change: ForkChange, function: ChangeFunction | None
) -> None:
    """Check before anything runs that the change can be made."""
    if not call.outcome_seq:
        raise UsageError(f"{path}: the call at event {call.seq} has no outcome to change")
    if function is not None:
        return  # it is called only once, at the point
    source.reader.event(call.outcome_seq)  # raises if it cannot be read
    try:
        change_outcome(change, None, _decode(source.reader.line(call.outcome_seq)), source.reader.resolve)
    except UsageError as error:
        raise UsageError(f"{path}: {error}") from None


class ForkRun(ReplayRun):
    """One process of a forked run; see :class:`InProcessFork` for a run of a single process."""

    def __init__(
        self,
        path: str | Path,
        part: ForkPart,
        **options: Any,
    ) -> None:
        self._part = part
        self._written = WrittenFiles()
        super().__init__(path, policy="strict", **options)
        self.warnings = self.context.recorder.warnings

    def make_engine(self, source: ReplaySource, redactor: Redactor, **options: object) -> ForkEngine:
        return ForkEngine(source, redactor, part=self._part, **options)

    def make_files(self, history: WorkspaceHistory, root: Path, redactor: Redactor) -> WorkspaceReplay:
        engine = self.context
        files = WorkspaceReplay(history, root, redactor, engine.likeness.places, own=self._part.blobs)
        tree = history.tree_before(engine.shared + 1)
        engine.recorder.record_files(files.scanner, tree, files.find_recorded, self._part.tree_file)
        return files

    @property
    def context(self) -> ForkEngine:
        assert isinstance(self._engine, ForkEngine)
        return self._engine

    def __enter__(self) -> Self:
        self.context.recorder.start()
        super().__enter__()
        self.context.recorder.record_event("run_start", {})
        return self

    def attachments(self) -> Iterable[AbstractContextManager[object]]:
        yield from super().attachments()
        yield watch_written_files(self._written)

    def watch_executed_files(self) -> ExecutedFiles:
        self._entered.is_whole = self.is_test
        return self._entered

    def list_written(self) -> list[str]:
        """The files that the run or answered calls have written."""
        wrote = self._engine.recorded_files()
        return [*wrote, *(place for place in self._written.list_written() if place not in wrote)]

    def close(self, error: BaseException | None) -> None:
        """End the run, and raise the problem if it is no valid fork."""
        engine = self.context
        engine.end()
        self._open.close()
        status: Literal["ok", "error"] = "ok" if error is None else "error"
        message = None if error is None else f"{type(error).__name__}: {message_of(error)}".removesuffix(": ")
        engine.recorder.finalize(
            status, message, self.final_output, self.confidence, self.list_written(), self._entered.files
        )
        self.divergences = engine.divergences()
        self.blocked = [call for call in self._guard.blocked if not call.is_to(engine.source.beside_hosts)]

    def problem(self) -> Exception | None:
        """Why there is no valid fork; ``None`` if there is one."""
        engine = self.context
        if engine.unchanged is not None:
            return engine.unchanged
        if engine.missed is not None:
            return _as_fork_error(
                engine.missed.headline, engine.missed, "the recording does not have this call"
            )
        if self.divergences:
            found = self.divergences[0]
            return Diverged(f"{_BEFORE}: {found.headline}", found)
        if self.blocked:
            return self.blocked[0].error()
        ending = engine.new_events.ending
        if engine.recorder.failed_by is not None and ending is not None:
            return CheckFailed(f"{ending.error}; no fork was made")
        return None

    def result(self) -> ForkResult:
        """The result, after the end."""
        engine = self.context
        ending = engine.new_events.ending
        assert ending is not None
        translate = engine.likeness.with_recorded_names
        happenings = [
            msgspec.structs.replace(each, line=translate(each.line) or each.line) if each.line else each
            for each in engine.happenings
        ]
        return ForkResult(
            root=None if self._part.is_gateway else engine.source.root,
            end=engine.new_events.end,
            ending=ending,
            argv=self.arguments(),
            happenings=happenings,
            taken=[call.seq for call in engine.source.calls if call.taken],
            is_other=engine.has_left_recording,
            changed_line=engine.changed_line,
            nearest=engine.nearest,
            live=engine.live,
            notes=tuple(engine.notes),
            places=dict(self._evidence.places()),
        )


def _as_fork_error(headline: str, found: object, why: str) -> Diverged:
    return Diverged(f"{headline}; {why}: choose --on-miss nearest or live to go on", found)


class InProcessFork(ForkRun):
    """A fork of a run in one process; the block is the agent."""

    def __init__(
        self,
        source: ReplaySource,
        plan: ForkPlan,
        output: Path,
        *,
        function: ChangeFunction | None = None,
        standalone: bool = False,
        **options: Any,
    ) -> None:
        path = source.reader.path
        _, secrets = profile_and_secrets(options.get("redact"))
        self._capture = ForkedCapture(
            path, output, plan, source.reader, standalone=standalone, secrets=secrets
        )
        self.path = output
        self.shares: ForkShares | None = None
        """How calls were answered; known after the block."""
        part = ForkPart(plan=plan, seed=self._capture.seed, blobs=self._capture.blobs, function=function)
        super().__init__(path, part, source=source, **options)
        if any(LaneName(lane).process != ROOT for lane in {call.lane for call in source.calls}):
            raise UsageError(
                f"{source.reader.given}: several programs were recorded in it; "
                f"use: reenact fork {source.reader.given} -- COMMAND"
            )

    def __enter__(self) -> Self:
        self._capture.open()
        try:
            return super().__enter__()
        except BaseException:
            self._capture.discard()
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self.close(error)
            self._finish(error)
        finally:
            self._capture.discard()

    def _finish(self, error: BaseException | None) -> None:
        problem = self.problem()
        if problem is not None:
            raise problem from (None if isinstance(error, Diverged) else error)
        result = self.result()
        check_point(self._part.plan, self.context.source, [result])
        check_answers([result])
        self.manifest = self._capture.write([result], self.context.source, result.ending.workspace_end)
        self._capture.accept()
        self.shares = self.manifest.fork.shares if self.manifest.fork else None


def check_point(plan: ForkPlan, source: ReplaySource, results: Iterable[ForkResult]) -> None:
    """Raise :class:`Diverged` if the run ended before the point of the fork."""
    taken = {seq for result in results for seq in result.taken}
    last = max(plan.shared, plan.at)
    for call in source.calls:
        if call.seq > last:
            break
        if call.seq not in taken and call.parent is None:
            where = "at" if call.seq == plan.at else "before"
            what = f"{call.type} {call.name}".strip()
            raise Diverged(
                f"the call at event {call.seq} ({what}), {where} the point of the fork, was not made; "
                "the agent is another one than it was"
            )


def check_answers(results: Iterable[ForkResult]) -> None:
    """Raise :class:`CheckFailed` if models were asked and none answered."""
    check_live_answers(happening.line for result in results if result.live for happening in result.happenings)


def fork(
    path: str | Path,
    *,
    at: int | None,
    change: Mapping[str, object] | ForkChange | ChangeFunction | None = None,
    output: str | Path,
    on_miss: OnMiss = "fail",
    standalone: bool = False,
    redact: Redact = None,
    allow: AllowLike = (),
    volatile: Iterable[AnyRule] = (),
    stall_s: float = STALL_S,
    workspace: str | Path | None = None,
) -> InProcessFork | TranscriptFork:
    """Replay the capture in *path* to the call at event *at*, make *change* there, and go on.

    Before that point nothing goes live, and a difference raises :class:`~reenact.errors.Diverged`. After it,
    a call that equals an unused recorded one is answered from the recording. Any other call is a miss:
    *on_miss* raises (``fail``), answers with the outcome of the nearest recorded call (``nearest``), or
    really makes the call (``live``). *change* is a function that gets the recorded outcome and returns
    another one, or a mapping: ``{"set": {"$.due": "Friday"}}``, ``{"replace": value}`` or ``{"error":
    "TimeoutError"}``, and also or only ``{"model": "…", "system": "…", "temperature": 0.2}``, which changes
    the model requests from the point on. With *at* ``None`` there is no point, and everything may differ from
    the beginning. The fork is a capture in *output*; it refers to the events that it shares with its parent,
    unless *standalone*. *workspace* is a folder in which the agent works, with the recorded files of the
    start (:func:`reenact.checkout` with ``at=1`` makes it): changes by answered calls are made again, and
    from the point on the files may differ.

    A run imported from a transcript has no requests as they were sent. A call matches it if it has all that
    the transcript tells; the manifest of the fork says what was not compared. Such a fork holds all of its
    events, with the requests as they were sent, so it can be replayed strictly.
    """
    read, function = read_change(change)
    reader = CaptureReader(path)
    if is_transcript(reader):
        if workspace is not None:
            raise UsageError(f"{reader.given}: a transcript has no files of a workspace; leave out workspace")
        return TranscriptFork(
            reader,
            plan_transcript_fork(reader, check_options(at, on_miss), read, on_miss, function),
            Path(output),
            function=function,
            redact=redact,
            allow=read_allow(allow),
            volatile=read_rules(volatile),
        )
    source = open_source(path, cache(lambda lane: not is_below(lane)))
    plan = make_plan(source, at, read, on_miss, function)
    return InProcessFork(
        source,
        plan,
        Path(output),
        standalone=standalone,
        function=function,
        redact=redact,
        allow=read_allow(allow),
        volatile=read_rules(volatile),
        stall_s=stall_s,
        workspace=Path(os.path.realpath(workspace)) if workspace is not None else None,
    )

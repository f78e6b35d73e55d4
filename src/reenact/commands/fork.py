"""Forks a command: runs it again up to a point, changes something there, and records the rest."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from itertools import count
from pathlib import Path
from typing import NamedTuple

import msgspec

from reenact.canonical import JsonValue
from reenact.commands.record import RecordedEnd, finish_recording
from reenact.errors import CheckFailed, Diverged, UsageError
from reenact.forks.answering import Answers, AnswersResult
from reenact.forks.capture import ForkedCapture, ForkResult, refuse_place
from reenact.forks.change import ForkChange, ForkPlan, OnMiss, read_change
from reenact.forks.engine import ForkPart
from reenact.forks.matching import TranscriptCalls
from reenact.forks.run import check_answers, check_options, check_point, make_plan
from reenact.forks.transcript import (
    check_results,
    finish_fork,
    identity_of_fork,
    is_transcript,
    notes_of,
    plan_transcript_fork,
)
from reenact.formats.capture import CaptureManifest, ForkShares
from reenact.formats.record import ABSENT
from reenact.formats.volatile import VolatileRule
from reenact.gateway.lane import LANE
from reenact.gateway.upstreams import upstreams_of
from reenact.injected.fence import Fence
from reenact.injected.handover import Handover, ToAnswer, ToFork, ToRecord
from reenact.injected.launch import (
    handover_folder,
    run_again,
    run_recorded,
)
from reenact.injected.served import ServedAnswers, ServedFork
from reenact.recorder.recovery import note_exit_status
from reenact.replayer.allow import read_allow
from reenact.replayer.source import ReplaySource
from reenact.run.replaying import STALL_S
from reenact.run.rules import project_beside, project_rules
from reenact.store.place import discard, staging_folder
from reenact.store.reader import CaptureReader, read_run_start
from reenact.store.remote import is_remote, local_path, local_run, remote_name
from reenact.store.rundir import claim_folder
from reenact.workspace.history import WorkspaceHistory
from reenact.workspace.replaying import WorkspaceFolder, restore_start


class ForkReport(msgspec.Struct, frozen=True):
    """The result of a forked command."""

    path: str
    """The capture of the fork."""
    parent: str
    at: int
    exit_status: int
    """The exit status of the command."""
    shares: ForkShares
    manifest: CaptureManifest
    notes: list[str]


def fork_command(
    path: str | Path,
    words: Sequence[str],
    *,
    at: int | None,
    change: Mapping[str, JsonValue] | ForkChange | None = None,
    output: str | Path | None = None,
    on_miss: OnMiss = "fail",
    standalone: bool = False,
    volatile: Sequence[VolatileRule] = (),
    upstreams: Mapping[str, str] | None = None,
    allow: Sequence[str] = (),
    network: bool = False,
    port: int | None = None,
    stdout: int = 1,
    workspace: bool = False,
    repository: str | Path | None = None,
) -> ForkReport:
    """Run the command *words* again as a fork of the capture in *path*; see :func:`reenact.fork`.

    The fork is a capture in *output*, or in a new folder beside *path*. It covers the Python processes of the
    command and, through the gateway, programs in other languages. *upstreams* are the addresses that the
    gateway forwards live calls to; *allow* and *network* are those of :func:`reenact.replay_command`. Raises
    :class:`~reenact.errors.Diverged` if a call is missing or the command differs before the point.

    With *workspace* the command works in a new folder with the recorded files, as in
    :func:`reenact.replay_command`; at the point they are those of that step.
    """
    place = Path(output) if output is not None else new_place(path)
    if is_remote(path):
        with local_run(path) as copy:
            report = fork_command(
                copy, words, at=at, change=change, output=place, on_miss=on_miss, standalone=True,
                volatile=volatile, upstreams=upstreams, allow=allow, network=network,
                port=port, stdout=stdout, workspace=workspace, repository=repository,
            )  # fmt: skip
            return msgspec.structs.replace(report, parent=remote_name(path))
    directory, words = Path(local_path(path)), tuple(words)
    read, function = read_change(change)
    if function is not None:
        raise UsageError("a function changes a run of this process; give a mapping, or use reenact.fork")
    project_rules(Path.cwd())  # reports wrong rules before anything runs
    project_beside(Path.cwd())
    reader = CaptureReader(directory)
    options = _Options(tuple(volatile), dict(upstreams or {}), tuple(allow), network, port or 0, stdout)
    if is_transcript(reader):
        if workspace:
            raise UsageError(f"{directory}: a transcript has no files of a workspace; leave out --workspace")
        transcript_plan = plan_transcript_fork(reader, check_options(at, on_miss), read, on_miss)
        return _fork_transcript(reader, words, place, transcript_plan, options)
    source = ReplaySource(directory)
    plan = make_plan(source, at, read, on_miss)
    capture = ForkedCapture(directory, place, plan, source.reader, standalone=standalone)
    restoring = restore_start(capture.reader, repository) if workspace else nullcontext()
    return _fork_capture(directory, words, place, source, capture, plan, options, restoring)


class _Options(NamedTuple):
    """How the command is run, whatever it is a fork of."""

    rules: tuple[VolatileRule, ...]
    upstreams: dict[str, str]
    """The addresses that live calls are forwarded to, by name."""
    allowed: tuple[str, ...]
    network: bool
    port: int
    stdout: int

    def make_fence(self, plan: ForkPlan, upstreams: Mapping[str, str]) -> Fence | None:
        """The fence around the command; ``None`` if its calls may go live."""
        if self.network or plan.on_miss == "live":
            return None
        return Fence(os.environ, read_allow(self.allowed).addresses, upstreams.values())


def _fork_capture(
    directory: Path,
    words: tuple[str, ...],
    place: Path,
    source: ReplaySource,
    capture: ForkedCapture,
    plan: ForkPlan,
    options: _Options,
    restoring: AbstractContextManager[WorkspaceFolder | None],
) -> ForkReport:
    """Repeat the command up to the point, and record it from there on; *restoring* gives it the files."""
    rules = options.rules
    run_start = read_run_start(capture.reader)
    known = upstreams_of(os.environ) | options.upstreams | (run_start.upstreams or {})
    fence = options.make_fence(plan, known)
    salt = capture.reader.manifest.redaction.salt_bytes
    capture.open()
    try:
        with handover_folder() as handover, restoring as files:
            if files is not None:
                rules += tuple(project_rules(Path.cwd()))  # they cannot be found from the new folder
            part = ForkPart(
                plan=plan,
                seed=capture.seed,
                blobs=capture.blobs,
                call_prefix=LANE,
                on_reached=handover.reach_fork,
                is_reached_elsewhere=lambda: handover.is_fork_reached,
                is_gateway=True,
                tree_file=str(handover.tree_file),
            )
            served = ServedFork(
                directory,
                known,
                part,
                live_upstreams=options.upstreams,
                volatile=rules,
                words=words,
                input_copy=handover.input_copy,
                workspace=files,
            )
            with served.serve(port=options.port, on_call=handover.note_gateway_call) as gateway:
                orders = ToFork(
                    path=str(directory.absolute()),
                    gateway=gateway.address,
                    volatile=rules,
                    blobs=str(capture.blobs.root.absolute()),
                    plan=plan,
                    capture_id=capture.seed.captureId,
                    run_id=capture.seed.runId,
                    allowed=options.allowed,
                )
                status, printed = run_again(
                    words,
                    orders,
                    handover,
                    run_start,
                    salt,
                    files=files,
                    stdout=options.stdout,
                    is_of_no_use=lambda: handover.has_outlived_failure(STALL_S),
                    fence=fence,
                    keep_input=handover.input_copy,
                )
            results = _collect_results(directory, handover, served)
        check_point(plan, source, results)
        check_answers(results)
        written = capture.write(results, source, served.result().ending.workspace_end)
        manifest = note_exit_status(capture.folder, status, printed.end(), written.workspaceEnd)
        capture.accept()
    finally:
        capture.discard()  # does nothing after accept()
    assert manifest.fork is not ABSENT
    notes = [
        *(files.notes if files is not None else ()),
        *(note for result in results for note in result.notes),
    ]
    if files is None and WorkspaceHistory.has_one(capture.reader):
        notes.append("the recorded files were not used; use them with --workspace")
    return ForkReport(str(place), str(directory), plan.at, status, manifest.fork.shares, manifest, notes)


def _fork_transcript(
    reader: CaptureReader,
    words: tuple[str, ...],
    place: Path,
    plan: ForkPlan,
    options: _Options,
) -> ForkReport:
    """Record the command, with its calls answered from the transcript in *reader*."""
    refuse_place(place, reader.path)
    folder = staging_folder(place.absolute())
    identity, profile = identity_of_fork(reader), reader.manifest.redaction.profile
    known = upstreams_of(os.environ) | options.upstreams
    fence = options.make_fence(plan, known)
    every_rule = (*project_rules(Path.cwd()), *options.rules)
    place.parent.mkdir(parents=True, exist_ok=True)
    claim = claim_folder(folder)
    try:
        with handover_folder() as handover:
            calls = TranscriptCalls(reader, every_rule, handover.claim)
            served = ServedAnswers(
                folder,
                words,
                known,
                redact=profile,
                durability="process",
                volatile=options.rules,
                identity=identity,
                make_answers=lambda redactor: Answers(
                    calls,
                    plan,
                    redactor,
                    on_reached=handover.reach_fork,
                    is_reached_elsewhere=lambda: handover.is_fork_reached,
                    on_missed=lambda headline: handover.note("diverged", headline),
                ),
            )
            with served.serve(port=options.port, on_call=handover.note_gateway_call) as gateway:
                orders = ToRecord(
                    path=str(folder),
                    gateway=gateway.address,
                    redact=profile,
                    durability="process",
                    identity=identity,
                    volatile=options.rules,
                    answers=ToAnswer(str(reader.path.absolute()), plan, options.allowed, every_rule),
                )
                status, printed = run_recorded(
                    words,
                    orders,
                    handover,
                    stdout=options.stdout,
                    is_of_no_use=lambda: handover.has_outlived_failure(STALL_S),
                    fence=fence,
                )
            claim.remove()
            noted = handover.notes("forked").values()
            results = [msgspec.json.decode(text, type=AnswersResult) for text in noted]
            results.append(served.answers.result())
            check_results(reader, plan, results)
            notes: list[str] = []
            ended = RecordedEnd(status, printed.end(), ABSENT)
            if finish_recording(folder, ended, handover, gateway, notes) is None:
                raise CheckFailed(f"{place}: no fork was made: {'; '.join(notes)}")
        manifest = finish_fork(folder, place, reader, plan, results)
    finally:
        claim.remove()
        discard(folder)  # does nothing after finish_fork()
    assert manifest.fork is not ABSENT
    notes += notes_of(results)
    return ForkReport(str(place), reader.given, plan.at, status, manifest.fork.shares, manifest, notes)


def new_place(path: str | Path) -> Path:
    """A new folder beside the run in *path*."""
    if is_remote(path):
        raise UsageError(f"{remote_name(path)}: the fork cannot be written next to it; name a folder with -o")
    directory = Path(local_path(path))
    places = (directory.with_name(f"{directory.name}-fork-{number}") for number in count(1))
    return next(place for place in places if not place.exists())


def _collect_results(directory: Path, handover: Handover, served: ServedFork) -> list[ForkResult]:
    """The results of the processes and of the gateway; a process without a result has made no call."""
    for why in handover.notes("absent").values():
        raise UsageError(why)
    problem = served.problem()
    if problem is not None:
        raise problem
    for why in [*handover.notes("failed").values(), *handover.notes("left-out").values()]:
        raise Diverged(f"{directory}: {why}")
    reports = handover.notes("forked")
    for pid in handover.notes("plays"):
        if pid not in reports:
            raise CheckFailed(f"{directory}: no fork was made: {handover.process(pid)} did not end normally")
    results = [msgspec.json.decode(text, type=ForkResult) for text in reports.values()]
    results.sort(key=lambda result: str(result.root))
    through_gateway = served.result()
    if (
        through_gateway.has_acted
        or not results
        or read_run_start(served.context.source.reader).upstreams is not ABSENT
    ):
        results.append(through_gateway)
    return results

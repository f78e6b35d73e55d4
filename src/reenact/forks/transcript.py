"""Forks of imported transcripts: recorded again, answered from what the transcript tells."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from hashlib import sha256
from pathlib import Path
from types import TracebackType
from typing import Any

import msgspec

from reenact.boundary import Lane, current_lane
from reenact.canonical import JsonValue, digest_of_bytes, encode_clean
from reenact.errors import CheckFailed, Diverged, UsageError
from reenact.forks.answering import AnsweringContext, Answers, AnswersResult, change_transcript_outcome
from reenact.forks.change import FROM_START, ChangeFunction, ForkChange, ForkPlan, OnMiss
from reenact.forks.live import check_live_answers
from reenact.forks.matching import TranscriptCalls
from reenact.formats.capture import (
    BLOB_THRESHOLD_BYTES,
    Approximation,
    CaptureManifest,
    Fork,
    ForkParent,
    ForkShares,
    read_manifest,
    write_manifest,
)
from reenact.formats.event import read_head
from reenact.formats.record import ABSENT
from reenact.formats.volatile import VolatileRule
from reenact.recorder.sink import CaptureSink, FileCaptureSink
from reenact.redaction import Redactor
from reenact.replayer.allow import Allow
from reenact.replayer.guard import BlockedCall, Guard
from reenact.run.capturing import CaptureRun, Identity
from reenact.run.provenance import origin_of_run
from reenact.run.redact import Redact, make_redactor, profile_and_secrets
from reenact.run.rules import project_rules
from reenact.seams import stdlib
from reenact.store.place import become_folder, discard, refuse_taken, staging_folder
from reenact.store.reader import CaptureReader
from reenact.store.rundir import MANIFEST, RunDir
from reenact.volatile.places import working_folder


def is_transcript(reader: CaptureReader) -> bool:
    """Whether the run was imported from a transcript, which tells calls and results, but no requests."""
    imported = reader.manifest.imported
    return imported is not ABSENT and imported.fidelity == "tools"


def plan_transcript_fork(
    reader: CaptureReader,
    at: int | None,
    change: ForkChange,
    on_miss: OnMiss,
    function: ChangeFunction | None = None,
) -> ForkPlan:
    """Plan a fork of the transcript in *reader*; :class:`UsageError` if it is impossible."""
    if change.request.is_any and on_miss == "fail":
        raise UsageError(
            "another model, prompt or temperature needs new answers; choose --on-miss live, or nearest"
        )
    if at is None:
        if change.changes_outcome:
            raise UsageError(
                f"{reader.given}: name the call whose outcome to change; reenact show lists them"
            )
        return ForkPlan(FROM_START, 0, change, on_miss)
    calls = TranscriptCalls(reader)
    call = calls.by_seq.get(at)
    if call is None:
        raise UsageError(
            f"{reader.given}: event {at} is not a call of the transcript; name one, reenact show lists them"
        )
    plan = ForkPlan(call.seq, 0, change, on_miss)
    if change.changes_outcome:
        if not call.outcome_seq:
            raise UsageError(f"{reader.given}: the call at event {call.seq} has no outcome to change")
        if function is None:
            try:
                change_transcript_outcome(plan, None, call, calls.data(call.outcome_seq))
            except UsageError as error:
                raise UsageError(f"{reader.given}: {error}") from None
    return plan


class AnsweredRun(CaptureRun):
    """One process of a fork of a transcript; its calls are recorded and answered."""

    make_context = AnsweringContext

    def __init__(
        self,
        sink: CaptureSink,
        plan: ForkPlan,
        make_answers: Callable[[Redactor], Answers],
        *,
        allow: Allow,
        **options: Any,
    ) -> None:
        super().__init__(sink, allow=allow, **options)
        self.answers = make_answers(self._redactor)
        assert isinstance(self._context, AnsweringContext)
        self._context.answers = self.answers
        self._guard = None
        if plan.on_miss != "live":
            self._guard = Guard(allow, self._is_guarded, redact=self._redactor.redact_arguments)

    def attachments(self) -> Iterable[AbstractContextManager[object]]:
        yield from super().attachments()
        if self._guard is not None:
            yield self._guard

    def _is_guarded(self) -> bool:
        lane: Lane | None = current_lane()
        return lane is None or lane.context is self._context

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        super().__exit__(kind, error, trace)
        self.blocked: list[BlockedCall] = [] if self._guard is None else self._guard.blocked

    def problem(self) -> Exception | None:
        """Why there is no valid fork; ``None`` if there is one."""
        return self.answers.problem() or (self.blocked[0].error() if self.blocked else None)

    def result(self) -> AnswersResult:
        """The result, after the end."""
        result, problem = self.answers.result(), self.problem()
        return result if problem is None else msgspec.structs.replace(result, problem=str(problem))


class TranscriptFork(AnsweredRun):
    """A fork of a transcript in one process; the block is the agent."""

    def __init__(
        self,
        reader: CaptureReader,
        plan: ForkPlan,
        output: Path,
        *,
        function: ChangeFunction | None = None,
        redact: Redact = None,
        allow: Allow | None = None,
        volatile: Sequence[VolatileRule] = (),
    ) -> None:
        refuse_taken(output)
        self.path = output
        self.shares: ForkShares | None = None
        """How calls were answered; known after the block."""
        self._plan = plan
        self._reader = reader
        self._folder = staging_folder(Path(os.path.abspath(output)))
        _, secrets = profile_and_secrets(redact)
        calls = TranscriptCalls(reader, [*project_rules(Path(working_folder())), *volatile])
        super().__init__(
            FileCaptureSink(self._folder),
            plan,
            lambda redactor: Answers(calls, plan, redactor, function=function),
            allow=allow or Allow(),
            redact=(reader.manifest.redaction.profile, secrets),
            blob_threshold_bytes=BLOB_THRESHOLD_BYTES,
            stand_ins=stdlib.stand_ins(None, ()),
            volatile=volatile,
            leads_programs=True,
            on_warning=None,
            origin=origin_of_run(),
            identity=identity_of_fork(reader),
        )

    @property
    def notes(self) -> list[str]:
        """Remarks about the fork."""
        return notes_of([self.answers.result()])

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            super().__exit__(kind, error, trace)
            problem = self.problem()
            if problem is not None:
                raise problem from (None if isinstance(error, Diverged) else error)
            results = [self.answers.result()]
            check_results(self._reader, self._plan, results)
            self.manifest = finish_fork(self._folder, self.path, self._reader, self._plan, results)
            self.shares = self.manifest.fork.shares if self.manifest.fork else None
        finally:
            discard(self._folder)


def identity_of_fork(reader: CaptureReader) -> Identity:
    """New ids, and the salt of the transcript: equal secrets have equal placeholders in both."""
    identity, salt = Identity.new(), reader.manifest.redaction.salt_bytes
    return msgspec.structs.replace(identity, salt=salt or identity.salt)


def check_results(reader: CaptureReader, plan: ForkPlan, results: Iterable[AnswersResult]) -> None:
    """Raise if the processes made no valid fork."""
    for result in results:
        if result.problem:
            raise UsageError(result.problem) if result.is_usage else Diverged(result.problem)
    if plan.at != FROM_START and not any(result.is_reached for result in results):
        call = TranscriptCalls(reader).by_seq[plan.at]
        raise Diverged(
            f"the call at event {plan.at} ({call.describe()}), at the point of the fork, was not made; "
            "the agent is another one than it was, or runs its tools itself"
        )


def notes_of(results: Iterable[AnswersResult]) -> list[str]:
    """What the report says about the matching."""
    beside = _not_compared(results)
    what = ", ".join(f"{name} ({count})" for name, count in beside.items())
    rest = f"; not compared: {what}" if what else ""
    return [f"calls were matched with what the transcript tells, not with requests as they were sent{rest}"]


def _not_compared(results: Iterable[AnswersResult]) -> dict[str, int]:
    counts: Counter[str] = Counter()
    for result in results:
        counts.update(result.not_compared)
    return dict(sorted(counts.items()))


def finish_fork(
    folder: Path, place: Path, parent: CaptureReader, plan: ForkPlan, results: Sequence[AnswersResult]
) -> CaptureManifest:
    """Write into the finished capture in *folder* that it is a fork of *parent*, and move it to *place*."""
    shares = ForkShares(
        prefix=sum(result.prefix for result in results),
        recording=sum(result.recording for result in results),
        nearest=sum(result.nearest for result in results),
        live=sum(result.live for result in results),
    )
    live_models = {call_id for result in results for call_id in result.live_models}
    written = CaptureReader(folder)
    check_live_answers(
        line.decode() for line in written.lines() if read_head(line).data.callId in live_models
    )
    before = parent.manifest
    target = Path(os.path.realpath(place)) if place.is_symlink() else place.absolute()
    run = RunDir.open(folder)
    with run.lock():
        manifest = read_manifest(run.read_manifest(), file=str(folder / MANIFEST))
        if manifest.warnings is not ABSENT and manifest.status == "error" and not manifest.eventCount:
            raise CheckFailed(f"{manifest.error}; no fork was made")
        redact = make_redactor(before.redaction.profile, (), before.redaction.salt_bytes)
        fork = Fork(
            parent=ForkParent(
                captureId=before.captureId,
                path=os.path.relpath(parent.path.resolve(), target.parent.resolve() / target.name),
                events=0,
                eventHash=digest_of_bytes(b""),
                eventsHash=f"sha256:{sha256().hexdigest()}",
                logHash=before.integrity.eventsHash,
            ),
            at=plan.at,
            stored="whole",
            shares=shares,
            change=_redacted_change(plan.change, redact) if plan.change.is_any else ABSENT,
            approximate=Approximation(notCompared=_not_compared(results)),
        )
        manifest = msgspec.structs.replace(manifest, fork=fork)
        run.replace_manifest(write_manifest(manifest))
    refuse_taken(target)
    target.parent.mkdir(parents=True, exist_ok=True)
    become_folder(folder, target)
    return manifest


def _redacted_change(change: ForkChange, redactor: Redactor) -> dict[str, JsonValue]:
    text = encode_clean(msgspec.to_builtins(change))
    redacted: dict[str, JsonValue] = msgspec.json.decode(redactor.redact_json(text))
    return redacted

"""A run that is being replayed."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import replace
from pathlib import Path
from time import time
from types import TracebackType
from typing import Final, Self

from reenact import seams
from reenact.boundary import RunMode, current_lane, enter_context, open_contexts
from reenact.errors import Diverged, ReenactError, StoreError
from reenact.formats.divergence import ReplayDivergence
from reenact.formats.record import ABSENT
from reenact.formats.replay_receipt import (
    SCHEMA,
    AcceptedTime,
    BesideTraffic,
    LiveCall,
    Matching,
    RefusedCall,
    RenamedValue,
    ReplayedCapture,
    ReplayReceipt,
    receipt_codec,
)
from reenact.formats.volatile import VolatileRule
from reenact.lane_name import ROOT
from reenact.process_state import hosts_beside, lane_var
from reenact.redaction import Redactor
from reenact.replayer.allow import Allow
from reenact.replayer.egress import Connect
from reenact.replayer.engine import Policy, ReplayEngine
from reenact.replayer.fingerprint import fingerprint
from reenact.replayer.guard import Guard, run_unguarded
from reenact.replayer.source import LaneTest, ReplaySource, every_lane
from reenact.replayer.step import OnUnmatched, diverged
from reenact.run.capturing import without_places
from reenact.run.evidence import RunEvidence
from reenact.run.redact import Redact, make_redactor, profile_and_secrets
from reenact.run.rules import project_beside, project_rules
from reenact.run.run import Run
from reenact.run.zone import zone_of_run
from reenact.seams import probes, stdlib
from reenact.seams.entered import ExecutedFiles
from reenact.seams.serving import asks_server_of_run, is_served_here
from reenact.seams.stdlib import process
from reenact.seams.stdlib.digests import watch_digests
from reenact.seams.stdlib.draws import Draws, watch_draws
from reenact.seams.stdlib.places import workspace_known
from reenact.seams.stdlib.wall_clock import wall_clock_of_run
from reenact.seams.typed import typed_input
from reenact.store.outfile import write_output
from reenact.store.reader import read_run_start
from reenact.volatile.beside import NAMED
from reenact.volatile.places import own_places, working_folder
from reenact.workspace.history import WorkspaceHistory
from reenact.workspace.replaying import WorkspaceReplay

_MOST_FILES: Final = 5
STALL_S: Final = 10.0
"""How much longer than recorded a call may wait that has no recorded answer."""
_HASH_SEED: Final = "PYTHONHASHSEED"


def open_source(
    path: str | Path, is_ours: LaneTest = every_lane, root: str = ROOT, *, runs_programs: bool = False
) -> ReplaySource:
    """Open the capture in *path* with the rules of the project, for one replay."""
    return ReplaySource(path, is_ours, root, project_beside(Path(working_folder())), runs_programs)


class ReplayRun(Run):
    """A run that is being replayed, offline."""

    mode: RunMode = "replay"
    make_engine: Callable[..., ReplayEngine] = ReplayEngine

    def __init__(
        self,
        path: str | Path,
        *,
        policy: Policy = "strict",
        on_unmatched: OnUnmatched = "error",
        redact: Redact = None,
        allow: Allow | None = None,
        passthrough: Collection[str] = (),
        volatile: Iterable[VolatileRule] = (),
        stall_s: float = STALL_S,
        receipt_path: Path | None = None,
        on_divergence: Callable[[ReplayDivergence], None] | None = None,
        is_ours: LaneTest = every_lane,
        is_causal: bool = False,
        root: str = ROOT,
        find_root: Callable[[], str] | None = None,
        within: str | None = None,
        evidence: RunEvidence | None = None,
        workspace: Path | None = None,
        repository: Path | None = None,
        compares_end: bool = False,
        runs_programs: bool = False,
        clock_shift_s: float | None = None,
        source: ReplaySource | None = None,
    ) -> None:
        """*is_ours* selects the recorded lanes whose calls are expected in this process.

        With *is_causal* a call must not come before one that had ended by then in the recording. If several
        processes replay a run, *root* is the first lane of this one, unless *find_root* finds another at the
        first call, and *within* is the call that contains it. *evidence* says whether names in requests were
        generated; without it, only names that are drawn here count as generated. *workspace* is the folder in
        which the run works, with the recorded files of the start; with *compares_end* its files are compared
        here at the end, otherwise by the parent process. *repository* is the git repository with the files
        that the capture only names. With *runs_programs*, programs that the recorded run talked to over
        sockets are run again. *clock_shift_s* moves the wall clock of the process. *source* is the capture,
        if it is open already.
        """
        super().__init__()
        source = source or open_source(path, is_ours, root, runs_programs=runs_programs)
        source.reader.check_blobs(source.blob_digests())
        self.manifest = source.manifest()
        _, values = profile_and_secrets(redact)
        redaction = self.manifest.redaction
        redactor = make_redactor(redaction.profile, values, redaction.salt_bytes)
        is_in_process = evidence is None  # a command is replayed with the recorded hash seed
        if evidence is None:
            places = own_places(str(workspace) if workspace is not None else None)
            evidence = RunEvidence("none", draws=Draws(), places=places)
        self._evidence = evidence
        self._engine = self.make_engine(
            source,
            redactor,
            policy=policy,
            on_unmatched=on_unmatched,
            passthrough=passthrough,
            volatile=[*project_rules(Path(working_folder())), *volatile],
            stall_s=stall_s,
            is_causal=is_causal,
            on_divergence=on_divergence,
            find_root=find_root,
            evidence=self._evidence,
            left_behind=_find_left_behind(source) if workspace is None else (),
        )
        if workspace is not None:
            history = WorkspaceHistory(source.reader, repository=repository, aside=run_unguarded)
            self._engine.files = self.make_files(history, workspace, redactor)
        self._engine.orders_sets_anew = is_in_process and os.environ.get(_HASH_SEED, "random") == "random"
        self._engine.has_unused_files = workspace is None and WorkspaceHistory.has_one(source.reader)
        self._compares_end = compares_end
        self._clock_shift_s = clock_shift_s
        self._within = within
        self._redactor = redactor
        self._stand_ins = self.manifest.standIns or stdlib.NOTHING
        self._passthrough = sorted(passthrough)
        self._allow = replace(
            allow or Allow(),
            is_served_here=is_served_here,
            is_client=self._note_client,
            programs=process.run_again,
        )
        self._guard = Guard(self._allow, self._is_guarded, redact=redactor.redact_arguments)
        self._receipt_path = receipt_path
        self._entered = ExecutedFiles(self._engine)
        self.not_entered = ""
        """Files of the project whose code ran in the recording but not here; known at the end."""
        self._open = ExitStack()

    def make_files(self, history: WorkspaceHistory, root: Path, redactor: Redactor) -> WorkspaceReplay:
        """The files in *root*, in which the run works."""
        return WorkspaceReplay(history, root, redactor, self._engine.likeness.places)

    def arguments(self) -> list[str]:
        """The command line of this process, as a recording has it."""
        return without_places(self._redactor.redact_arguments(sys.orig_argv))

    def _note_client(self, words: Sequence[str]) -> bool:
        """Whether the program *words* is a client of a server of this run; such a program really runs."""
        if not asks_server_of_run(words):
            return False
        note = f"{os.path.basename(words[0])} was run: it is given the address of a server of this run"
        if note not in self.notes:
            self.notes.append(note)
        return True

    def redact(self, text: str) -> str:
        """*text* redacted like the recording."""
        return self._redactor.redact_text(text)

    @property
    def notes(self) -> list[str]:
        """Remarks that are no divergences, such as outcomes out of recorded order."""
        return self._engine.notes

    @property
    def answered(self) -> int:
        """The number of recorded calls answered so far, also inside other calls."""
        return sum(call.taken for call in self._engine.source.calls)

    def __enter__(self) -> Self:
        for attached in self.attachments():
            self._open.enter_context(attached)
        self._evidence.begin(time())
        if threading.current_thread() is threading.main_thread():
            self._engine.interrupt = self._interrupt
        return self

    def _interrupt(self) -> None:
        """Interrupt the process like Ctrl-C, to end an endless wait; the run then reports the divergence."""
        if callable(signal.getsignal(signal.SIGINT)):
            self.notes.append("the agent did not go on after the first difference, and was interrupted")
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    @property
    def context(self) -> ReplayEngine:
        return self._engine

    def attachments(self) -> Iterable[AbstractContextManager[object]]:
        """The patches and hooks that route the calls of this process to us, and the guard."""
        yield self._guard  # below the seams, which answer some calls that it would refuse
        began = read_run_start(self._engine.source.reader)
        yield zone_of_run(began)
        yield typed_input(began.terminal or ())
        if self._clock_shift_s is not None:
            self._evidence.clock_shift_s = self._clock_shift_s
            yield wall_clock_of_run(self._clock_shift_s)
        yield seams.attach_seams()
        yield hosts_beside.holding(project_beside(Path(working_folder())))
        yield stdlib.attach_stdlib(self._stand_ins, self._engine)
        yield workspace_known(self._engine.files.root if self._engine.files is not None else None)
        if self._evidence.draws is not None:
            yield watch_draws(self._evidence.draws)
            yield watch_digests(self._evidence.digests)
        yield probes.record_probes(self._engine, self._is_probe)
        yield enter_context(self._engine, self._within)
        yield self.watch_executed_files()

    def watch_executed_files(self) -> ExecutedFiles:
        """Watch for code of the files whose code ran in the recording."""
        source = self._engine.source
        recorded = source.data(len(source.reader)).get("entered", ()) if source.is_ours(ROOT) else ()
        self._entered.is_whole = self.is_test
        return self._entered.restrict(recorded, lambda: self._engine.has_diverged)

    def _is_probe(self, host: str, port: int) -> bool:
        probed = self._engine.source.probed
        return f"{host}:{port}" in probed or (bool(probed) and not self._allow.permits(Connect(host, port)))

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._engine.has_left_threads():
            # Threads that go on are not waited for; their calls are refused until the process ends.
            self._engine.note("threads of the run went on when it ended; what they did then is not known")
            self._guard.__enter__()
        self._open.close()
        if isinstance(error, Exception) and not isinstance(error, ReenactError):
            self._explain_failure(error)
        before_end = self._engine.divergences()
        output_hash = self._engine.finish(self.final_output, error)
        if self._compares_end and error is None and not self._engine.divergences():
            self._engine.compare_files_at_end()
        self.divergences = self._engine.divergences()
        if not self.divergences and error is None:
            self._note_unentered()
        hosts = self._engine.source.beside_hosts
        refused = self._guard.blocked
        self._beside = [call for call in refused if call.is_to(hosts)]
        self.blocked = [call for call in refused if call not in self._beside]
        self.receipt = self._make_receipt(output_hash)
        unwritten = self._write_receipt(self.receipt)
        if self._engine.policy == "strict" and not isinstance(error, Diverged):
            # A divergence at the end may be caused by an error of the agent, which then comes first.
            self._raise_latched(self.divergences if error is None else before_end, error)
        if unwritten is not None and error is None:
            raise unwritten

    def _explain_failure(self, error: Exception) -> None:
        """Add a hint to a new failure: it may come from a tool that was answered instead of run."""
        tools = sorted(set(self._engine.tools_not_run()))
        if not tools or self._engine.source.data(len(self._engine.source.reader)).get("status") != "ok":
            return
        shown = ", ".join(tools[:_MOST_FILES]) + (" and others" if len(tools) > _MOST_FILES else "")
        error.add_note(
            f"reenact: answered from the recording, not run: {shown}. If what failed looks for what a tool "
            'writes, such as your own database, do not mark it, or mark it @reenact.tool(effects="run").'
        )

    def _note_unentered(self) -> None:
        """Note code that ran in the recording but not here, because its call was answered."""
        missing = sorted(self._entered.missing.difference(map(self.redact, self._entered.files)))
        if missing and self._entered.is_known:
            shown = ", ".join(missing[:_MOST_FILES]) + (" and others" if len(missing) > _MOST_FILES else "")
            missed = f"nothing of {shown} ran in this replay, although it did when it was recorded"
            self.not_entered = self.redact(missed)
            self.notes.append(self.not_entered)

    def _write_receipt(self, receipt: ReplayReceipt) -> StoreError | None:
        """Write the receipt; an error while writing does not hide the result of the replay."""
        if self._receipt_path is None:
            return None
        try:
            write_output(self._receipt_path, receipt_codec.to_bytes(receipt) + b"\n")
        except StoreError as error:
            self.warnings.append(str(error))
            return error
        return None

    def _raise_latched(self, divergences: list[ReplayDivergence], error: BaseException | None) -> None:
        """Raise the first divergence again, in case the agent swallowed or wrapped it."""
        if self.blocked:
            raise self.blocked[0].error() from error
        if divergences:
            raise diverged(divergences[0]) from error

    def _is_guarded(self) -> bool:
        if self._engine.is_over:  # only threads that the run has started
            started = lane_var.get()
            return started is not None and started.context is self._engine
        lane = current_lane()
        if lane is None:
            return True
        return lane.context is self._engine and not self._engine.is_live(lane)

    def _list_refused_beside(self) -> list[BesideTraffic]:
        """Refused connections to hosts that the project excludes from runs; they are no divergences."""
        tried = Counter(f"{call.kind} {call.target}" for call in self._beside)
        return [BesideTraffic(request=what, what=NAMED, recorded=0, made=n) for what, n in tried.items()]

    def _make_receipt(self, output_hash: str | None) -> ReplayReceipt:
        manifest = self._engine.source.manifest()
        redacted = self._redactor.redact_text
        return ReplayReceipt(
            schema=SCHEMA,
            capture=ReplayedCapture(
                captureId=manifest.captureId,
                eventsHash=manifest.integrity.eventsHash,
                eventCount=manifest.eventCount,
            ),
            fingerprint=fingerprint(),
            matching=Matching(
                policy=self._engine.policy,
                redaction=manifest.redaction.profile,
                passthroughTools=self._passthrough,
                volatile=list(self._engine.volatile),
                onUnmatched=self._engine.on_unmatched if self._engine.on_unmatched != "error" else ABSENT,
            ),
            divergences=[divergence.to_json() for divergence in self.divergences],
            liveCallsRefused=[
                RefusedCall(kind=call.kind, target=redacted(call.target), frame=call.frame)
                for call in self.blocked
            ],
            liveCalls=[
                LiveCall(kind=call.kind, target=redacted(call.name)) for call in self._engine.live_calls
            ]
            or ABSENT,
            notes=list(self.notes),
            beside=[*self._engine.beside.list_traffic(), *self._list_refused_beside()] or ABSENT,
            finalOutputHash=output_hash,
            verdict="diverged" if self.divergences or self.blocked else "reproduced",
            replayedAt=int(time() * 1000),
            acrossTasks=self._engine.across_tasks(),
            renamed=[
                RenamedValue(recorded=each.recorded, live=each.live, eventSeq=each.seq, jsonPath=each.path)
                for each in self._engine.likeness.renamed
            ]
            or ABSENT,
            times=[
                AcceptedTime(recorded=each.recorded, live=each.live, eventSeq=each.seq, jsonPath=each.path)
                for each in self._engine.likeness.times
            ]
            or ABSENT,
        )


def _find_left_behind(source: ReplaySource) -> tuple[str, ...]:
    """The files that the recorded run wrote and that exist now."""
    data = source.data(len(source.reader)) if len(source.reader) else {}
    wrote = data.get("wrote") or ()
    return tuple(place for place in wrote if os.path.isfile(os.path.expanduser(place)))


def _after_fork_in_child() -> None:
    for context in open_contexts():
        if isinstance(context, ReplayEngine):
            context.turns.close()


os.register_at_fork(after_in_child=_after_fork_in_child)

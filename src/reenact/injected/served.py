"""The gateway's part of a command's run: it lives in the reenact process, while the command runs."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec

from reenact.boundary import Call, Context, enter_context
from reenact.errors import Diverged
from reenact.forks.answering import AnsweringDerivingContext, Answers
from reenact.forks.engine import ForkPart
from reenact.forks.run import ForkRun
from reenact.formats.capture import BLOB_THRESHOLD_BYTES, RedactionProfile
from reenact.formats.volatile import VolatileRule
from reenact.gateway.lane import LANE, is_below, is_of_gateway
from reenact.gateway.server import UPSTREAM_TIMEOUT_S, Gateway
from reenact.gateway.upstreams import Upstreams
from reenact.injected.first_call import FirstCallSink
from reenact.process_state import hosts_beside
from reenact.recorder.derived import DerivingContext
from reenact.recorder.eventlog import ProcessNames
from reenact.recorder.joining import part_of
from reenact.redaction import Redactor
from reenact.replayer.engine import Policy
from reenact.replayer.source import LaneTest, RecordedCall, talking_programs
from reenact.replayer.step import OnUnmatched
from reenact.run.capturing import SURROUNDINGS_VARIABLE, CaptureRun, Identity, without_places
from reenact.run.evidence import RunEvidence
from reenact.run.given import Given, changed_files
from reenact.run.provenance import origin_of_run
from reenact.run.replaying import STALL_S, ReplayRun
from reenact.run.rules import project_beside
from reenact.run.updating import MatchingFirst, UpdatePart, UpdateRun
from reenact.seams import stdlib
from reenact.store.blobs import BlobStore
from reenact.store.durable import Durability
from reenact.store.reader import CaptureReader
from reenact.values.codec import from_json
from reenact.volatile.places import own_places, working_folder
from reenact.workspace.recording import WorkspaceOrder
from reenact.workspace.replaying import WorkspaceFolder
from reenact.workspace.scan import Scanner


class ServedCapture(CaptureRun):
    """Records the calls that come through the gateway; no seams are attached in this process."""

    make_context = DerivingContext

    def __init__(
        self,
        path: Path,
        words: Sequence[str],
        upstreams: Upstreams,
        *,
        redact: RedactionProfile | None,
        durability: Durability,
        volatile: Sequence[VolatileRule] = (),
        identity: Identity,
        workspace: WorkspaceOrder | None = None,
    ) -> None:
        self._sink = FirstCallSink(path, durability=durability, beside=lambda: part_of(path, "gateway"))
        super().__init__(
            self._sink,
            redact=redact,
            blob_threshold_bytes=BLOB_THRESHOLD_BYTES,
            stand_ins=stdlib.NOTHING,
            volatile=volatile,
            on_warning=None,
            identity=identity,
            find_names=lambda: ProcessNames(call_prefix=LANE),
            origin=origin_of_run(),
            workspace=workspace,
        )
        self._words = words
        self._upstreams = upstreams
        self._began_s = time.time()

    def attachments(self) -> Iterable[AbstractContextManager[object]]:
        return (hosts_beside.holding(project_beside(Path.cwd())),)

    def redacted_words(self) -> list[str]:
        """The command line without secrets."""
        return self._redactor.redact_arguments(self._words)

    def begin_files(self, order: WorkspaceOrder, blobs: BlobStore, index: Path, tree_file: Path) -> Scanner:
        """Scan the files before the command starts; every recording process begins with this index."""
        scanner = order.scanner(blobs.put, self._redactor)
        above = tuple(tuple(map(self._redactor.redact_text, texts)) for texts in order.above)
        order = msgspec.structs.replace(order, above=above)  # the order is written to a file
        start = order.begin(scanner)
        scanner.index.save(index, self._redactor)
        self._workspace = msgspec.structs.replace(
            order, start=start, index=str(index), tree_file=str(tree_file)
        )
        return scanner

    @property
    def workspace(self) -> WorkspaceOrder | None:
        """The files to record, and their state at the start."""
        return self._workspace

    def surroundings(self) -> dict[str, object]:
        argv = self.redacted_words()
        facts = {"upstreams": dict(self._upstreams), **self.describe_place()}
        if os.environ.get(SURROUNDINGS_VARIABLE):
            return {"argv": argv, "cwd": str(Path.cwd())} | facts
        return {"argv": without_places(argv)} | facts

    def list_written(self) -> list[str]:
        """The files in the working folder that changed since the run began; who wrote them is unknown."""
        return changed_files(Path(working_folder()), since_s=self._began_s)

    @contextmanager
    def serve(
        self, *, port: int, on_call: Callable[[], None], upstream_timeout_s: float = UPSTREAM_TIMEOUT_S
    ) -> Iterator[Gateway]:
        """Run a recording gateway for the block."""
        self.__enter__()
        try:
            with Gateway(
                self.context,
                self._upstreams,
                port=port,
                on_call=on_call,
                upstream_timeout_s=upstream_timeout_s,
            ) as gateway:
                yield gateway
        except BaseException as error:
            self._close(error)
            raise
        self._close(None)

    def _close(self, error: BaseException | None) -> None:
        if self._sink.is_open:
            self.__exit__(None if error is None else type(error), error, None)
        else:
            self.abandon()


class ServedAnswers(ServedCapture):
    """Records the calls of a fork of a transcript, and answers them from there."""

    make_context = AnsweringDerivingContext

    def __init__(self, *args: Any, make_answers: Callable[[Redactor], Answers], **options: Any) -> None:
        super().__init__(*args, **options)
        self.answers = make_answers(self._redactor)
        assert isinstance(self._context, AnsweringDerivingContext)
        self._context.answers = self.answers


class ServedReplay(ReplayRun):
    """Replays the gateway's calls; it needs no seams and no guard, since it makes no live call."""

    def __init__(
        self,
        path: Path,
        upstreams: Upstreams,
        *,
        policy: Policy,
        on_unmatched: OnUnmatched = "error",
        volatile: Sequence[VolatileRule] = (),
        stall_s: float = STALL_S,
        words: Sequence[str] = (),
        input_copy: Path | None = None,
        workspace: WorkspaceFolder | None = None,
    ) -> None:
        """*words* is the command line; the command runs in *workspace*, if there is one."""
        super().__init__(
            path,
            policy=policy,
            on_unmatched=on_unmatched,
            volatile=volatile,
            stall_s=stall_s,
            is_ours=_replayed_lanes(path),
            is_causal=True,
            evidence=_make_evidence(words, input_copy, workspace),
            workspace=workspace.root if workspace is not None else None,
            repository=workspace.repository if workspace is not None else None,
        )
        self._upstreams = upstreams

    def attachments(self) -> Iterable[AbstractContextManager[object]]:
        return _attach_gateway(self.context)

    @contextmanager
    def serve(self, *, port: int, on_call: Callable[[], None]) -> Iterator[Gateway]:
        """Run a gateway that answers from the capture, for the block."""
        self.__enter__()
        try:
            ends = self.context.source.stream_ends()
            with Gateway(self.context, self._upstreams, port=port, on_call=on_call, ends=ends) as gateway:
                yield gateway
        finally:
            with suppress(Diverged):  # it is in the receipt, and the command explains it
                self.__exit__(None, None, None)


def _make_evidence(
    words: Sequence[str], input_copy: Path | None, workspace: WorkspaceFolder | None
) -> RunEvidence:
    """The evidence for a command: its input and folders are known, its random draws are not."""
    began_s = time.time()
    given = Given(words, os.environ, _cwd_of(workspace), before_s=began_s, input_copy=input_copy)
    return RunEvidence("any", given=given, began_s=began_s, places=_folders_of(workspace))


def _folders_of(workspace: WorkspaceFolder | None) -> dict[str, str]:
    """The folders of the command; it starts in its *workspace*, if there is one."""
    if workspace is None:
        return own_places()
    return own_places(str(workspace.root)) | ({"cwd": str(workspace.cwd)} if workspace.cwd else {})


def _cwd_of(workspace: WorkspaceFolder | None) -> Path:
    return (workspace.cwd if workspace is not None else None) or Path.cwd()


def _attach_gateway(context: Context) -> Iterable[AbstractContextManager[object]]:
    """What an answering gateway attaches: the project's telemetry hosts, and *context* as the current run."""
    return hosts_beside.holding(project_beside(Path.cwd())), enter_context(context)


def _add_written(recorded: list[str], cwd: Path, began_s: float) -> list[str]:
    """The files that the *recorded* run wrote, and those that changed in *cwd* since this one began."""
    written = changed_files(cwd, since_s=began_s)
    return [*recorded, *(place for place in written if place not in recorded)]


def _replayed_lanes(path: Path) -> LaneTest:
    """Test for the lanes whose calls come through the gateway in replay.

    Calls of programs below a Python process come only if replay runs these programs: because the run talked
    with them over sockets, or because a process became the program (``os.exec``), so that no recorded call
    can stand for it.
    """
    reader = CaptureReader(path)
    if talking_programs(reader) or not any(b'"source":"process"' in line for line in reader.lines()):
        return lambda lane: is_of_gateway(lane) or is_below(lane)
    return is_of_gateway


class ServedFork(ForkRun):
    """The gateway's part of a fork; calls without a recorded answer go to *live_upstreams*."""

    def __init__(
        self,
        path: Path,
        upstreams: Upstreams,
        part: ForkPart,
        *,
        live_upstreams: Upstreams,
        volatile: Sequence[VolatileRule] = (),
        words: Sequence[str] = (),
        input_copy: Path | None = None,
        workspace: WorkspaceFolder | None = None,
    ) -> None:
        super().__init__(
            path,
            part,
            volatile=volatile,
            is_ours=is_of_gateway,
            is_causal=True,
            evidence=_make_evidence(words, input_copy, workspace),
            workspace=workspace.root if workspace is not None else None,
            repository=workspace.repository if workspace is not None else None,
        )
        self._upstreams = upstreams
        self._live_upstreams = live_upstreams
        self._began_s = time.time()
        self._cwd = _cwd_of(workspace)

    def attachments(self) -> Iterable[AbstractContextManager[object]]:
        return _attach_gateway(self.context)

    def list_written(self) -> list[str]:
        return _add_written(self.context.recorded_files(), self._cwd, self._began_s)

    @contextmanager
    def serve(self, *, port: int, on_call: Callable[[], None]) -> Iterator[Gateway]:
        """Run the gateway for the block."""
        self.__enter__()
        try:
            with Gateway(
                self.context,
                self._upstreams,
                live_upstreams=self._live_upstreams,
                port=port,
                on_call=on_call,
                ends=self.context.source.stream_ends(),
            ) as gateway:
                yield gateway
        finally:
            self.close(None)


class _DerivingUpdate(MatchingFirst):
    """Derives tool calls and results from recorded and from new model traffic."""

    make_recorder = DerivingContext
    recorder: DerivingContext

    def note_recorded_answer(self, call: Call, call_id: str) -> None:
        if call.kind == "llm" and call_id in self._recorded:
            self.recorder.derive_results(call)
            self.recorder.derive_recorded_calls(call_id, *self._recorded_answer(call_id))

    @cached_property
    def _recorded(self) -> dict[str, RecordedCall]:
        return {call.call_id: call for call in self.source.calls if call.call_id is not None}

    def _recorded_answer(self, call_id: str) -> tuple[str, dict[str, object]]:
        recorded = self._recorded[call_id]
        data = self.source.data(recorded.outcome_seq) if recorded.outcome_seq else {}
        return recorded.lane, from_json(self.source.reader.resolve(data))


class ServedUpdate(UpdateRun):
    """The gateway's part of an update: calls that the capture cannot answer go upstream."""

    make_engine = _DerivingUpdate

    def __init__(
        self,
        path: Path,
        upstreams: Upstreams,
        blobs: Path,
        *,
        volatile: Sequence[VolatileRule] = (),
        workspace: WorkspaceFolder | None = None,
        tree_file: str | None = None,
    ) -> None:
        places = _folders_of(workspace) if workspace is not None else None
        part = UpdatePart(str(blobs), is_of_gateway, is_gateway=True, places=places, tree_file=tree_file)
        super().__init__(
            path,
            volatile=volatile,
            part=part,
            workspace=workspace.root if workspace is not None else None,
            repository=workspace.repository if workspace is not None else None,
        )
        self._upstreams = upstreams
        self._began_s = time.time()
        self._cwd = _cwd_of(workspace)

    def attachments(self) -> Iterable[AbstractContextManager[object]]:
        return _attach_gateway(self.context)

    def list_written(self) -> list[str]:
        return _add_written(self.context.recorded_files(), self._cwd, self._began_s)

    @contextmanager
    def serve(self, *, port: int, on_call: Callable[[], None]) -> Iterator[Gateway]:
        """Run the gateway for the block."""
        self.__enter__()
        try:
            ends = self.context.source.stream_ends()
            with Gateway(self.context, self._upstreams, port=port, on_call=on_call, ends=ends) as gateway:
                yield gateway
        finally:
            self.__exit__(None, None, None)

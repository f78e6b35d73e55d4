"""Recording: every call that crosses the boundary becomes events.

A failure to record never reaches the agent: the run continues unrecorded, a warning is emitted, and the
manifest marks the capture as incomplete.
"""

from __future__ import annotations

import itertools
import logging
import re
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, partial
from hashlib import sha256
from mmap import mmap
from time import time_ns
from typing import Any, Final, NamedTuple

import msgspec

from reenact.boundary import (
    A,
    Call,
    CallKind,
    DescribeEnd,
    HeldTimer,
    Instant,
    Lane,
    RunMode,
    Step,
    T,
    WaitFor,
    running_in,
)
from reenact.canonical import JsonValue, digest_of_bytes, encode_clean
from reenact.errors import ReenactError, StoreError, UsageError
from reenact.formats.capture import (
    FIRED,
    JOINED,
    NO_MODEL,
    RECORDING_FAILED,
    SHARED,
    STILL_RUNNING,
    CaptureManifest,
    CaptureSeed,
    Imported,
    Model,
    RunStatus,
)
from reenact.formats.record import ABSENT, Absent
from reenact.library import is_pool_worker
from reenact.process_state import this_process
from reenact.recorder.eventlog import EventLog, ProcessNames
from reenact.recorder.order import TaskOrder, note_shared
from reenact.recorder.payloads import Payloads, Sharing
from reenact.recorder.sink import CaptureSink, Ending, SyncedSink
from reenact.recorder.step import CaptureStep, describe_leaving
from reenact.redaction import Redactor
from reenact.store.durable import leave_to_parent_on_fork
from reenact.values.codec import to_ordered_text, to_text
from reenact.values.objects import message_of
from reenact.workspace.recording import LatestTree, WorkspaceRecorder
from reenact.workspace.scan import Scanner

log: Final = logging.getLogger("reenact.recorder")

_Raw = msgspec.Raw
_decode: Final = msgspec.json.Decoder().decode

_FORKED: Final = (
    "this process was forked from the one being recorded, and its calls are not recorded; "
    "start a run of its own in it"
)
_CHILD_CALLED: Final = (
    "a process that was forked during the run made calls, which are not recorded; record the whole command "
    "with `reenact record`, or use threads"
)


class _Outcome(NamedTuple):
    """How the outcome of one kind of call is written."""

    type: bytes
    answer: str
    """The member of the event that holds the answer."""
    has_digest: bool = False


_OUTSIDE: Final = _Outcome(b"nondeterministic", "value", has_digest=True)
_OUTCOMES: Final[dict[CallKind, _Outcome]] = {
    "tool": _Outcome(b"tool_result", "result"),
    "llm": _Outcome(b"llm_response", "response"),
    "network": _OUTSIDE,
    "process": _OUTSIDE,
}
_INSTANTS: Final = {"nondeterministic": b"nondeterministic", "state_mutation": b"state_mutation"}

_MAY_WRITE: Final = frozenset({"tool", "process"})
"""Kinds of calls that may change files."""
UNKNOWN_MODEL: Final = {"provider": "unknown", "model": "unknown"}
_OPAQUE: Final = re.compile(rb'"\$py":"opaque","type":"([^"]*)"')
_NO_ANSWER: Final = {"stopReason": None, "usage": None}


class CaptureContext:
    """The context of a run that is being recorded."""

    mode: RunMode = "capture"
    sends_in_pieces = True
    latest_model_request: object = None

    def __init__(
        self,
        sink: CaptureSink,
        seed: CaptureSeed,
        redactor: Redactor,
        *,
        on_warning: Callable[[str], None] | None = None,
        find_names: Callable[[], ProcessNames] = ProcessNames,
        first_call: int = 1,
        now_ns: Callable[[], int] = time_ns,
    ) -> None:
        """*find_names* is called at the first call; each of several processes has its own names."""
        self._now_ns = now_ns
        self._find_names = find_names
        self._sink = sink
        self._has_begun = True
        """Whether the sink did not fail when it was to start."""
        self._seed = seed
        self._redactor = redactor
        self._on_warning = on_warning
        self._payloads = Payloads(redactor, sink, threshold_bytes=int(seed.blobThresholdBytes or 0))
        self._events = EventLog(sink, seed, self._place, now_ns)
        self._may_defer = not isinstance(sink, SyncedSink)
        """Whether a call may be sent before it is written; never where a machine crash must lose no call."""
        self._call_numbers: Iterator[int] = itertools.count(first_call)
        self._first_call = first_call
        self._openings = itertools.count(1)
        self._told_opaque: set[tuple[str, str]] = set()
        self._open_streams: dict[str, Callable[[], None]] = {}
        """By call id: closes a stream that was not read to its end."""
        self._order = TaskOrder(self._events, is_recording=lambda: self._failure is None)
        self._sharing = Sharing()
        self._model = NO_MODEL
        self._files: WorkspaceRecorder | None = None
        """Records how the run's files change; ``None`` where files are not recorded."""
        self._failure: str | None = None
        """Why recording stopped; ``None`` while it works."""
        self.failed_by: BaseException | None = None
        """The exception that stopped the recording."""
        self._is_forked = False
        self._child_called = mmap(-1, 1)
        """Shared with forked children: whether one of them made a call."""
        self._missed: str | None = None
        """The first call that was not recorded because it could not be attributed to a run."""
        self.warnings: list[str] = []

    @property
    def seq(self) -> int:
        """The number of the latest event."""
        return self._events.seq

    def start(self, created_at_ms: int | None = None) -> None:
        """Begin the run; raises :class:`~reenact.errors.ReenactError` where the destination cannot be used.

        Any other exception of the sink stops the recording, not the agent, like all later ones. An imported
        run began at *created_at_ms*, which is not known before its source is read.
        """
        if created_at_ms is not None:
            self._seed = msgspec.structs.replace(self._seed, createdAt=created_at_ms)
        try:
            self._sink.start(self._seed)
        except ReenactError:
            raise
        except Exception as error:
            self._fail(error)
            self._has_begun = False
        leave_to_parent_on_fork(self)

    def record_files(
        self,
        scanner: Scanner,
        tree: str,
        find_recorded: Callable[[str], str] = str,
        tree_file: str | None = None,
    ) -> None:
        """Record from now on how the files change; *tree* is their state at the start.

        *tree_file* is the file through which several recording processes share the latest tree.
        """
        shared = LatestTree(tree_file) if tree_file else None
        self._files = WorkspaceRecorder(scanner, tree, self._record_tree, self.warn, find_recorded, shared)

    def note_files_before(self, call_id: str | None, parent: str | None, *, is_written: bool = True) -> None:
        """Note the files before a recorded call runs again; an event is written if *is_written*."""
        if self._files is not None and call_id is not None:
            (self._files.scan_before if is_written else self._files.note_begin)(call_id, parent)

    def note_files_after(self, call_id: str | None, *, may_write: bool) -> None:
        """Note the files after the call has returned."""
        if self._files is not None and call_id is not None:
            self._files.scan_after(call_id, may_write=may_write)

    def _record_tree(self, data: dict[str, JsonValue]) -> None:
        try:
            self._events.append(b"state_mutation", self._redactor.redact_json(encode_clean(data)))
        except Exception as error:
            self._fail(error)

    def leave_to_parent(self) -> None:
        """In a forked child: stop recording without taking a lock that another thread may have held."""
        self._failure, self._is_forked = _FORKED, True
        self._events.forget_deferred()

    # The boundary's side

    def step(self, call: Call[A], lane: Lane) -> Step[A]:
        step: CaptureStep[A] = CaptureStep(
            self, call, f"{self._names.call_prefix}{next(self._call_numbers)}", lane
        )
        kind = call.kind
        if kind == "llm":
            self.latest_model_request = call.request
        if self._failure is not None:
            self._tell_forked()
            return step
        if self._files is not None and not call.beside:
            self._files.scan_before(step.call_id, lane.within)
        try:
            data: dict[str, object] = {"callId": step.call_id, "lane": self._names.lane(lane)}
            if lane.within is not None:
                data["parent"] = lane.within
            if kind == "tool":
                data["tool"] = call.name
                if call.facts:
                    data |= self._payloads.redact_facts(call)
                data["args"] = self._payloads.redact_request(call.request, is_json=call.is_json)
                self._events.append(b"tool_call", encode_clean(data))
            elif kind != "llm":
                self._record_outside_call(call, data)
            elif call.may_leave_first is not None and self._may_defer and call.may_leave_first():
                step.leaves_first = step.is_deferred = True
                self._events.defer(partial(self._record_model_call, step, data))
            else:
                self._record_model_call(step, data)
        except Exception as error:
            self._fail(error)
        return step

    def instant(self, instant: Instant, lane: Lane, produce: Callable[[], T]) -> T:
        call_id = f"{self._names.call_prefix}{next(self._call_numbers)}" if instant.is_read else None
        try:
            if call_id is None:
                value = produce()
            else:
                with running_in(lane.inside(call_id, lane.next_call())):
                    value = produce()
        except Exception as error:
            self._record_instant(instant, lane, None, call_id=call_id, error=error)
            raise
        self._record_instant(instant, lane, value, call_id=call_id)
        return value

    def time_passes(self, lane: Lane) -> bool:  # noqa: ARG002
        """A recorded run really waits."""
        return True

    def leaves_to_server(self, call_name: str) -> bool:  # noqa: ARG002
        return True

    def note(self, text: str) -> None:
        """Only a replay has notes."""

    def hide(self, secret: str) -> None:
        self._redactor.hide(secret)

    def refuse_unplaced(self, call: Call) -> None:
        if self._missed is None:
            self._missed = self._redactor.redact_text(
                f"{call.kind} {call.name} was called by a thread that belongs to no run while several are "
                "open; it is not recorded, start the thread inside its run"
            )
            self.warn(self._missed)

    def notice_loop(self, loop: object) -> None:
        """Recording does not need to know the loops."""

    def lane_starting(self, lane: Lane) -> None:
        """Recording notes the lane when it begins."""

    def lane_began(self, lane: Lane) -> None:
        self._order.running.add(lane)

    def lane_ending(self, lane: Lane, how: str) -> None:
        self._order.begin_end(lane, how)

    def lane_end_seen(self, lane: Lane) -> None:
        self._order.finish_end(lane)

    def lane_ended(self, lane: Lane) -> None:
        """The end was noted in :meth:`lane_ending`, before anyone could see it."""

    def task_body(self, lane: Lane, coro: object, describe: DescribeEnd) -> object:
        return self._order.watch(lane, coro, describe)

    def task_ended(self, lane: Lane, how: str) -> None:
        if lane in self._order.running:  # it never began
            self._order.note_end(lane, how)

    def wait_to_act(self, lane: Lane, act: str) -> None:
        """Recording does not hold anyone back."""

    async def async_wait_to_act(self, lane: Lane, act: str) -> None:
        """Recording does not hold anyone back."""

    def has_acted(self, lane: Lane, act: str) -> None:
        self._order.note(lane, act)

    def await_shared(self, lane: Lane) -> str | None:  # noqa: ARG002
        """Recording does not hold anyone back."""
        return None

    def note_shared(self, lane: Lane, found: str) -> None:
        if this_process.shared_order is not None:
            note_shared(this_process.shared_order, f"{self._names.lane(lane)}{SHARED}{found}")

    def note_piece(self, lane: Lane, before: object) -> object:
        return self._order.note_piece(lane, before)

    def print_piece(self, lane: Lane, write: Callable[[], object]) -> None:
        self._order.print_piece(lane, write)

    def read_wall_clock(self, lane: Lane, place: str, now_ns: int) -> int:
        self._order.note_clock(lane, place, now_ns)
        return now_ns

    def hold_timer(self, lane: Lane, name: str, timer: HeldTimer) -> bool:  # noqa: ARG002
        """Recording holds no timers."""
        return False

    def drop_timer(self, lane: Lane, name: str) -> None:
        """Recording holds no timers."""

    def timer_fired(self, lane: Lane, name: str) -> None:
        rounds = self._order.rounds_since_last()
        mark = "" if rounds is None else f"{JOINED}{rounds or ''}"
        self._order.note(lane, FIRED + name + mark)

    def timer_ran(self, lane: Lane) -> None:  # noqa: ARG002
        self._order.note_callback_end()

    def deadline(self, lane: Lane, name: str) -> WaitFor:  # noqa: ARG002
        return "its time"

    def hold_deadline(self, lane: Lane, name: str, seconds: float, passed: Callable[[], object]) -> None:
        """Recording holds no deadlines."""

    def may_give_up(self, lane: Lane) -> bool:  # noqa: ARG002
        return True

    def _place(self, lane: Lane) -> str | None:
        """The name of *lane* in the capture; ``None`` before the first call of a further process."""
        is_known = "_names" in self.__dict__ or self._find_names is ProcessNames
        return self._names.lane(lane) if is_known else None

    # The seed's side

    def record_event(self, event_type: str, data: dict[str, Any]) -> None:
        """Append an event that the caller made; one that could not be read again stops the recording."""
        if self._failure is not None:
            self._tell_forked()
            return
        try:
            text = encode_clean(self._payloads.redact_members(data))
            self._events.refuse_unreadable(event_type.encode(), text)
            self._events.append(event_type.encode(), text)
        except Exception as error:
            self._fail(error)

    def record_nondeterministic(self, source: str, key: str, value: object) -> None:
        """Record a value that the program cannot compute: a random number, an input."""
        from_outside = Instant("nondeterministic", {"source": source, "key": key})
        self.instant(from_outside, Lane(self, "0"), lambda: value)

    def next_nondeterministic(self, source: str, key: str) -> object:
        """Raise: only a replay has recorded values."""
        raise UsageError(f"{source}/{key}: the run is being recorded; values are given in replay only")

    def finalize(
        self,
        status: RunStatus,
        error: str | None,
        final_output: object,
        confidence: float | None = None,
        wrote: Sequence[str] = (),
        entered: Sequence[str] = (),
        imported: Imported | Absent = ABSENT,
    ) -> CaptureManifest | None:
        """End the run and return its manifest; ``None`` where the manifest could not be written.

        *wrote* are the files that the run wrote, *entered* the project's files whose code ran. *imported*
        names the source of an imported run.
        """
        if self._is_forked or not self._has_begun:
            return None
        workspace_end: str | None = None
        if self._failure is None:
            try:
                for leave in list(self._open_streams.values()):
                    leave()
                workspace_end = self._files.end() if self._files is not None else None
                for lane in list(self._order.running):
                    self._order.note(lane, f"{STILL_RUNNING} {lane.function}".rstrip())
                ended = self._end_text(status, error, final_output, confidence, wrote, entered)
                self._events.append(b"run_end", ended)
            except Exception as failure:
                self._fail(failure)
        if self._failure is None:
            self._check_kept()
        if self._failure is not None or self._missed is not None:
            status, error = "error", self._failure or self._missed
        elif error is not None:
            error = self._redactor.redact_text(error)
        ended_ms = self._now_ns() // 1_000_000
        self._tell_child_called()
        ending = Ending(status, ended_ms, self._model, error, tuple(self.warnings), imported, workspace_end)
        try:
            return self._sink.finalize(ending)
        except Exception as failure:
            self.warn(f"the manifest could not be written, recover the capture: {message_of(failure)}")
            return None

    def _check_kept(self) -> None:
        """Stop with a failure if the sink lost events."""
        try:
            kept = self._sink.count
            if kept == 0 and next(self._call_numbers) > self._first_call:
                raise StoreError("calls were made, but the sink kept no event")
            if 0 < kept < self._events.seq:
                raise StoreError(f"the sink kept {kept} of {self._events.seq} events")
        except Exception as error:
            self._fail(error)

    def _end_text(
        self,
        status: RunStatus,
        error: str | None,
        final_output: object,
        confidence: float | None,
        wrote: Sequence[str],
        entered: Sequence[str],
    ) -> bytes:
        data: dict[str, object] = {"status": status}
        if entered:
            data["entered"] = list(map(self._redactor.redact_text, entered))
        if wrote:
            data["wrote"] = list(map(self._redactor.redact_text, wrote))
        if confidence is not None and 0 <= confidence <= 1:
            data["confidence"] = confidence
        elif confidence is not None:
            self.warn(f"run.confidence = {confidence} is not from 0 to 1; it is not recorded")
        if error is not None:
            data["error"] = self._redactor.redact_text(error)
        if final_output is not None:
            text = self._redactor.redact_json(to_text(final_output))
            data |= {"finalOutput": self._payloads.store(text), "finalOutputHash": digest_of_bytes(text)}
        return encode_clean(data)

    def warn(self, message: str) -> None:
        """Send a warning to the log, to the listener and into the manifest."""
        message = self._redactor.redact_text(message)
        self.warnings.append(message)
        log.warning("%s", message)
        if self._on_warning is not None:
            try:
                self._on_warning(message)
            except Exception as error:
                failed = self._redactor.redact_text(message_of(error))
                log.warning("the listener for warnings failed: %s", failed)

    # Writing

    @cached_property
    def _names(self) -> ProcessNames:
        try:
            return self._find_names()
        except Exception as error:
            self._fail(error)
            return ProcessNames()

    def _record_outside_call(self, call: Call, data: dict[str, object]) -> None:
        data |= {"source": call.kind, "key": self._redactor.redact_text(call.name)}
        data |= self._payloads.redact_facts(call)
        data["request"] = self._payloads.redact_request(call.request, is_json=call.is_json)
        if call.beside:
            data["beside"] = call.beside
            if call.is_background:
                data["background"] = True
        self._events.append(b"nondeterministic", encode_clean(data))

    def _record_model_call(self, step: CaptureStep[Any], data: dict[str, object]) -> None:
        try:
            text, request, facts = self._payloads.redact_model_call(step.call)
            digest = digest_of_bytes(text)
            data |= UNKNOWN_MODEL | {"inputHash": digest} | facts | {"requestHash": digest}
            if self._model is NO_MODEL and "model" in facts:
                self._model = model_of(facts)
            # Under one lock, so that a request refers only to events written before it.
            with self._events.lock:
                shared = encode_clean(self._sharing.shrink(step.call_id, request))
                data["request"] = self._payloads.store(shared)
                self._events.append(b"llm_request", encode_clean(data))
        except Exception as error:
            self._fail(error)
        step.is_deferred = False

    def write_deferred(self) -> None:
        """Write the calls that were sent before they were recorded, in the order they were made."""
        if self._failure is None:  # in a forked child the lock may be held by a thread that does not exist
            self._events.write_deferred()

    def _record_instant(
        self,
        instant: Instant,
        lane: Lane,
        value: object,
        *,
        call_id: str | None,
        error: BaseException | None = None,
    ) -> None:
        if self._failure is not None:
            self._tell_forked()
            return
        try:
            if instant.is_plain and error is None and type(value) is not dict:  # a dict comes from a fake
                text = to_text(value)
                value_hash = f"sha256:{sha256(text).hexdigest()}"
                data = {**instant.request, "value": _Raw(text), "valueHash": value_hash}
            else:
                data = self._instant_data(instant, value, error)
            data["lane"] = self._names.lane(lane)
            if lane.within is not None:
                data["parent"] = lane.within
            if call_id is not None:
                data["callId"] = call_id
            self._events.append(_INSTANTS[instant.type], encode_clean(data))
        except Exception as failure:
            self._fail(failure)

    def _instant_data(
        self, instant: Instant, value: object, error: BaseException | None
    ) -> dict[str, object]:
        data = self._payloads.redact_members(instant.request)
        if error is not None:
            return data | {"error": self._payloads.failure(error)}
        answer = self._payloads.answer(value)
        data["value"] = answer.stored
        if instant.type == "nondeterministic":
            data["valueHash"] = digest_of_bytes(answer.text)
        return data

    def stream_began(self, call_id: str, leave: Callable[[], None]) -> tuple[int, int]:
        """Return the latest event's number and the stream's ordinal, which place the stream in replay."""
        self.write_deferred()
        self._open_streams[call_id] = leave
        return self.seq, next(self._openings)

    def record_outcome(self, step: CaptureStep[Any], error: BaseException | None) -> None:
        """Write the outcome of *step*'s call."""
        if self._failure is not None:
            self._tell_forked()
            return
        try:
            data: dict[str, Any] = {"callId": step.call_id}
            if step.gave_way is not None or step.opened is not None:
                self._put_timing(data, step, error)
            kind, text = step.call.kind, None
            if kind == "llm":
                if step.is_deferred:
                    self.write_deferred()
                if step.is_deferred:  # interrupted by Ctrl-C: an outcome without its call could not be read
                    return
                if error is None and step.recorded_pieces is None and step.exact is None:
                    # In one go, as nearly every answer can be written.
                    whole = data | _model_facts(step) | {"response": step.answer}
                    text = self._payloads.encode_if_plain(whole, "response", is_json=step.call.is_json)
            if text is None:
                self._put_outcome(data, step, error)
                text = encode_clean(data)
            self._events.append(_OUTCOMES[kind].type, text)
        except Exception as failure:
            self._fail(failure)
        if self._files is not None and self._failure is None and not step.call.beside:
            self._files.scan_after(step.call_id, may_write=step.call.kind in _MAY_WRITE)

    def _put_timing(
        self, data: dict[str, JsonValue], step: CaptureStep[Any], error: BaseException | None
    ) -> None:
        """What replay must know of when the outcome came."""
        if step.opened is not None:
            self._open_streams.pop(step.call_id, None)
            data["opened"], data["opening"] = step.opened
            if not (error and describe_leaving(error)):
                self._order.rounds_since_last()  # what comes next is counted from the stream's end
        elif step.gave_way and step.lane.has_order and not (error and describe_leaving(error)):
            rounds = self._order.rounds_since_last()
            if rounds is not None:
                data["joined"] = rounds
            if behind := self._order.count_before():
                data["behind"] = behind
        if step.gave_way is False:
            data["inline"] = True

    def _put_outcome(
        self, data: dict[str, object], step: CaptureStep[Any], error: BaseException | None
    ) -> None:
        """Put the answer or the error, redacted, into *data*."""
        kind = step.call.kind
        if kind == "tool":
            data["ok"] = error is None
        elif kind != "llm":
            data |= {"source": kind, "key": self._redactor.redact_text(step.call.name)}
        facts = _model_facts(step) if kind == "llm" else step.facts
        if facts:
            data |= self._payloads.redact_members(facts)
        if error is not None:
            data |= describe_leaving(error) or {"error": self._payloads.failure(error)}
        is_redacted = False
        # A stream that broke off has both: the answer it began with, and its error.
        if error is None or step.answer is not None:
            answer = self._payloads.answer(step.answer)
            is_redacted = answer.is_redacted
            if kind in ("tool", "process") and (found := _OPAQUE.search(answer.text)):
                self._tell_opaque(step.call.name, found[1].decode())
            data[_OUTCOMES[kind].answer] = answer.stored
            if _OUTCOMES[kind].has_digest:
                data["valueHash"] = digest_of_bytes(answer.text)
        if step.recorded_pieces is not None or step.exact is not None:
            self._put_forms(data, step, is_redacted=is_redacted)

    def _tell_opaque(self, name: str, type_name: str) -> None:
        """Log once that a replay cannot answer a call; that is no fault of the recording."""
        if (name, type_name) not in self._told_opaque:
            self._told_opaque.add((name, type_name))
            log.warning(
                "%s returned a %s, which cannot be recorded: a replay cannot answer the call; let it return "
                "plain data, or let it pass through",
                self._redactor.redact_text(name),
                type_name,
            )

    def _put_forms(self, data: dict[str, object], step: CaptureStep[Any], *, is_redacted: bool) -> None:
        """Put the pieces of the answer, and its wire form if nothing was redacted, into *data*."""
        if step.recorded_pieces is not None:
            text = self._payloads.pieces_text(step.recorded_pieces)
            is_redacted = is_redacted or text != to_ordered_text(step.recorded_pieces)
            data["pieces"] = self._payloads.store_answer(text)
        if step.exact is not None and not is_redacted:
            data["exact"] = self._payloads.store_answer(to_ordered_text(step.exact))

    def _tell_forked(self) -> None:
        """Warn once, at the first call of a forked child, that nothing is recorded."""
        if self._is_forked and _FORKED not in self.warnings:
            if not is_pool_worker():
                self._child_called[0] = 1
            self.warn(_FORKED)

    def _tell_child_called(self) -> None:
        """Warn in the parent what a forked child was told, whose messages nobody may read."""
        if self._child_called[0]:
            self.warn(_CHILD_CALLED)

    def give_up(self, error: Exception) -> None:
        self._fail(error)

    def _fail(self, error: BaseException) -> None:
        """Stop recording because of *error*; what is written stays."""
        if self._failure is None:
            self._failure = RECORDING_FAILED  # set first: there may be no memory for the full text
            self._events.forget_deferred()
            self.failed_by = error.with_traceback(None)  # a traceback would keep large objects alive
            reason = message_of(error) or type(error).__name__
            self._failure = self._redactor.redact_text(f"{RECORDING_FAILED}: {reason}")
            self.warn(f"{RECORDING_FAILED}, the run goes on unrecorded: {reason}")


def _model_facts(step: CaptureStep[Any]) -> dict[str, object]:
    """The facts of a model's answer, with provider and model taken from the call where it has none."""
    if step.facts.keys() >= UNKNOWN_MODEL.keys():
        return _NO_ANSWER | step.facts
    asked = step.call.facts() if callable(step.call.facts) else step.call.facts
    known = {name: asked[name] for name in UNKNOWN_MODEL if name in asked}
    return UNKNOWN_MODEL | _NO_ANSWER | known | step.facts


def model_of(facts: dict[str, JsonValue]) -> Model:
    known = {name: _decode(encode_clean(facts[name])) for name in UNKNOWN_MODEL if name in facts}
    named = UNKNOWN_MODEL | {name: str(value) for name, value in known.items()}
    return Model(provider=named["provider"], model=named["model"])

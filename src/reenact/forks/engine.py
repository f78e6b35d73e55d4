"""Answering the calls of a fork: before its point from the recording only, after it if possible.

Before the point this is a strict replay. At the point the change is made. After it, a call that equals an
unused recorded one is answered with its outcome, in any order; any other call is a miss. What happens is
noted in order; :mod:`reenact.forks.capture` writes the events of the fork from it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final

import msgspec

from reenact.boundary import A, Call, DescribeEnd, Instant, Lane, Step
from reenact.canonical import encode_clean
from reenact.errors import Diverged, StoreError, UsageError
from reenact.forks.change import FROM_START, ChangeFunction, ForkPlan, change_model_call, change_outcome
from reenact.forks.order import ForkOrder
from reenact.forks.recorder import (
    DerivingRecorder,
    ForkNames,
    ForkRecorder,
    Happening,
    LaterNumbers,
    NewEvents,
)
from reenact.forks.step import CallMissed, ForkStep, NearestStep
from reenact.formats.capture import JOINED, CaptureSeed
from reenact.formats.divergence import ReplayDivergence
from reenact.providers import ask_otherwise
from reenact.recorder.eventlog import ProcessNames
from reenact.redaction import Redactor
from reenact.replayer.engine import CALL_TYPES, ReplayEngine
from reenact.replayer.lanes import Key, is_task
from reenact.replayer.source import RecordedCall, ReplaySource
from reenact.replayer.step import EarlyMatch, ReplayStep
from reenact.store.blobs import BlobStore
from reenact.values.codec import from_json, rebuild, to_text

_decode: Final = msgspec.json.Decoder().decode


class ForkPart(msgspec.Struct, frozen=True, kw_only=True):
    """One process of a forked run, or the gateway."""

    plan: ForkPlan
    seed: CaptureSeed
    blobs: BlobStore
    """For payloads of new events."""
    function: ChangeFunction | None = None
    call_prefix: str | None = None
    """The prefix of new call ids, if it differs from that of the replayed process."""
    on_reached: Callable[[], None] = lambda: None
    """Called when this process reaches the point."""
    is_reached_elsewhere: Callable[[], bool] = lambda: False
    """Whether another process has reached the point."""
    tree_file: str | None = None
    """The file in which all processes share the latest recorded tree."""
    is_gateway: bool = False


class ForkEngine(ReplayEngine):
    """A replay engine that makes the change at the point and handles misses after it."""

    notes_order = True

    def __init__(
        self,
        source: ReplaySource,
        redactor: Redactor,
        *,
        part: ForkPart,
        **options: Any,
    ) -> None:
        self.plan = part.plan
        self.part = part
        self.shared = part.plan.shared
        self.happenings: list[Happening] = []
        super().__init__(source, redactor, **options)
        self._is_reached = part.plan.at == FROM_START
        self._at = self.noted_from = part.plan.at
        self.is_gateway = part.is_gateway
        self._asks_anew = part.plan.changes_requests
        self.changes_outcome = part.plan.change.changes_outcome
        self._is_free = False
        self._task_names: dict[Lane, str] = {}
        self._names_taken: set[str] = set()
        self._found = threading.local()
        self._last_asked: dict[str, RecordedCall] = {}
        """By lane: the latest recorded model call after the point."""
        self._looked_back: set[str] = set()
        """The lanes whose latest model call before the point has been used."""
        self._moved: dict[int, tuple[str, str]] = {}
        """By event number: the new lane and containing call of recorded calls that moved."""
        self.nearest = 0
        self.live = 0
        """The number of live calls."""
        self.missed: ReplayDivergence | None = None
        """The miss that ended the fork."""
        self.unchanged: UsageError | None = None
        """Why the change function could not be applied."""
        self.changed_line: str | None = None
        """The event that replaces the recorded outcome at the point."""
        self.new_events = NewEvents(self.happenings.append, part.blobs, source.reader.manifest)
        self.recorder = (DerivingRecorder if part.is_gateway else ForkRecorder)(
            self.happenings.append,
            self,
            LaterNumbers(source.reader),
            self.new_events,
            part.seed,
            redactor,
            find_names=self._names,
        )

    def _names(self) -> ProcessNames:
        self.choose_process()
        prefix = self.part.call_prefix or ProcessNames.of_process(self.source.root).call_prefix
        return ForkNames(self.source.root, prefix, self.recorded_name)

    def recorded_name(self, lane: Lane) -> str:
        """The name of *lane* in the fork: that of the recorded lane that it replays.

        After the fork has left the recording, a new task keeps its own unique name.
        """
        with self._lock:
            if not self._is_free or not is_task(lane):
                return self._lanes.name_of(lane)
            name = self._task_names.get(lane)
            if name is None:
                recorded, by_place = self._lanes.names_of(lane)
                name = by_place if recorded in self._names_taken else recorded
                self._task_names[lane] = name
                self._names_taken.add(name)
            return name

    # What happens

    def mark_happened(self, seq: int, rounds: int | None = None) -> None:
        """Note that a recorded event has happened again; shared events need no note."""
        if seq > self.shared:
            self.happenings.append(Happening(time.time_ns(), seq, place=self._moved.get(seq), rounds=rounds))

    @property
    def is_reached(self) -> bool:
        """Whether the change has been made, here or in another process of the run."""
        return self._is_reached or self.part.is_reached_elsewhere()

    @property
    def has_left_recording(self) -> bool:
        """Whether the run has left the recording."""
        return self._is_free

    def reach(self) -> None:
        """Note that the point of the fork is reached."""
        self._is_reached = True
        self.part.on_reached()
        if self.changes_outcome:
            self.leave_recording()

    def leave_recording(self) -> None:
        """Note that the run leaves the recording here."""
        if not self._is_free:
            self._is_free = True
            self.turns.forget_order()
            self.prints.forget_order()

    # What the agent's own tasks do among themselves

    def _read(self, source: ReplaySource) -> None:
        super()._read(source)
        self._order = ForkOrder(source.acts, self.shared)
        self.turns.timers.on_fired = self._record_timer

    def note_order(self, lane: Lane, act: str) -> None:
        if self._find_root is None:
            name = self.recorded_name(lane)
            self._record_act(name + act.partition(" ")[0], name + act)

    def _record_timer(self, what: str) -> None:
        was = self._order.later_rounds.get(what)
        rounds = self.recorder.rounds_since_last() if self._is_free else was
        self._record_act(what, what if rounds is None else f"{what}{JOINED}{rounds or ''}")

    def _record_act(self, what: str, entry: str) -> None:
        seq = self._order.place(what, has_left_recording=self._is_free)
        if seq is not None:
            self.happenings.append(Happening(time.time_ns(), seq, act=entry))

    def lane_began(self, lane: Lane) -> None:
        super().lane_began(lane)
        self.recorder.lane_began(lane)

    def lane_ending(self, lane: Lane, how: str) -> None:
        super().lane_ending(lane, how)
        self.recorder.lane_ending(lane, how)

    def lane_end_seen(self, lane: Lane) -> None:
        self.recorder.lane_end_seen(lane)

    def task_body(self, lane: Lane, coro: object, describe: DescribeEnd) -> object:
        self.recorder.task_began(lane)
        return super().task_body(lane, coro, describe)

    def task_ended(self, lane: Lane, how: str) -> None:
        self.recorder.task_ended(lane, how)
        super().task_ended(lane, how)

    def has_acted(self, lane: Lane, act: str) -> None:
        self.recorder.has_acted(lane, act)
        super().has_acted(lane, act)

    def timer_fired(self, lane: Lane, name: str) -> None:
        self._record_timer(self._timer(lane, name))
        super().timer_fired(lane, name)

    # What comes of calls

    def set_aside(self, call: RecordedCall, lane: Lane) -> list[int]:
        """Note that *call* was made again, with everything recorded inside it."""
        self._note_place(call, lane)
        if call.seq == self._at:
            if self._is_request_changed(call):
                self._compare_files_at_point()
                self.reach()
                raise CallMissed(call)
            if not self.changes_outcome:
                self.reach()
        if self.files is not None:
            self._note_files_before(call)
        if call.seq > self.shared:
            self.mark_happened(call.seq)
        if call.is_instant:
            self._found.seq = call.seq
        elif call.type == "llm_request":
            self._last_asked[call.lane] = call
        if call.call_id not in self._nested:
            return []
        inner = sorted(self._events_inside(call))
        for seq in inner:
            self.mark_happened(seq)
        return inner

    def _note_place(self, call: RecordedCall, lane: Lane) -> None:
        if not self._is_free:
            return
        place = call.lane if self.is_gateway else self.recorded_name(lane)
        if (place, lane.within) != (call.lane, call.parent):
            self._moved[call.seq] = place, lane.within or ""

    def _events_inside(self, call: RecordedCall) -> Iterator[int]:
        if call.type == "tool_call" and call.name in self._running_again:
            return
        for nested in self._nested.get(call.call_id or "", ()):
            if nested.taken:
                continue  # it was made in another lane
            nested.taken = True
            yield from {nested.seq, nested.outcome_seq} - {0}
            yield from self._events_inside(nested)

    def _note_files_before(self, call: RecordedCall) -> None:
        """Record the files before a call after the shared events."""
        if call.is_instant or call.beside or call.outcome_seq <= self.shared:
            return
        if call.seq > self._at and self.is_reached and call.may_write:
            self._refuse_other_files(call)
        self.recorder.note_files_before(call.call_id, call.parent, is_written=call.seq > self.shared)

    def _refuse_other_files(self, call: RecordedCall) -> None:
        """Treat a tool or program call as new if the files before it differ."""
        divergence = self.files.difference_before(call.seq) if self.files is not None else None
        if divergence is None:
            return
        call.taken = False
        if self.plan.on_miss == "fail":
            self.missed = self.missed or divergence
            self.diverge(divergence)
        raise CallMissed

    def _compare_files_at_point(self) -> None:
        divergence = self.files.check_before(self._at) if self.files is not None else None
        if divergence is not None:
            self.diverge(divergence)

    def compare_files(self, recorded: RecordedCall, lane: Lane) -> None:
        """After the point the files may differ."""
        if recorded.seq <= self._at and not self.has_left_recording:
            super().compare_files(recorded, lane)

    def change_files(self, recorded: RecordedCall) -> None:
        """After the point, files of the fork are not overwritten."""
        try:
            super().change_files(recorded)
        except StoreError as error:
            if not self.has_left_recording:
                raise
            self.note(f"event {recorded.outcome_seq}: not all it did to files was done again: {error}")

    # Answering

    @staticmethod
    def make_step(
        engine: ReplayEngine,
        recorded: RecordedCall | None,
        lane: Lane,
        *,
        is_live: bool = False,
        early: EarlyMatch[A] | None = None,
    ) -> ReplayStep[A]:
        """Shared calls are replayed like in any replay; the gateway also derives tool calls from them."""
        if TYPE_CHECKING:
            assert isinstance(engine, ForkEngine)
        is_shared = recorded is not None and 0 < recorded.outcome_seq <= engine.shared
        make = ReplayStep if is_shared and not engine.is_gateway else ForkStep
        return make(engine, recorded, lane, is_live=is_live, early=early)

    def step(self, call: Call[A], lane: Lane) -> Step[A]:
        if self._asks_anew and self._is_new_question(call):
            return self.make(call, lane)
        step, asked = None, None
        try:
            step = ReplayEngine.step(self, call, lane)
        except CallMissed as missed:
            asked = missed.asked
        if step is None:
            return self.make(call, lane, asked)
        if self.is_gateway:
            self.recorder.derive_from(call)
        return step

    def make(self, call: Call[A], lane: Lane, asked: RecordedCall | None = None) -> Step[A]:
        """Make the step of a new call; *asked* is the call as the agent made it."""
        self.leave_recording()
        with self._lock:
            self._lanes.note_miss(lane)
        call = self._with_changed_request(call)
        if self.plan.on_miss == "live":
            self.live += 1
            return self._record(call, lane)
        text = self._redactor.redact_json(to_text(call.request, is_json=call.is_json))
        key = Key(CALL_TYPES[call.kind], self._name(call), sha256(text).digest())
        nearest = asked if asked is not None and asked.outcome_seq else self._nearest_to(lane, key, text)
        if nearest is None:
            self._stop(lane, key, text, call)
        assert nearest is not None
        self.nearest += 1
        return NearestStep(self, nearest, lane, self._record(call, lane))

    def _is_request_changed(self, call: RecordedCall) -> bool:
        """Whether the request of the recorded *call* is to be changed."""
        if call.type != "llm_request" or not self._asks_anew or self.changes_outcome:
            return False
        request, provider = self.source.request(call), self.source.data(call.seq)["provider"]
        is_known = provider != "unknown" and isinstance(request, dict) and isinstance(request["body"], dict)
        change = self.plan.change.request
        return is_known and bool(ask_otherwise(provider, request["url"], request["body"], change).undo)

    def _is_new_question(self, call: Call) -> bool:
        """Whether this model request does not occur in the parent."""
        if not self._asks_anew or call.ask_otherwise is None or not self.is_reached:
            return False
        with self._lock:
            self.choose_process()
            self.refuse_when_over(CALL_TYPES[call.kind], self._name(call))
        return self._with_changed_request(call) is not call

    def _with_changed_request(self, call: Call[A]) -> Call[A]:
        return change_model_call(call, self.plan.change.request, self._redactor.redact_json)

    def _record(self, call: Call[A], lane: Lane) -> Step[A]:
        if call.kind == "llm":
            before = self._latest_model_call(self.recorded_name(lane))
            if before is not None and before.call_id is not None:
                written = self.source.data(before.seq)["request"]
                self.recorder.register_request(before.call_id, self.source.reader.resolve(written))
        return self.recorder.step(call, lane)

    def _latest_model_call(self, lane: str) -> RecordedCall | None:
        """The latest recorded model call of *lane*, once: the next request refers to it."""
        before = self._last_asked.pop(lane, None)
        if lane in self._looked_back:
            return before
        self._looked_back.add(lane)
        calls = (call for call in reversed(self.source.calls) if call.seq < self._at and call.taken)
        return before or next(
            (call for call in calls if call.type == "llm_request" and call.lane == lane), None
        )

    def _nearest_to(self, lane: Lane, key: Key, request_text: bytes) -> RecordedCall | None:
        if self.plan.on_miss != "nearest":
            return None
        with self._lock:
            found = self._nearest.find(lane, self.keys(key, request_text), _decode(request_text))
        return found if found is not None and found.outcome_seq and not found.never_ends else None

    def _stop(self, lane: Lane, key: Key, request_text: bytes, call: Call | None) -> None:
        """End the fork with a missing call."""
        try:
            super().stand_in(lane, key, request_text, call)
        except Diverged as error:
            if self.missed is None and isinstance(error.divergence, ReplayDivergence):
                self.missed = error.divergence
            raise

    def stand_in(
        self, lane: Lane, key: Key, request_text: bytes, call: Call | None = None
    ) -> RecordedCall | ReplayDivergence:
        """Before the point a difference ends the fork; after it any equal unused call matches."""
        if not self.is_reached:
            return super().stand_in(lane, key, request_text, call)
        recorded = None
        if not self._belongs_to_other_task(lane, key):
            with self._lock:
                found = (self._lanes.take_unmade(lane, one) for one in self.keys(key, request_text))
                recorded = next(filter(None, found), None)
        if recorded is None:
            raise CallMissed
        self.leave_recording()
        return recorded

    def find_equal(self, lane: Lane, keys: Sequence[Key]) -> RecordedCall | None:
        """After the point, calls before an equal call of the same lane are ignored."""
        if self._is_free:
            with self._lock:
                ahead = (self._lanes.take(lane, key) or self._lanes.take_ahead(lane, key) for key in keys)
                recorded = next(filter(None, ahead), None)
                if recorded is not None or self._belongs_to_other_task(lane, keys[0]):
                    return recorded
        return super().find_equal(lane, keys)

    def _belongs_to_other_task(self, lane: Lane, key: Key) -> bool:
        """Whether only another task of the recording has read this clock or random source."""
        return self._is_free and key.is_chance and self._lanes.is_placed(lane)

    def _may_still_come(self, lane: Lane, key: Key, request_text: bytes) -> bool:
        return not self._is_free and super()._may_still_come(lane, key, request_text)

    def instant(self, instant: Instant, lane: Lane, produce: Callable[[], object]) -> Any:
        calls = lane.calls
        self._found.seq = 0
        try:
            value = super().instant(instant, lane, produce)
        except CallMissed:
            lane.calls = calls  # the recorder has its own counters
            return self._miss_instant(instant, lane, produce)
        except Exception:
            if not self._is_changed_instant():
                raise
        else:
            if not self._is_changed_instant():
                return value
        data, _ = self.changed_outcome(self.source.by_seq[self.plan.at])
        return self._value_in(self.resolve_new(data))

    def _is_changed_instant(self) -> bool:
        return self._found.seq == self.plan.at and self.changes_outcome

    def _miss_instant(self, instant: Instant, lane: Lane, produce: Callable[[], Any]) -> object:
        """Read a clock or random source for real: that is no miss."""
        self.leave_recording()
        if instant.is_read and self.plan.on_miss != "live":
            text = encode_clean(self._as_recorded(instant))
            key = Key(instant.type, "", sha256(text).digest())
            nearest = self._nearest_to(lane, key, text)
            if nearest is None:
                self._stop(lane, key, text, None)
            assert nearest is not None
            self.nearest += 1
            data = self.source.reader.resolve(self.source.data(nearest.seq))
            return self.recorder.instant(instant, lane, lambda: self._value_in(data))
        self.live += instant.is_read
        return self.recorder.instant(instant, lane, produce)

    def _value_in(self, data: dict[str, Any]) -> Any:
        if "error" in data:
            raise rebuild(data["error"])
        return from_json(data.get("value"))

    def is_live(self, lane: Lane) -> bool:
        """Whether calls may go live: after the point, if misses go live."""
        return (self.plan.on_miss == "live" and self.is_reached) or super().is_live(lane)

    # The change

    def changed_outcome(self, recorded: RecordedCall) -> tuple[dict[str, object], bytes]:
        """The changed outcome at the point: its data as stored in the fork, and their text."""
        self.reach()
        event = _decode(self.source.reader.line(recorded.outcome_seq))
        try:
            data, raised = change_outcome(
                self.plan.change, self.part.function, event, self.source.reader.resolve
            )
        except UsageError as error:
            self.unchanged = error
            raise
        data = self.recorder.store_outcome(event["type"], data, raised)
        line = encode_clean(event | {"data": data})
        self.changed_line = line.decode()
        return _decode(line)["data"], line

    def resolve_new(self, value: object) -> Any:
        """Resolve *value* of a changed event, whose payloads may be in the fork's blobs."""
        if isinstance(value, dict) and "$blob" in value:
            return self.resolve_new(_decode(self.part.blobs.get(value["$blob"])))
        if isinstance(value, dict) and "$json" in value:
            return self.resolve_new(_decode(value["$json"]))
        if isinstance(value, dict):
            return {name: self.resolve_new(child) for name, child in value.items()}
        return [self.resolve_new(child) for child in value] if isinstance(value, list) else value

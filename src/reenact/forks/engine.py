"""How the calls of a fork are answered: before its point from the recording alone, behind it where it can.

Before the point this is a strict replay. There the change is made. Behind it a call that equals a recorded
one which nobody has made is answered with its outcome, whatever stood before it; any other is a miss. What
happens is noted in the order in which it happens; :mod:`reenact.forks.capture` makes the fork's events of it.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final

import msgspec

from reenact.boundary import Call, DescribeEnd, Instant, Lane, Step
from reenact.canonical import digest_of_bytes, encode_clean
from reenact.errors import Diverged, StoreError, UsageError
from reenact.forks.change import FROM_START, ChangeFunction, ForkPlan, change_outcome
from reenact.forks.recorder import (
    DerivingRecorder,
    ForkNames,
    ForkRecorder,
    Happening,
    NewEvents,
    NumbersBehind,
)
from reenact.formats.capture import JOINED, CaptureSeed
from reenact.formats.divergence import ReplayDivergence
from reenact.lane_name import LaneName
from reenact.providers import ask_otherwise
from reenact.recorder.eventlog import ProcessNames
from reenact.recorder.step import CaptureStep, leaving
from reenact.redaction import Redactor
from reenact.replayer.engine import CALL_TYPES, ReplayEngine
from reenact.replayer.lanes import Key, is_task
from reenact.replayer.source import RecordedCall, ReplaySource
from reenact.replayer.step import EarlyMatch, ReplayStep
from reenact.store.blobs import BlobStore
from reenact.values.codec import from_json, is_plain, rebuild, to_text

_OUTCOMES: Final = {
    "tool_call": "tool_result",
    "llm_request": "llm_response",
    "nondeterministic": "nondeterministic",
}
_decode: Final = msgspec.json.Decoder().decode


class ForkPart(msgspec.Struct, frozen=True, kw_only=True):
    """One process of a run that is forked, or the gateway."""

    plan: ForkPlan
    seed: CaptureSeed
    blobs: BlobStore
    """Where payloads of new events go."""
    function: ChangeFunction | None = None
    call_prefix: str | None = None
    """What the names of new calls begin with, where not as those of the process that this one is."""
    on_reached: Callable[[], None] = lambda: None
    """Hears when the point has come here."""
    is_reached_elsewhere: Callable[[], bool] = lambda: False
    """Knows of the other processes."""
    tree_file: str | None = None
    """The file by which all of them know what was told of the files."""
    is_gateway: bool = False


class CallMissed(Exception):
    """No recorded call that nobody has made equals this one; *asked* would, but is to be asked otherwise."""

    def __init__(self, asked: RecordedCall | None = None) -> None:
        super().__init__()
        self.asked = asked


class ForkEngine(ReplayEngine):
    """See the module's docstring."""

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
        self._asks_anew = part.plan.asks_anew
        self.changes_outcome = part.plan.change.is_of_outcome
        self._is_free = False
        self._task_names: dict[Lane, str] = {}
        self._names_taken: set[str] = set()
        self._found = threading.local()
        self._last_asked: dict[str, RecordedCall] = {}
        """By lane: the latest model call behind the point that was recorded."""
        self._looked_back: set[str] = set()
        """The lanes whose latest model call before the point was asked for."""
        self._moved: dict[int, tuple[str, str]] = {}
        """By the numbers of their events: where calls are made that were made elsewhere."""
        self.nearest = 0
        self.live = 0
        """How many calls were answered so."""
        self.missed: ReplayDivergence | None = None
        """The call that was missing, where that ended the fork."""
        self.unchanged: UsageError | None = None
        """Why the change could not be made, where only its function could tell."""
        self.changed_line: str | None = None
        """The event in the place of the recorded outcome at the point."""
        self.new_events = NewEvents(self.happenings.append, part.blobs, source.reader.manifest)
        self.recorder = (DerivingRecorder if part.is_gateway else ForkRecorder)(
            self.happenings.append,
            self,
            NumbersBehind(source.reader),
            self.new_events,
            part.seed,
            redactor,
            find_names=self._names,
        )

    def _names(self) -> ProcessNames:
        self.settle()
        prefix = self.part.call_prefix or ProcessNames.of_process(self.source.root).call_prefix
        return ForkNames(self.source.root, prefix, self.recorded_name)

    def recorded_name(self, lane: Lane) -> str:
        """What *lane* is called in the fork: as the recorded one that it plays.

        A task of a run that has gone its own way keeps its name, which no other has.
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

    def happen(self, seq: int, rounds: int | None = None) -> None:
        """A recorded event has happened again; what is shared with the parent needs no telling."""
        if seq > self.shared:
            self.happenings.append(Happening(time.time_ns(), seq, place=self._moved.get(seq), rounds=rounds))

    @property
    def is_reached(self) -> bool:
        """Whether the change has been made, here or in another process of the run."""
        return self._is_reached or self.part.is_reached_elsewhere()

    @property
    def is_own_way(self) -> bool:
        """Whether the run is another one than the recorded one."""
        return self._is_free

    def reach(self) -> None:
        """The point of the fork has come."""
        self._is_reached = True
        self.part.on_reached()
        if self.changes_outcome:
            self.go_own_way()

    def go_own_way(self) -> None:
        """The run is another one than the recorded one from now on."""
        if not self._is_free:
            self._is_free = True
            self.turns.forget_order()

    # What the agent's own tasks do among themselves

    def _read(self, source: ReplaySource) -> None:
        super()._read(source)
        self._shared_acts: dict[str, deque[int]] = {}
        """What the shared events tell of it, as far as it is to come, by the numbers of these events."""
        self._rounds: dict[str, int | None] = {}
        """What the others do, and when timers went off there."""
        for seq, acts in source.acts.items():
            for act in acts:
                if seq <= self.shared:
                    self._shared_acts.setdefault(act.what, deque()).extend([seq] * act.left)
                else:
                    self._rounds[act.what] = act.joined
        self.turns.on_timer = self._tell_timer

    def note_order(self, lane: Lane, act: str) -> None:
        """*lane* did *act*: it is told with the next event, where the shared ones do not tell it."""
        if self._find_root is None:
            name = self.recorded_name(lane)
            self._tell_act(name + act.partition(" ")[0], name + act)

    def _tell_timer(self, what: str) -> None:
        rounds = self.recorder.rounds_since_last() if self._is_free else self._rounds.get(what)
        self._tell_act(what, what if rounds is None else f"{what}{JOINED}{rounds or ''}")

    def _tell_act(self, what: str, told: str) -> None:
        shared = self._shared_acts.get(what)
        told_at = shared.popleft() if shared else 0
        if told_at and LaneName(what).is_below_loose:
            return  # which task of a library comes when is chance, and no reason to store events again
        if self._is_free or (not told_at and what in self._rounds):  # a replay minds no other
            self.happenings.append(Happening(time.time_ns(), told_at, act=told))

    def lane_began(self, lane: Lane) -> None:
        super().lane_began(lane)
        self.recorder.lane_began(lane)

    def lane_ending(self, lane: Lane, how: str) -> None:
        super().lane_ending(lane, how)
        self.recorder.lane_ending(lane, how)

    def lane_end_seen(self, lane: Lane) -> None:
        self.recorder.lane_end_seen(lane)

    def task_body(self, lane: Lane, coro: Any, describe: DescribeEnd) -> object:
        self.recorder.task_began(lane)
        return super().task_body(lane, coro, describe)

    def task_ended(self, lane: Lane, how: str) -> None:
        self.recorder.task_ended(lane, how)
        super().task_ended(lane, how)

    def has_acted(self, lane: Lane, act: str) -> None:
        self.recorder.has_acted(lane, act)
        super().has_acted(lane, act)

    def timer_fired(self, lane: Lane, name: str) -> None:
        self._tell_timer(self._timer(lane, name))
        super().timer_fired(lane, name)

    # What comes of calls

    def set_aside(self, call: RecordedCall, lane: Lane) -> list[int]:
        """*call* was made again; what happened inside it comes with it."""
        self._note_place(call, lane)
        if call.seq == self._at:
            if self._is_asked_anew(call):
                self._compare_files_at_point()
                self.reach()
                raise CallMissed(call)
            if not self.changes_outcome:
                self.reach()
        if self.files is not None:
            self._look_before(call)
        if call.seq > self.shared:
            self.happen(call.seq)
        if call.is_instant:
            self._found.seq = call.seq
        elif call.type == "llm_request":
            self._last_asked[call.lane] = call
        if call.call_id not in self._nested:
            return []
        inner = sorted(self._events_inside(call))
        for seq in inner:
            self.happen(seq)
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
                continue  # it was made elsewhere
            nested.taken = True
            yield from {nested.seq, nested.outcome_seq} - {0}
            yield from self._events_inside(nested)

    def _look_before(self, call: RecordedCall) -> None:
        """Tell how the files are before a call that is behind what the parent tells."""
        if call.is_instant or call.beside or call.outcome_seq <= self.shared:
            return
        if call.seq > self._at and self.is_reached and call.may_write:
            self._refuse_other_files(call)
        self.recorder.look_before(call.call_id, call.parent, is_told=call.seq > self.shared)

    def _refuse_other_files(self, call: RecordedCall) -> None:
        """A tool or program that is called as recorded, but among other files, is another call."""
        divergence = self.files.difference_before(call.seq) if self.files is not None else None
        if divergence is None:
            return
        call.taken = False
        if self.plan.on_miss == "fail":
            self.missed = self.missed or divergence
            self.diverge(divergence)
        raise CallMissed

    def _compare_files_at_point(self) -> None:
        divergence = self.files.before(self._at) if self.files is not None else None
        if divergence is not None:
            self.diverge(divergence)

    def compare_files(self, recorded: RecordedCall, lane: Lane) -> None:
        """Behind the point they are the fork's own."""
        if recorded.seq <= self._at and not self.is_own_way:
            super().compare_files(recorded, lane)

    def change_files(self, recorded: RecordedCall) -> None:
        """Behind the point something of the fork's own may stand in the way, which stays."""
        try:
            super().change_files(recorded)
        except StoreError as error:
            if not self.is_own_way:
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
        early: EarlyMatch | None = None,
    ) -> ReplayStep:
        """What is shared with the parent is replayed like any call; a gateway derives tools from it, too."""
        if TYPE_CHECKING:
            assert isinstance(engine, ForkEngine)
        is_shared = recorded is not None and 0 < recorded.outcome_seq <= engine.shared
        make = ReplayStep if is_shared and not engine.is_gateway else ForkStep
        return make(engine, recorded, lane, is_live=is_live, early=early)

    def step(self, call: Call, lane: Lane) -> Step:
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

    def make(self, call: Call, lane: Lane, asked: RecordedCall | None = None) -> Step:
        """The step of a call that is none of the recorded ones; *asked* is it as the agent asked it."""
        self.go_own_way()
        with self._lock:
            self._lanes.note_miss(lane)
        call = self._asked_otherwise(call)
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

    def _is_asked_anew(self, call: RecordedCall) -> bool:
        """Whether the recorded *call* is to be asked otherwise."""
        if call.type != "llm_request" or not self._asks_anew or self.changes_outcome:
            return False
        request, provider = self.source.request(call), self.source.data(call.seq)["provider"]
        is_known = provider != "unknown" and isinstance(request, dict) and isinstance(request["body"], dict)
        change = self.plan.change.request
        return is_known and bool(ask_otherwise(provider, request["url"], request["body"], change).undo)

    def _is_new_question(self, call: Call) -> bool:
        """Whether a model is asked something that nobody has asked in the parent."""
        if not self._asks_anew or call.ask_otherwise is None or not self.is_reached:
            return False
        with self._lock:
            self.settle()
            self.refuse_when_over(CALL_TYPES[call.kind], self._name(call))
        return self._asked_otherwise(call) is not call

    def _asked_otherwise(self, call: Call) -> Call:
        """*call* with what the fork has models asked; replay knows it by what the agent asked."""
        other = None
        if call.ask_otherwise is not None and self.plan.change.request.is_any:
            other = call.ask_otherwise(self.plan.change.request)
        if other is None:
            return call
        text = self._redactor.redact_json(to_text(call.request, is_json=call.is_json))
        told = {"asked": msgspec.to_builtins(other.undo), "askedHash": digest_of_bytes(text)}
        facts = other.call.facts
        return msgspec.structs.replace(
            other.call, facts=lambda: (facts() if callable(facts) else facts) | told
        )

    def _record(self, call: Call, lane: Lane) -> CaptureStep:
        if call.kind == "llm":
            before = self._asked_before(self.recorded_name(lane))
            if before is not None and before.call_id is not None:
                written = self.source.data(before.seq)["request"]
                self.recorder.know(before.call_id, self.source.reader.resolve(written))
        return self.recorder.step(call, lane)

    def _asked_before(self, lane: str) -> RecordedCall | None:
        """The latest recorded model call of *lane*, once: what comes next repeats what it asked."""
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
            found = self._nearest.to(lane, self.keys(key, request_text), _decode(request_text))
        return found if found is not None and found.outcome_seq and not found.never_ends else None

    def _stop(self, lane: Lane, key: Key, request_text: bytes, call: Call | None) -> None:
        """The call is missing, and that ends the fork."""
        try:
            super().stand_in(lane, key, request_text, call)
        except Diverged as error:
            if self.missed is None and isinstance(error.divergence, ReplayDivergence):
                self.missed = error.divergence
            raise

    def stand_in(
        self, lane: Lane, key: Key, request_text: bytes, call: Call | None = None
    ) -> RecordedCall | ReplayDivergence:
        """Before the point a difference ends the fork; behind it any equal call that nobody made will do."""
        if not self.is_reached:
            return super().stand_in(lane, key, request_text, call)
        recorded = None
        if not self._is_others_chance(lane, key):
            with self._lock:
                found = (self._lanes.take_unmade(lane, one) for one in self.keys(key, request_text))
                recorded = next(filter(None, found), None)
        if recorded is None:
            raise CallMissed
        self.go_own_way()
        return recorded

    def find_equal(self, lane: Lane, keys: Sequence[Key]) -> RecordedCall | None:
        """Behind the point what stands before an equal call of the own lane does not count."""
        if self._is_free:
            with self._lock:
                ahead = (self._lanes.take(lane, key) or self._lanes.take_ahead(lane, key) for key in keys)
                recorded = next(filter(None, ahead), None)
                if recorded is not None or self._is_others_chance(lane, keys[0]):
                    return recorded
        return super().find_equal(lane, keys)

    def _is_others_chance(self, lane: Lane, key: Key) -> bool:
        """Whether a clock or chance is asked that only another task of the recording has asked."""
        return self._is_free and key.is_chance and self._lanes.is_placed(lane)

    def _may_still_come(self, lane: Lane, key: Key, request_text: bytes) -> bool:
        return not self._is_free and super()._may_still_come(lane, key, request_text)

    def instant(self, instant: Instant, lane: Lane, produce: Callable[[], Any]) -> Any:
        calls = lane.calls
        self._found.seq = 0
        try:
            value = super().instant(instant, lane, produce)
        except CallMissed:
            lane.calls = calls  # the recorder counts for itself
            return self._miss_instant(instant, lane, produce)
        except Exception:
            if not self._is_changed_instant():
                raise
        else:
            if not self._is_changed_instant():
                return value
        data, _ = self.changed_outcome(self.source.by_seq[self.plan.at])
        return self._value_in(self.resolved_new(data))

    def _is_changed_instant(self) -> bool:
        return self._found.seq == self.plan.at and self.changes_outcome

    def _miss_instant(self, instant: Instant, lane: Lane, produce: Callable[[], Any]) -> Any:
        """What this process has by itself, a clock or chance, is no miss."""
        self.go_own_way()
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
        """Behind the point nothing is guarded where misses go live."""
        return (self.plan.on_miss == "live" and self.is_reached) or super().is_live(lane)

    def unfinished_prefix(self) -> RecordedCall | None:
        """The first recorded call before the point that was not made."""
        return next(
            (
                call
                for call in self.source.calls
                if call.seq <= self.plan.shared and not call.taken and call.parent is None
            ),
            None,
        )

    # The change

    def changed_outcome(self, recorded: RecordedCall) -> tuple[dict[str, Any], bytes]:
        """What to answer at the point: data as stored in the fork, and their text."""
        self.reach()
        event = _decode(self.source.reader.line(recorded.outcome_seq))
        try:
            data, raised = change_outcome(
                self.plan.change, self.part.function, event, self.source.reader.resolve
            )
        except UsageError as error:
            self.unchanged = error
            raise
        data = self.recorder.stored_outcome(event["type"], data, raised)
        line = encode_clean(event | {"data": data})
        self.changed_line = line.decode()
        return _decode(line)["data"], line

    def resolved_new(self, value: Any) -> Any:
        """*value* of a changed event, whose payloads may be in the fork's own blobs."""
        if isinstance(value, dict) and "$blob" in value:
            return self.resolved_new(_decode(self.part.blobs.get(value["$blob"])))
        if isinstance(value, dict) and "$json" in value:
            return self.resolved_new(_decode(value["$json"]))
        if isinstance(value, dict):
            return {name: self.resolved_new(child) for name, child in value.items()}
        return [self.resolved_new(child) for child in value] if isinstance(value, list) else value


class ForkStep(ReplayStep):
    """A crossing of a fork: answered from the recording, changed at the point, or made after all."""

    __slots__ = ("_is_awaited", "_is_changed", "_is_given", "_made")
    _engine: ForkEngine

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._made: Step | None = None
        """What it is where it turned out to be none of the recorded calls while it waited."""
        self._is_given = False
        self._is_changed = False
        self._is_awaited = False
        """Whether a task waits for it, not a thread."""

    def wait(self) -> None:
        try:
            super().wait()
            if self._made is not None:
                self._made.wait()
                self._take_over()
        except BaseException as error:
            self._leave(error)
            raise

    async def turn(self) -> None:
        self._is_awaited = True
        try:
            await super().turn()
            if self._made is not None:
                await self._made.turn()
                self._take_over()
        except BaseException as error:
            self._leave(error)
            raise

    def _settle(self, early: Any) -> None:
        try:
            super()._settle(early)
        except CallMissed as missed:
            self._made = self._engine.make(early.call, self._lane, missed.asked)
            self._is_unmatched = True
            self.live, self.call_id = self._made.live, self._made.call_id

    def _take_over(self) -> None:
        assert self._made is not None
        self.answer, self.exact, self.facts = self._made.answer, self._made.exact, self._made.facts

    def _give(self) -> None:
        engine, recorded = self._engine, self._recorded
        self._is_given = True
        if recorded.seq == engine.plan.at and engine.changes_outcome:
            self._data, text = engine.changed_outcome(recorded)
            self._is_plain = is_plain(text)
            self._is_changed = True
        if self._is_streamed:
            engine.happenings.append(Happening(time.time_ns(), began=self.call_id))
        else:
            engine.happen(recorded.outcome_seq, self._rounds())
            self._look_after()
        if engine.part.is_gateway and recorded.type == "llm_request":
            resolve = engine.resolved_new if self._is_changed else engine.source.reader.resolve
            engine.recorder.derive_calls(self.call_id, recorded.lane, from_json(resolve(self._data)))
        if self._is_changed and "error" in self._data:
            raise rebuild(engine.resolved_new(self._data["error"]))
        super()._give()

    def _rounds(self) -> int | None:
        """When the outcome comes, where that is not as it was recorded."""
        if not self._engine.is_own_way:
            return None
        comes_in = self._is_awaited and not self._recorded.inline and self._lane.has_order
        rounds = self._engine.recorder.rounds_since_last() if comes_in else None
        return -1 if rounds is None else rounds

    @property
    def _is_streamed(self) -> bool:
        """Whether the outcome is one when its last piece was taken; one that was changed may come whole."""
        return self._recorded.is_stream and (not self._is_changed or "pieces" in self._data)

    def _payload(self, member: str) -> Any:
        if self._is_changed and self._data.get(member) is not None:
            return from_json(self._engine.resolved_new(self._data[member]))
        return super()._payload(member)

    def _leave(self, error: BaseException) -> None:
        """The caller went away before there was an outcome."""
        if self._made is not None or self._is_given or self._is_unmatched or not leaving(error):
            return
        recorded = self._recorded
        self._look_after(is_left=True)
        if recorded.never_ends and recorded.outcome_seq:
            self._engine.happen(recorded.outcome_seq)  # as it did when it was recorded
        elif recorded.outcome_seq > self._engine.plan.shared or not recorded.outcome_seq:
            data: dict[str, Any] = {"callId": self.call_id, "cancelled": True}
            if recorded.type == "tool_call":
                data["ok"] = False
            elif recorded.type == "llm_request":
                asked = self._engine.source.data(recorded.seq)
                known = {name: asked[name] for name in ("provider", "model")}
                data |= known | {"stopReason": None, "usage": None}
            else:
                source, _, key = recorded.name.partition("/")
                data |= {"source": source, "key": key}
            self._engine.recorder.append(_OUTCOMES[recorded.type], data)

    def close(self, error: BaseException | None) -> None:
        if self._made is not None:
            self._made.answer, self._made.exact, self._made.facts = self.answer, self.exact, self.facts
            self._made.close(error)
            return
        super().close(error)
        if not self._is_unmatched and self._is_given and self._is_streamed:
            self._engine.happen(self._recorded.outcome_seq)
            self._look_after()

    def _look_after(self, *, is_left: bool = False) -> None:
        """Tell how the files are now; what is shared with the parent tells it already."""
        engine, recorded = self._engine, self._recorded
        if not recorded.beside and not 0 < recorded.outcome_seq <= engine.shared:
            engine.recorder.look_after(self.call_id, may_write=recorded.may_write and not is_left)

    # Of a call that is made after all

    def mark_sent(self) -> None:
        if self._made is not None:
            self._made.mark_sent()

    def begin(self, leave: Callable[[], None]) -> None:
        if self._made is not None:
            self._made.begin(leave)

    def piece(self, value: Any) -> None:
        if self._made is not None:
            self._made.piece(value)

    def give_up(self, error: Exception) -> None:
        """What came cannot be told; see :class:`CaptureStep`."""
        if isinstance(self._made, CaptureStep):
            self._made.give_up(error)

    def pieces(self) -> Iterator[Any]:
        return super().pieces() if self._made is None else self._made.pieces()

    def async_pieces(self) -> AsyncIterator[Any]:
        return super().async_pieces() if self._made is None else self._made.async_pieces()


class NearestStep(ReplayStep):
    """A new call that is answered with the outcome of the nearest recorded one."""

    __slots__ = ("_is_inline", "_recording")
    _engine: ForkEngine

    def __init__(self, engine: ForkEngine, nearest: RecordedCall, lane: Lane, recording: CaptureStep) -> None:
        super().__init__(engine, nearest, lane)
        self._recording = recording
        self._is_inline = False
        """Whether it is there at once for a task, which does not give way."""
        self.call_id = recording.call_id

    def wait(self) -> None:
        line = self._engine.source.reader.line(self._recorded.outcome_seq)
        self._data = _decode(line)["data"]
        self._is_plain = is_plain(line)
        if self._engine.files is not None:
            self._engine.change_files(self._recorded)
        self._give()

    async def turn(self) -> None:
        self._is_inline = True
        self.wait()

    def _give(self) -> None:
        if self._recorded.is_stream:
            self._engine.happenings.append(Happening(time.time_ns(), began=self.call_id))
        else:
            self._record_outcome()
        super()._give()

    def _record_outcome(self) -> None:
        data = {name: value for name, value in self._data.items() if name not in ("inline", "joined")}
        data |= {"callId": self.call_id, "answeredAs": self._recorded.call_id}
        if self._is_inline:
            data["inline"] = True
        self._engine.recorder.append(_OUTCOMES[self._recorded.type], data)
        if self._recorded.type == "llm_request":
            resolved = from_json(self._engine.source.reader.resolve(self._data))
            self._engine.recorder.derive_calls(self.call_id, self._recorded.lane, resolved)
        self._engine.recorder.look_after(self.call_id, may_write=self._recorded.may_write)

    def close(self, error: BaseException | None) -> None:  # noqa: ARG002
        if self._recorded.is_stream:
            self._record_outcome()

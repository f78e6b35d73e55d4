"""The replay engine: answers every call from the recording, or refuses it.

The engine is the context of a replayed run. It matches a call (:mod:`lanes`), waits for the outcome's turn
(:mod:`turns`) and returns what was recorded. A call that does not match is a divergence: strict replay raises
it, and raises again at every later call; lenient replay notes it and answers with the nearest recorded call.
If there is none, the call raises, gets an empty answer or goes live, as *on_unmatched* says.
"""

from __future__ import annotations

import math
import sys
import threading
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from hashlib import sha256
from itertools import chain, islice
from typing import Any, Final, Literal, Protocol, TypeAlias

import msgspec

from reenact.boundary import (
    SLEEPS,
    A,
    Call,
    CallKind,
    DescribeEnd,
    HeldTimer,
    Instant,
    Lane,
    RunMode,
    Step,
    WaitFor,
    outside,
    running_in,
)
from reenact.canonical import digest_of_bytes, encode_clean
from reenact.errors import Diverged
from reenact.formats.capture import CLOCK, ENDED, FIRED, PRINTED, READ
from reenact.formats.divergence import ReplayDivergence
from reenact.formats.record import ABSENT, Absent
from reenact.formats.replay_receipt import AcrossTasks
from reenact.formats.volatile import VolatileRule
from reenact.lane_name import ROOT
from reenact.process_state import open_runs, this_process
from reenact.replayer import report
from reenact.replayer.beside import BesideCalls, EmptyStep
from reenact.replayer.frames import starting_frame
from reenact.replayer.lanes import Key, Lanes
from reenact.replayer.likeness import RunLikeness
from reenact.replayer.loops import give_way
from reenact.replayer.nearest import Nearest
from reenact.replayer.printing import PrintOrder
from reenact.replayer.renaming import DrawnNames, Unknown
from reenact.replayer.shared import SharedOrder
from reenact.replayer.source import RecordedCall, ReplaySource, instant_digest, lanes_of
from reenact.replayer.step import BesideStep, EarlyMatch, OnUnmatched, ReplayStep, diverged
from reenact.replayer.turns import Turns
from reenact.replayer.volatile import VolatileKeys, rules_in_force
from reenact.replayer.waiters import EndingInTurn
from reenact.values.codec import from_json, object_text, rebuild, to_text
from reenact.volatile.alignment import family
from reenact.workspace.replaying import WorkspaceReplay

Policy: TypeAlias = Literal["strict", "lenient"]
_COMPARED: Final = 200
"""How many recorded calls to compare a request with, at most, if it equals none."""
_decode: Final = msgspec.json.Decoder().decode

CALL_TYPES: Final[dict[CallKind, str]] = {
    "tool": "tool_call",
    "llm": "llm_request",
    "network": "nondeterministic",
    "process": "nondeterministic",
}


class Redacting(Protocol):
    """The part of a redactor that the engine needs: calls are compared in their redacted form."""

    def learn(self, headers: Mapping[str, str]) -> None:
        """Hide the credentials in these headers of a request wherever they appear later."""

    def hide(self, secret: str) -> None:
        """The same for *secret*."""

    def redact_request(self, text: bytes) -> bytes:
        """The canonical JSON of a request without secrets; its credentials are learned, too."""

    def redact_json(self, text: bytes) -> bytes:
        """Canonical JSON without its secrets."""

    def redact_text(self, text: str) -> str:
        """A message without its secrets."""


class ReplayEngine:
    """The context of a run that is being replayed."""

    mode: RunMode = "replay"
    sends_in_pieces = False
    latest_model_request: object = None
    noted_from = sys.maxsize
    """From this event on, :meth:`set_aside` is also called for calls without nested calls."""
    notes_order = False
    """Whether to follow the ends of tasks even if the recording has no order of tasks."""
    make_step: Callable[..., ReplayStep[Any]] = ReplayStep
    """Makes the step for a matched call."""

    def __init__(
        self,
        source: ReplaySource,
        redactor: Redacting,
        *,
        policy: Policy = "strict",
        on_unmatched: OnUnmatched = "error",
        passthrough: Collection[str] = (),
        volatile: Iterable[VolatileRule] = (),
        stall_s: float = 10.0,
        is_causal: bool = False,
        on_divergence: Callable[[ReplayDivergence], None] | None = None,
        find_root: Callable[[], str] | None = None,
        evidence: DrawnNames | None = None,
        left_behind: tuple[str, ...] = (),
    ) -> None:
        """*find_root* says, at the first call, which process of the recorded run this one is.

        *evidence* says which names were generated in this run; without it no name and no time may differ.
        *left_behind* are files of the recorded run that already existed before this one began.
        """
        self.policy: Policy = policy
        self.on_unmatched: OnUnmatched = on_unmatched
        self.live_calls: list[Call] = []
        """Calls that were really made because no recorded one matched, including calls nested in them."""
        self._unmatched_live: set[str] = set()
        """The ids of the unmatched live calls."""
        self._redactor = redactor
        self._sent_headers: set[tuple[str, str]] = set()
        """Those of the latest call; the next one has nearly always the same."""
        self._passthrough = frozenset(passthrough)
        self._running_again: set[str] = set()
        """Names of tools that replay answers and also runs, so that their nested calls happen again."""
        self._on_divergence = on_divergence
        self._divergences: list[ReplayDivergence] = []
        self._lock = threading.RLock()  # a signal handler may make a call in the middle of one
        self._rules = rules_in_force(source, volatile)
        self._stall_s = stall_s
        self._is_causal = is_causal
        self._find_root = find_root
        self.is_placed_by_order: Callable[[], bool] = lambda: False
        """Whether it is known, before its first call, which process of the recorded run this one is."""
        self._evidence = evidence or Unknown()
        self._left_behind = left_behind
        self._root = Lane(self, ROOT)
        self._live_calls: set[str] = set()
        self._early_acts: list[tuple[str, Lane]] = []
        """Acts that happened before it was known which recorded process this is."""
        self._running: set[Lane] = set()
        """Tasks, threads and jobs that were started and have not ended."""
        self._old_sleeps: dict[Lane, dict[str, str]] = {}
        """By lane: the names of its sleeps in older captures, see :attr:`Turns.has_old_sleeps`."""
        self._threads: set[Lane] = set()
        """Threads and jobs that have not ended."""
        self._starting: set[Lane] = set()
        """Threads and jobs that have not begun."""
        self._ends: list[tuple[str, str]] = []
        """The recorded names of lanes that have ended, and how, if that is known."""
        self.files: WorkspaceReplay | None = None
        """The run's workspace, if it is replayed, too."""
        self.has_unused_files = False
        """Whether the recording has a workspace that this run does not use."""
        self.orders_sets_anew = False
        """Whether a set of texts has another order in this process than in the recorded one."""
        self._is_over = False
        self.interrupt: Callable[[], None] | None = None
        """Ends a run that has diverged and hangs; ``None`` if that is not possible."""
        self.notes: list[str] = []
        """What the report should mention that is no divergence, such as outcomes out of recorded order."""
        self._read(source)

    def _read(self, source: ReplaySource) -> None:
        self.source = source
        self._is_imported = source.manifest().imported is not ABSENT
        self._volatile = VolatileKeys(source, self._rules)
        self._lanes = Lanes(source.calls, self._key_of, source.root, source.functions)
        self._nearest = Nearest(source, self._lanes, self._volatile.differences)
        self._nested = _nested_calls(source.calls)
        self._passed = 0
        """How many of the recorded calls, counted from the first, have their outcome."""
        self.beside = BesideCalls(source.beside)
        self.prints = PrintOrder(source.prints)
        self.likeness = RunLikeness(source, self._volatile.request_of, self._evidence)
        self.turns = Turns(
            source.by_seq,
            source.times_ms,
            stall_s=self._stall_s,
            on_note=self.notes.append,
            is_causal=self._is_causal,
            acts=source.acts,
            is_running=lambda name: any(self._lanes.name_of(lane) == name for lane in list(self._running)),
            runs_in_thread=self._runs_in_thread,
            progress_of=self._progress_of,
            timed_until=source.ordered_until,
            # Between two events of a fork, the time between the two runs may have passed: days, maybe.
            longest_gap_s=math.inf if source.fork is ABSENT else self._stall_s,
            shared=self._follow_shared(source),
        )

    def _follow_shared(self, source: ReplaySource) -> SharedOrder | None:
        file = this_process.shared_order
        return SharedOrder(file, source.shared, source.root) if file is not None and source.shared else None

    def choose_process(self) -> None:
        """Decide which process of the recorded run this one is, and read that process's part."""
        if self._find_root is None:
            return
        with self._lock:
            find_root, self._find_root = self._find_root, None
            root = self.source.root if find_root is None else find_root()
            if root != self.source.root:
                hosts = self.source.beside_hosts
                runs = self.source.runs_programs
                self._read(ReplaySource(self.source.reader.path, lanes_of(root), root, hosts, runs))
            acts, self._early_acts = self._early_acts, []
            for act, lane in acts:
                self._has_done(lane, act)

    # The boundary's side

    def step(self, call: Call[A], lane: Lane) -> Step[A]:
        if self._unmatched_live and lane.within in self._unmatched_live:
            return self.unmatched_step(call, lane)
        if not call.headers.items() <= self._sent_headers:
            self._sent_headers = {*call.headers.items()}
            self._redactor.learn(call.headers)
        text = to_text(call.request, is_json=call.is_json)
        name = "" if call.kind == "llm" else self._name(call)
        if call.runs_again:
            self._running_again.add(name)
        key = Key(CALL_TYPES[call.kind], name, sha256(text).digest())
        # A fast path: nearly every call equals its recorded one unredacted, and redacting takes longest.
        recorded = None if call.beside else self._find_in_place(lane, key)
        if recorded is None:
            text = self._redactor.redact_request(text)
            if call.beside and (step := self._step_beside(call, lane, name, text)) is not None:
                return step
            key = Key(key.type, name, sha256(text).digest())
            recorded = self._find(lane, key, text)
        is_live = call.kind == "tool" and name in self._passthrough
        if recorded is None and not is_live and self._may_still_come(lane, key, text):
            return self.make_step(self, None, lane, early=EarlyMatch(self, lane, key, text, call))
        found = recorded or self.stand_in(lane, key, text, call)
        if isinstance(found, ReplayDivergence):
            if found.answered is None:
                raise diverged(found)
            return self.unmatched_step(call, lane)
        is_live = is_live or (found.call_id in self.source.programs and self._runs_program(call))
        if is_live and found.call_id is not None:
            self._live_calls.add(found.call_id)
        # Events nested in a call count as happened, unless they happen again.
        is_told = not is_live and (found.seq >= self.noted_from or found.call_id in self._nested)
        self.turns.note_happened([found.seq, *self.set_aside(found, lane)] if is_told else [found.seq])
        return self.make_step(self, found, lane, is_live=is_live)

    def _runs_program(self, call: Call) -> bool:
        """True, and noted: the program is started, because the recorded run talked with it over a socket."""
        program = call.name.strip("{}")  # this Python is recorded as {python}
        self.notes.append(f"{program} was run: the recorded run talked with it over a socket")
        return True

    def _step_beside(
        self, call: Call[A], lane: Lane, name: str, text: bytes
    ) -> BesideStep[A] | EmptyStep[A] | None:
        """The step for a call beside the run; ``None`` if the recording has it as part of the run."""
        with self._lock:
            self.choose_process()
            self.refuse_when_over(CALL_TYPES[call.kind], name)
            if not self.beside.knows(name) and self.source.calls_named(CALL_TYPES[call.kind], name):
                return None
            recorded = self.beside.take(call, name, sha256(text).digest())
        return EmptyStep(call) if recorded is None else BesideStep(self, recorded, lane, is_live=False)

    def unmatched_step(self, call: Call[A], lane: Lane) -> ReplayStep[A]:
        """The step for a call that matches no recorded one: it gets an empty answer, or goes live."""
        step: ReplayStep[A] = ReplayStep(self, None, lane)
        step.answer_unmatched(call)
        return step

    def go_live(self, call: Call) -> str:
        """Let *call* be made for real; returns an id for the calls nested in it."""
        with self._lock:
            self.live_calls.append(call)
            call_id = f"live-{len(self.live_calls)}"
            self._unmatched_live.add(call_id)
            self._live_calls.add(call_id)
        return call_id

    def instant(self, instant: Instant, lane: Lane, produce: Callable[[], object]) -> Any:
        if self._unmatched_live and lane.within in self._unmatched_live:
            return produce()
        if self._is_imported:
            # Imported recordings hold only exchanges. A plain instant is a pause between attempts: skip it.
            return None if instant.is_plain else produce()
        if instant.is_read:
            lane.next_call()
        request = self._as_recorded(instant)
        name = f"{request['source']}/{request['key']}" if instant.type == "nondeterministic" else ""
        key = Key(instant.type, name, instant_digest(request))
        text = encode_clean(request)
        recorded = self._find(lane, key, text)
        if recorded is None and self.files is not None and instant.request.get("type") == "file_write":
            same = self._find_same_write(lane, key, request)
            if same is not None:
                key, text = Key(instant.type, name, instant_digest(same)), encode_clean(same)
                recorded = self._find(lane, key, text)
        if recorded is None and self._may_still_come(lane, key, text):
            early = EarlyMatch(self, lane, key, text, None)
            self.turns.wait_to_match(lane, early.try_again)
            recorded = early.recorded
        found = recorded or self.stand_in(lane, key, text)
        if isinstance(found, ReplayDivergence):
            return self._answer_unmatched_instant(instant, lane, found, produce)
        self.turns.note_happened([found.seq, *self.set_aside(found, lane)])
        data = self.source.data(found.seq)
        answers = self.likeness.answers
        if "error" in data:
            raise rebuild(answers.rename_in_value(self.source.reader.resolve(data["error"])))
        return from_json(answers.rename_in_value(self.source.reader.resolve(data.get("value"))))

    def _find_same_write(self, lane: Lane, key: Key, request: dict[str, object]) -> dict[str, object] | None:
        """The recorded write that equals *request*, up to the folders of the two runs."""
        expected = self._find_expected(lane, key, request)
        if expected is None or expected.type != key.type or self.files is None:
            return None
        recorded: dict[str, object] = self.source.request(expected)
        content = {name: recorded.get(name) for name in ("bytes", "sha256")}
        if recorded == request | content and self.files.is_same_write(expected.seq, recorded, request):
            return recorded
        return None

    def _answer_unmatched_instant(
        self, instant: Instant, lane: Lane, divergence: ReplayDivergence, produce: Callable[[], object]
    ) -> object:
        if not instant.is_read:
            return produce()  # the value comes from this process itself
        if divergence.answered is None:
            raise diverged(divergence)
        if divergence.answered == "empty":
            return None
        name = instant.request.get("path") or f"{instant.request.get('source')}/{instant.request.get('key')}"
        call_id = self.go_live(Call("network", name, instant.request))
        with running_in(lane.inside(call_id, lane.calls)):
            return produce()

    def is_live(self, lane: Lane) -> bool:
        """Whether *lane* runs inside a call that is really made."""
        return lane.within in self._live_calls

    def leaves_to_server(self, call_name: str) -> bool:
        return not self.source.has_asked_here(call_name)

    def note(self, text: str) -> None:
        redacted = self._redactor.redact_text(text)
        if redacted not in self.notes:
            self.notes.append(redacted)

    def time_passes(self, lane: Lane) -> bool:
        return self.is_live(lane)

    def hide(self, secret: str) -> None:
        self._redactor.hide(secret)

    def refuse_unplaced(self, call: Call) -> Diverged:
        text = self._redactor.redact_json(to_text(call.request, is_json=call.is_json))
        key = Key(CALL_TYPES[call.kind], self._name(call), sha256(text).digest())
        divergence = report.describe_unplaced(key, _decode(text))
        self._latch(divergence)
        return diverged(divergence)

    def notice_loop(self, loop: object) -> None:
        self.turns.notice_loop(loop)

    def lane_starting(self, lane: Lane) -> None:
        lane.started_from = starting_frame()
        self._running.add(lane)  # it will end, even if the machine is too busy to begin it soon
        self._starting.add(lane)
        self.turns.start_lane(lane)

    def lane_began(self, lane: Lane) -> None:
        self._running.add(lane)
        self._starting.discard(lane)
        self._threads.add(lane)
        self.turns.begin_lane(lane)

    def lane_ending(self, lane: Lane, how: str) -> None:
        self._note_end(lane, how)
        self.wait_to_act(lane, ENDED)

    def lane_end_seen(self, lane: Lane) -> None:
        """Nothing to do: the next lane may end only after :meth:`lane_ended`."""

    def lane_ended(self, lane: Lane) -> None:
        self._running.discard(lane)
        self._starting.discard(lane)
        self._threads.discard(lane)
        self._has_done(lane, ENDED)
        self.turns.end_lane(lane)

    def task_body(self, lane: Lane, coro: Any, describe: DescribeEnd) -> object:
        lane.started_from = starting_frame()
        self._running.add(lane)
        if not lane.has_order or not (self.source.acts or self.notes_order):
            return coro
        return EndingInTurn(
            coro,
            lambda: self.async_wait_to_act(lane, ENDED),
            lambda answer, error: self.task_ended(lane, describe(answer, error)),
        )

    def task_ended(self, lane: Lane, how: str) -> None:
        if lane in self._running:
            self._running.discard(lane)
            self._note_end(lane, how)
            self._has_done(lane, ENDED)

    def differing_tasks(self) -> list[ReplayDivergence]:
        """Divergences of tasks that ended differently from the recorded ones."""
        if not self.source.has_deadlines or self.source.ordered_until < len(self.source.reader):
            return []
        return report.compare_tasks(self.source, self._ends, self.likeness)

    def has_left_threads(self) -> bool:
        """Whether threads or jobs of the run still run."""
        return bool(self._threads)

    @property
    def is_over(self) -> bool:
        return self._is_over

    def _note_end(self, lane: Lane, how: str) -> None:
        if how and not how.startswith("(") and lane.has_order and not self._is_over:
            self._ends.append((self._lanes.name_of(lane), how))

    def hold_timer(self, lane: Lane, name: str, timer: HeldTimer) -> bool:
        return self._keeps_time(lane) and self.turns.hold_timer(self._timer(lane, name), timer)

    def drop_timer(self, lane: Lane, name: str) -> None:
        self.turns.drop_timer(self._timer(lane, name))

    def timer_fired(self, lane: Lane, name: str) -> None:
        self._has_done(lane, self._timer_mark(lane, name))

    def timer_ran(self, lane: Lane) -> None:
        """What it has woken follows by itself."""

    def deadline(self, lane: Lane, name: str) -> WaitFor:
        return self.turns.choose_wait(self._timer(lane, name)) if self._keeps_time(lane) else "its time"

    def hold_deadline(self, lane: Lane, name: str, seconds: float, passed: Callable[[], object]) -> None:
        self.turns.hold_deadline(self._timer(lane, name), lane, seconds, passed)

    def may_give_up(self, lane: Lane) -> bool:  # noqa: ARG002
        return self.turns.is_idle()

    def _timer(self, lane: Lane, name: str) -> str:
        return self._lanes.name_of(lane) + self._timer_mark(lane, name)

    def _timer_mark(self, lane: Lane, name: str) -> str:
        """The mark that this timer has in the recorded order, after its lane."""
        if name.startswith(SLEEPS) and self.turns.has_old_sleeps:
            before = self._old_sleeps.setdefault(lane, {})
            name = before.setdefault(name, f"{name[0]}{sum(each[0] == name[0] for each in before)}")
        return FIRED + name

    def _progress_of(self, name: str) -> int:
        """How many calls and tasks the lane with the recorded *name* has started in this run."""
        root = open_runs.get(self)
        lanes = [*self._running] if root is None else [root, *self._running]
        return max((lane.progress for lane in lanes if self._lanes.name_of(lane) == name), default=0)

    def _runs_in_thread(self, name: str) -> bool:
        return any(self._lanes.name_of(lane) == name for lane in [*self._starting, *self._threads])

    def _keeps_time(self, lane: Lane) -> bool:
        """Whether the recorded order decides when the timers of *lane* fire."""
        is_known = lane.has_order and self._is_placed() and self.source.has_deadlines
        return is_known and not self._is_over and not self.is_live(lane)

    def _is_placed(self) -> bool:
        """Whether it is known which recorded process this is; its tasks may act before its first call."""
        if self._find_root is not None and self.is_placed_by_order():
            self.choose_process()
        return self._find_root is None

    def wait_to_act(self, lane: Lane, act: str) -> None:
        if lane.has_order and self._is_placed() and self.source.acts:
            self.turns.wait_to_act(self._lanes.name_of(lane) + act, lane)

    async def async_wait_to_act(self, lane: Lane, act: str) -> None:
        if lane.has_order and self._is_placed() and self.source.acts:
            await self.turns.async_wait_to_act(self._lanes.name_of(lane) + act)

    async def async_wait_to_read(self, lane: Lane) -> None:
        if lane.has_order and self._is_placed() and self.source.acts:
            await self.turns.async_wait_to_read(self._lanes.name_of(lane) + READ)
        else:
            await give_way()

    def has_acted(self, lane: Lane, act: str) -> None:
        self._has_done(lane, act)

    def await_shared(self, lane: Lane) -> str | None:
        name = self._lanes.name_of(lane)
        self.turns.wait_to_take(name, lane)
        return self.turns.shared.found(name) if self.turns.shared is not None else None

    def note_shared(self, lane: Lane, found: str) -> None:
        if self.turns.shared is not None:
            self.turns.shared.take(self._lanes.name_of(lane), found)

    def print_piece(self, lane: Lane, write: Callable[[], object]) -> None:
        if not lane.has_order:
            write()
        elif self._is_placed():
            self.prints.write(self._lanes.name_of(lane), write)
        else:
            self._early_acts.append((PRINTED, lane))
            write()

    def read_wall_clock(self, lane: Lane, place: str, now_ns: int) -> int:
        if not lane.has_order or not self._is_placed() or not self.source.clock_reads:
            return now_ns
        reads = self.source.clock_reads.get(f"{self._lanes.name_of(lane)}{CLOCK}{place}")
        return reads.popleft() if reads else now_ns

    def _has_done(self, lane: Lane, act: str) -> None:
        if not lane.has_order:
            return
        if not self._is_placed():
            self._early_acts.append((act, lane))
        elif act == PRINTED:  # before it was known where
            self.prints.write(self._lanes.name_of(lane), lambda: None)
        elif self.source.acts:
            self.turns.has_acted(self._lanes.name_of(lane) + act)

    # The seed's side

    def replay_llm_request(self, request: object, lane: Lane | None = None) -> object:
        """The recorded answer to a model call, made in *lane* or in the root lane."""
        return self._replay(Call("llm", "", request), lane or self._root)

    def replay_tool_call(self, tool: str, args: object, lane: Lane | None = None) -> object:
        """The recorded answer to a tool call."""
        return self._replay(Call("tool", tool, args), lane or self._root)

    def replay_nondeterministic(self, source: str, key: str, lane: Lane | None = None) -> object:
        """The next recorded value of a source of chance."""
        value = Instant("nondeterministic", {"source": source, "key": key}, is_read=True)
        return self.instant(value, lane or self._root, lambda: None)

    next_nondeterministic = replay_nondeterministic

    @property
    def volatile(self) -> tuple[VolatileRule, ...]:
        """The rules in force: the defaults, those of the capture, and those given."""
        return self._volatile.rules

    def divergences(self) -> list[ReplayDivergence]:
        """All divergences so far, in the order in which they were found."""
        with self._lock:
            return list(self._divergences)

    @property
    def has_diverged(self) -> bool:
        return bool(self._divergences)

    def across_tasks(self) -> AcrossTasks | Absent:
        """The calls that were recorded in another task than the one that made them here."""
        with self._lock:
            return self._lanes.across_tasks()

    def _replay(self, call: Call, lane: Lane) -> object:
        step = self.step(call, lane)
        step.wait()
        step.close(None)
        return step.answer

    # Matching

    def _name(self, call: Call) -> str:
        if call.kind == "llm":
            return ""
        return call.name if call.kind == "tool" else f"{call.kind}/{self._redactor.redact_text(call.name)}"

    def _find(self, lane: Lane, key: Key, request_text: bytes) -> RecordedCall | None:
        """The recorded call that this one matches: first the next of its lane, else any that may come now."""
        with self._lock:
            recorded = self._find_in_place(lane, key)
            return recorded if recorded is not None else self._find_elsewhere(lane, key, request_text)

    def _find_in_place(self, lane: Lane, key: Key) -> RecordedCall | None:
        """The next recorded call of the lane, if this call equals it."""
        with self._lock:
            if self._find_root is not None:
                self.choose_process()
            if self._is_over:
                self.refuse_when_over(key.type, key.name)
            if self._divergences and self.policy == "strict":
                self.turns.note_activity()
                raise diverged(self._divergences[0])
            return self._lanes.take(lane, key)

    def _find_elsewhere(self, lane: Lane, key: Key, request_text: bytes) -> RecordedCall | None:
        recorded = self.find_equal(lane, self.keys(key, request_text))
        if recorded is None and not self._may_still_come(lane, key, request_text):
            recorded = self._take_alike(lane, key, request_text)
        return recorded

    def find_equal(self, lane: Lane, keys: Sequence[Key]) -> RecordedCall | None:
        """The nearest recorded call that has one of *keys* and may come now; it is taken."""
        with self._lock:
            own = (self._lanes.take(lane, key) for key in keys)
            others = (self._lanes.take_elsewhere(lane, key) for key in keys)
            return next(filter(None, chain(own, others)), None)

    def _may_still_come(self, lane: Lane, key: Key, request_text: bytes) -> bool:
        """Whether an equal recorded call of another lane may come later, after calls before it."""
        with self._lock:
            unmade = [self._lanes.find_unmade(lane, one) for one in self.keys(key, request_text)]
            return any(call is not None and not self._lanes.plays_alone(lane, call) for call in unmade)

    def stand_in(
        self, lane: Lane, key: Key, request_text: bytes, call: Call | None = None
    ) -> RecordedCall | ReplayDivergence:
        """Report a call that matches no recorded one; in lenient replay another may answer it.

        *call* is ``None`` for an instant.
        """
        request = _decode(request_text)
        expected = self._find_expected(lane, key, request)
        with self._lock:
            unmade = self._lanes.find_unmade(lane, key)
        divergence = report.describe_mismatch(
            self.source,
            lane,
            key,
            request,
            expected,
            unmade,
            volatile=self._volatile,
            likeness=self.likeness,
            orders_sets_anew=self.orders_sets_anew,
        )
        if self.files is not None and expected is not None and isinstance(request, dict):
            lines = self.files.describe_write(self.source.request(expected), request)
            divergence = msgspec.structs.replace(divergence, files=lines) if lines else divergence
        if self.policy == "strict":
            self.diverge(divergence)
        with self._lock:
            stand_in = self._nearest.find(lane, self.keys(key, request_text), request)
        if stand_in is not None:
            divergence = msgspec.structs.replace(divergence, answered_with=stand_in.seq)
        elif self.on_unmatched == "live" or (self.on_unmatched == "empty" and _has_empty_answer(call)):
            divergence = msgspec.structs.replace(divergence, answered=self.on_unmatched)
        divergence = self._latch(divergence)
        return stand_in or divergence

    def keys(self, key: Key, request_text: bytes) -> list[Key]:
        """*key* and, if a rule applies to such calls, the key without volatile parts."""
        masked = self._volatile.of_live(key, request_text)
        return [key] if masked is None else [key, masked]

    def _take_alike(self, lane: Lane, key: Key, request_text: bytes) -> RecordedCall | None:
        """The recorded call that equals this one up to generated names and times, see :mod:`renaming`."""
        translated = self.likeness.with_recorded_names(request_text.decode("utf-8", "surrogatepass"))
        if translated is not None:
            text = translated.encode("utf-8", "surrogatepass")
            name = self.likeness.with_recorded_names(key.name) or key.name
            known = Key(key.type, name, sha256(text).digest())
            recorded = self.find_equal(lane, self.keys(known, text))
            if recorded is not None:
                return recorded
        kind = key.type, family(key.name)
        calls = (call for call in self._lanes.may_come_now(lane) if (call.type, family(call.name)) == kind)
        request = self._volatile.without_volatile(key.type, key.name, _decode(request_text))
        found = self.likeness.take_first(islice(calls, _COMPARED), request)
        if found is not None:
            self._lanes.claim(lane, found)
        return found

    def _as_recorded(self, instant: Instant) -> dict[str, object]:
        if instant.is_plain:
            return instant.request
        request: dict[str, object] = _decode(self._redactor.redact_json(object_text(instant.request)))
        return request

    def refuse_when_over(self, event_type: str, name: str) -> None:
        """Raise if the run is over: code that it started is still running."""
        if self._is_over:
            what = report.name_call(event_type, name)
            raise Diverged(f"{what}: the replay in which its caller was started is over")

    def _find_expected(self, lane: Lane, key: Key, request: object) -> RecordedCall | None:
        with self._lock:
            if lane.is_loose:
                # A loose lane has no next call; the most similar one may be what was meant.
                return self._nearest.find_most_similar(lane, key, request)
            place = self._lanes.expected(lane)
            return place.find_next() if place is not None else None

    def _key_of(self, call: RecordedCall, is_masked: bool) -> Key:
        if is_masked:
            return self._volatile.of_recorded(call)
        if call.request_digest is None:
            call.request_digest = instant_digest(self.source.request(call))
        return Key(call.type, call.name, call.request_digest)

    def tools_not_run(self) -> list[str]:
        """The names of tools that were answered from the recording and not run."""
        again = self._running_again | self._passthrough
        calls = (call for call in self.source.calls if call.type == "tool_call" and call.taken)
        return [call.name for call in calls if call.name not in again]

    def set_aside(self, call: RecordedCall, lane: Lane) -> list[int]:  # noqa: ARG002
        """Mark the calls nested in an answered call as taken; returns the numbers of their events."""
        return self._events_of(call)

    def _events_of(self, call: RecordedCall) -> list[int]:
        if call.type == "tool_call" and call.name in self._running_again:
            return []
        inner = self._nested.get(call.call_id or "", ())
        seqs: list[int] = []
        for nested in inner:
            nested.taken = True
            seqs += [nested.seq, nested.outcome_seq, *self._events_of(nested)]
        return seqs

    # Divergences

    def compare_files(self, recorded: RecordedCall, lane: Lane) -> None:
        """Report if the files are not as they were before the recorded call."""
        if self.files is not None and not recorded.is_instant and not recorded.beside:
            divergence = self.files.check_before(recorded.seq, is_in_turn=self._are_earlier_done(recorded))
            if divergence is not None:
                self.diverge(msgspec.structs.replace(divergence, lane=lane.name))

    def _are_earlier_done(self, recorded: RecordedCall) -> bool:
        """Whether all calls before it have their outcome; threads may make calls in another order."""
        calls = self.source.calls
        with self._lock:
            while self._passed < len(calls) and calls[self._passed].seq < recorded.seq:
                call = calls[self._passed]
                is_waited_for = not call.is_instant and call.parent is None and call.outcome_seq
                if is_waited_for and not self.turns.has_happened(call.outcome_seq):
                    return False
                self._passed += 1
        return True

    def compare_files_at_end(self) -> None:
        """Report if the files are not as they were at the recorded end."""
        divergence = self.files.at_end() if self.files is not None else None
        if divergence is not None:
            self._latch(divergence)

    def recorded_files(self) -> list[str]:
        """The files that the recorded run wrote and that are in this run's workspace."""
        if self.files is None:
            return []
        wrote = self.source.data(len(self.source.reader)).get("wrote") or ()
        return [place for place in wrote if self.files.has_file(place)]

    def change_files(self, recorded: RecordedCall) -> None:
        """Repeat the changes of an answered call in the files; model calls and tools that ran need none."""
        if self.files is not None and not recorded.beside:
            has_run = recorded.type == "llm_request" or recorded.name in self._running_again
            with outside():  # the agent does not write them
                self.files.note_answer(recorded.seq, recorded.outcome_seq, has_run=has_run)

    def diverge(self, divergence: ReplayDivergence) -> None:
        """Keep *divergence*; strict replay raises it."""
        divergence = self._latch(divergence)
        if self.policy == "strict":
            raise diverged(divergence)

    def _latch(self, divergence: ReplayDivergence) -> ReplayDivergence:
        """Keep *divergence*; the first one also names what may have caused it."""
        with self._lock:
            if not self._divergences and (self._left_behind or self.has_unused_files):
                divergence = msgspec.structs.replace(
                    divergence, left_behind=self._left_behind, has_unused_files=self.has_unused_files
                )
            self._divergences.append(divergence)
        self.turns.let_time_pass()
        self.prints.forget_order()
        if self.interrupt is not None and self.policy == "strict":
            self.turns.watch_end(self.interrupt)
        if self._on_divergence is not None:
            self._on_divergence(divergence)
        return divergence

    def end(self) -> None:
        """The run is over: release all calls that still wait."""
        self._is_over = True
        self.turns.close()
        self.prints.forget_order()

    def finish(self, final_output: object, error: BaseException | None) -> str | None:
        """Report calls that never came, another end and another final output; returns the output's digest."""
        self.end()
        found: list[ReplayDivergence] = []
        is_placed = self._find_root is None  # a process without calls may be none of the recorded ones
        if is_placed and (not self._divergences or self.policy == "lenient"):
            found = report.describe_left_over(self.source)
            if not isinstance(error, Diverged):
                found += report.compare_end(self.source, error)
                found += self.differing_tasks() if not self._divergences else []
        digest = None
        if final_output is not None:
            text = self._redactor.redact_json(to_text(final_output))
            digest = digest_of_bytes(text)
            found += report.compare_output(self.source, text, digest, self.likeness)
        for divergence in found:
            self._latch(divergence)
        return digest


def _has_empty_answer(call: Call | None) -> bool:
    """Whether the call has an empty answer; an instant always has."""
    if call is None or call.empty is None:
        return call is None or call.kind == "tool"
    return call.empty() is not None


def _nested_calls(calls: list[RecordedCall]) -> dict[str, list[RecordedCall]]:
    nested: dict[str, list[RecordedCall]] = {}
    for call in calls:
        if call.parent is not None:
            nested.setdefault(call.parent, []).append(call)
    return nested

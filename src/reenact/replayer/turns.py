"""Delivers recorded outcomes in recorded order, so that races and completion order repeat.

An outcome's turn has come when every event before it has happened and everything that the last delivery has
woken is at rest: event loops have nothing ready, threads have reached their next call or their end. The
*acts* of the agent's tasks (ending, putting items into queues, taking locks) are part of the order: a thread
does them in its turn. So are timers (:mod:`timers`). What came in on an event loop before the loop was at
rest comes in after as many of its rounds (:mod:`arrivals`), and what does not come is passed over
(:mod:`patience`). A synchronous call on an event loop's own thread does not wait at all.
"""

from __future__ import annotations

import _thread
import math
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from heapq import heappop, heappush
from itertools import islice
from types import MappingProxyType
from typing import Any, Final

from reenact.boundary import HeldTimer, Lane, WaitFor, is_cancellation, is_on_loop
from reenact.formats.capture import FIRED
from reenact.replayer.arrivals import Arrivals
from reenact.replayer.idle import PatientClock
from reenact.replayer.loops import Loop, give_way, running_loop
from reenact.replayer.patience import Patience
from reenact.replayer.rest import Rest, note_running_loop, who_runs
from reenact.replayer.shared import SharedOrder
from reenact.replayer.source import Act, RecordedCall
from reenact.replayer.timeline import Timeline, is_handed
from reenact.replayer.timers import Timers
from reenact.replayer.waiters import ActWaiter, EarlyCall, LoopWaiter, ThreadWaiter, Waiter, Waiting

_CLIENT_S: Final = 0.02
"""How long another program gets, at most, to process one answer before the next one."""
_OVERTAKING: Final = 512
"""How many recorded items to search for a thread that overtook another."""
_OVERTAKING_MS: Final = 10
"""How much later its answer may have come, at most."""
_HELD_S: Final = 0.05
"""How long an event loop stands still, at most, for the act of a running thread."""
_HOLD_LOOK_S: Final = 0.0005
_LOOK_S: Final = 0.001
_ROUND_S: Final = 0.005
_ASKED_ROUNDS: Final = 20
"""How many rounds the ticker goes on after a thread asked whether it may give up; it asks again sooner."""


class Turns:
    """Decides when each call, act and timer of a replay has its turn."""

    def __init__(
        self,
        by_seq: dict[int, RecordedCall],
        times_ms: Sequence[float],
        *,
        stall_s: float,
        on_note: Callable[[str], None],
        is_causal: bool = False,
        acts: Mapping[int, Sequence[Act]] = MappingProxyType({}),
        is_running: Callable[[str], bool] = lambda _lane: False,
        runs_in_thread: Callable[[str], bool] = lambda _lane: False,
        progress_of: Callable[[str], int] = lambda _lane: 0,
        timed_until: int = sys.maxsize,
        longest_gap_s: float = math.inf,
        shared: SharedOrder | None = None,
    ) -> None:
        """*is_causal*: lanes say nothing about order, so a call needs all calls that had ended before it.

        *is_running* says whether a recorded lane has begun here and has not ended, *runs_in_thread* whether
        it does so as a thread or job, *progress_of* how many calls and tasks it has started. The recording
        has timers up to the event *timed_until*. A long gap before a recorded event makes replay wait for it
        no longer than *longest_gap_s*. *shared* is the order in which all processes take what they share.
        """
        self.shared = shared
        self._timed_until = timed_until
        self._is_free = False
        """Whether every outcome is due at once, because earlier recorded events may never come."""
        self._runs_in_thread = runs_in_thread
        self._not_held_for: Act | None = None
        """The act of a thread for which an event loop has stood still in vain."""
        self._is_causal = is_causal
        self._stall_s = stall_s
        self._lock = threading.RLock()
        self._clock = PatientClock()
        self._timeline = Timeline(by_seq, times_ms, acts, self._clock, longest_gap_s)
        self._waiting = Waiting()
        self._rest = Rest(self._clock, self._on_loop_round, self._on_loop_dry)
        self.timers = Timers(
            self._timeline,
            self._rest,
            self._waiting,
            self._clock,
            advance=self._advance,
            on_note=on_note,
            is_running=is_running,
            progress_of=progress_of,
        )
        self._arrivals = Arrivals(
            self._timeline,
            self._waiting,
            self.timers,
            answer=self._answer,
            note_answered=self._note_answered,
        )
        self.patience = Patience(
            self._timeline,
            self._rest,
            self._waiting,
            self.timers,
            self._clock,
            stall_s=stall_s,
            is_causal=is_causal,
            advance=self._advance,
            on_note=on_note,
            is_due=self._is_due,
            is_running=is_running,
        )
        self._latest: RecordedCall | None = None
        """The call that was answered last; only if *is_causal*."""
        self._answered = 0
        """How many calls were answered, and when the last one; only if *is_causal*."""
        self._answered_s = 0.0
        self._held_loops = 0
        """How many event loops stand still; the ticker runs, because the clock advances only with it."""
        self._asked_rounds = 0
        """For how many more rounds the ticker must run, because a thread asked whether all is quiet."""
        self._ticker: threading.Thread | None = None
        self._wake = threading.Event()
        self._advance()

    # What the engine reports

    def note_happened(self, seqs: Sequence[int]) -> None:
        """Note that these recorded events have happened or need not happen."""
        with self._lock:
            for seq in seqs:
                self._timeline.happened[seq] = 1
            self._advance()
            self._timeline.active_s = self._clock.now_s
            if self._waiting.early:
                self._try_early_again()
            if self._waiting.queue or self.timers.held:
                self._deliver()

    def note_stream_end(self, call: RecordedCall, *, is_read: bool) -> None:
        """Note that the stream of *call* has ended; if it *is_read* to its end, that came in on the loop."""
        with self._lock:
            if is_read and self._timeline.has_joined_near():
                loop = self._rest.find_loop(running_loop())
                if loop is not None:
                    loop.note_arrival()
            self.note_happened([call.outcome_seq])

    def has_happened(self, seq: int) -> bool:
        """Whether a recorded event has happened or need not happen."""
        return bool(self._timeline.happened[seq])

    def notice_loop(self, loop: object) -> None:
        """From now on, *loop* must be at rest before anything is delivered."""
        found = self._rest.find_loop(loop)
        if found is not None:
            found.notice()
            return
        with self._lock:
            self._rest.notice_loop(loop)

    def start_lane(self, lane: Lane) -> None:
        with self._lock:
            self._rest.start_job(lane)

    def begin_lane(self, lane: Lane) -> None:
        with self._lock:
            self._rest.begin_thread(lane)

    def end_lane(self, lane: Lane) -> None:
        with self._lock:
            self._rest.stop(lane)
            self._rest.watch_loops()
            self._deliver()

    def close(self) -> None:
        """The run is over: release all that wait."""
        with self._lock:
            self._waiting.release_all()
            if self.shared is not None:
                self.shared.leave()
            self.timers.release_all()
            self._rest.release_loops()
        self._wake.set()

    # Waiting

    def wait(self, call: RecordedCall, lane: Lane) -> bool:
        """Block until the turn of *call*; false if it stalled: it has no answer and is not cancelled here."""
        if self._rest.would_block_loop() or self._waiting.is_over:
            self._skip_turn(call)
            return True
        runner = who_runs(lane)
        with self._lock:
            self._rest.stop(runner)
            self._timeline.overdue.discard(call.lane)
            if not self._waiting.queue and not call.never_ends and self._is_due(call) and self._is_quiet():
                self._note_delivery(call)
                self._rest.wake(runner)
                return True
            waiter = ThreadWaiter(call, lane, runner, self._stalls_at_s(call))
            self._rest.block()
            self._enqueue(waiter)
        self._block(waiter.came)
        return not waiter.stalled

    def _block(self, came: threading.Event) -> None:
        self._rest.block()
        came.wait()
        self._rest.unblock()

    async def async_wait(self, call: RecordedCall, lane: Lane) -> bool:
        """The same on an event loop, without creating a task."""
        if call.inline or self._waiting.is_over:
            self._skip_turn(call)
            return True
        if not is_on_loop():  # the coroutine is driven by hand, or by an unknown event loop
            return self.wait(call, lane)
        with self._lock:
            self._timeline.overdue.discard(call.lane)
            waiter = LoopWaiter(call, lane, self._stalls_at_s(call), note_running_loop(self._rest))
            waiter.loop.watch_rest()
            self._enqueue(waiter)
        await self._wait_on_loop(waiter)
        return not waiter.stalled

    async def wait_for_cancellation(self, call: RecordedCall, lane: Lane) -> None:
        """Wait to be cancelled, as the recorded caller was; returns if no cancellation comes."""
        if self._waiting.is_over or not is_on_loop():
            return
        with self._lock:
            waiter = LoopWaiter(call, lane, self._clock.now_s + self._stall_s, note_running_loop(self._rest))
            self._waiting.endless.append(waiter)
            self._start_ticker()
        await self._wait_on_loop(waiter)

    def wait_to_match(self, lane: Lane, try_again: Callable[[], bool]) -> None:
        """Block until *try_again*, which is called after every event, says that the call may come now.

        Returns, too, if nothing happens any more that could let it come.
        """
        if self._rest.would_block_loop() or self._waiting.is_over:
            return
        came = threading.Event()
        runner = who_runs(lane)

        def release() -> None:
            self._rest.wake(runner)
            came.set()

        with self._lock:
            if try_again():
                return
            self._rest.stop(runner)
            self._wait_early(EarlyCall(try_again, release, self._clock.now_s))
        self._block(came)

    async def async_wait_to_match(self, lane: Lane, try_again: Callable[[], bool]) -> None:
        """The same on an event loop."""
        if not is_on_loop():
            self.wait_to_match(lane, try_again)
            return
        if self._waiting.is_over:
            return
        with self._lock:
            if try_again():
                return
            loop = note_running_loop(self._rest)
            future = loop.new_wait()
            early = EarlyCall(try_again, lambda: loop.resolve(future), self._clock.now_s)
            self._wait_early(early)
            loop.watch_rest()
        try:
            await future
        finally:
            with self._lock:
                if early in self._waiting.early:
                    self._waiting.early.remove(early)

    def _wait_early(self, early: EarlyCall) -> None:
        self._waiting.early.append(early)
        self._start_ticker()

    def _try_early_again(self) -> None:
        """Release the early calls that may come now; each may let others come."""
        while ready := next((early for early in self._waiting.early if early.try_again()), None):
            self._waiting.early.remove(ready)
            ready.release()

    async def _wait_on_loop(self, waiter: LoopWaiter) -> None:
        try:
            await waiter.future
        except BaseException as error:
            if is_cancellation(error):
                self._give_up(waiter)
            raise

    def _skip_turn(self, call: RecordedCall) -> None:
        """Let the call be answered without waiting for its turn."""
        self.note_happened([] if call.is_stream else [call.outcome_seq])

    def _stalls_at_s(self, call: RecordedCall) -> float | None:
        if not call.never_ends:
            return None
        took_s = max(0.0, call.ended_ms - call.made_ms) / 1000
        return self._clock.now_s + took_s * 2 + self._stall_s

    def _enqueue(self, waiter: Waiter) -> None:
        if waiter.call.never_ends:
            self._waiting.endless.append(waiter)
        else:
            call = waiter.call
            waiter.answered_before = self._answered
            heappush(self._waiting.queue, (call.due_after, call.opening, call.seq, waiter))
            self._deliver()
        if not waiter.is_done:
            self._start_ticker()

    def _give_up(self, waiter: Waiter) -> None:
        with self._lock:
            waiter.is_done = True
            if waiter in self._waiting.endless:
                self._waiting.endless.remove(waiter)
            self.note_happened([waiter.call.outcome_seq])

    # Acts of the agent's tasks

    def wait_to_act(self, what: str, lane: Lane) -> None:
        """Block the thread of *lane* until everything before the act *what* in the recording has happened."""
        if self._waiting.is_over:
            return
        if self._rest.would_block_loop():
            self._hold_loop(lambda: self._timeline.next_act_of(what))
            return
        came = threading.Event()

        def release() -> None:
            self._rest.wake(lane)
            came.set()

        with self._lock:
            moving = self._rest.stop(lane)
            act = self._act_to_await(what)
            if act is None:
                self._rest.resume(lane, moving)
                return
            self._waiting.acting.append(ActWaiter(act, release))
            self._start_ticker()
        self._block(came)

    def wait_to_take(self, lane_name: str, lane: Lane) -> None:
        """Block the thread until other processes have taken what comes before the next of *lane_name*."""
        came = threading.Event()

        def release() -> None:
            self._rest.wake(lane)
            came.set()

        with self._lock:
            if self.shared is None or self._waiting.is_over or self._is_free or self._rest.would_block_loop():
                return
            if self.shared.is_due(lane_name, self._clock.now_s):
                return
            self._rest.stop(lane)
            self._waiting.taking[lane_name] = release
            self._start_ticker()
        self._block(came)

    async def async_wait_to_act(self, what: str) -> None:
        """The same on an event loop."""
        if not is_on_loop() or self._waiting.is_over:
            return
        self._hold_loop(lambda: self._timeline.next_act_of(what))
        with self._lock:
            act = self._act_to_await(what, on_loop=True)
            if act is None:
                return
            loop = note_running_loop(self._rest)
            future = loop.new_wait()
            waiter = ActWaiter(act, lambda: loop.resolve(future), is_on_loop=True)
            self._waiting.acting.append(waiter)
            loop.watch_rest()
            self._start_ticker()
        try:
            await future
        finally:
            with self._lock:
                if waiter in self._waiting.acting:
                    self._waiting.acting.remove(waiter)

    async def async_wait_to_read(self, what: str) -> None:
        """Wait for the turn of *what*, the read of a piece; other tasks run meanwhile if they did then."""
        with self._lock:
            act = self._timeline.next_act_of(what)
        if act is None or not act.is_together:
            await give_way()
            await self.async_wait_to_act(what)

    def _hold_loop(self, next_act: Callable[[], Act | None]) -> None:
        """Let the event loop of this thread stand still while a running thread must act before *next_act*.

        Otherwise its other tasks would run ahead of what the thread hands to them.
        """
        began_s: float | None = None
        try:
            while True:
                with self._lock:
                    act = next_act()
                    due = self._timeline.due_act() if act is not None and self._timeline.acts else None
                    if due is None or due is act or due is self._not_held_for:
                        return
                    if not self._comes_from_thread(due):
                        return
                    if began_s is None:
                        began_s = self._clock.now_s
                        self._held_loops += 1
                        self._start_ticker()
                    elif self._clock.now_s - began_s > _HELD_S:
                        self._not_held_for = due
                        return
                    self._rest.look_around()
                    self._release_acting()
                pause = _thread.allocate_lock()
                pause.acquire()
                pause.acquire(timeout=_HOLD_LOOK_S)
        finally:
            if began_s is not None:
                with self._lock:
                    self._held_loops -= 1

    def _comes_from_thread(self, act: Act) -> bool:
        """Whether a thread that runs here must do *act*; a callback that it has handed over is the loop's."""
        if FIRED in act.what and (not is_handed(act.what) or act.what in self.timers.held):
            return False
        return self._runs_in_thread(act.lane)

    def _act_to_await(self, what: str, *, on_loop: bool = False) -> Act | None:
        """The act that the caller is about to do, if it must wait for its turn."""
        act = self._timeline.next_act_of(what)
        if act is None or (on_loop and not act.is_first_read and self._timeline.due_act() is act):
            return None
        if self._may_act(act, on_loop=on_loop):
            return None
        return act

    def has_acted(self, what: str) -> None:
        """Note that the act *what* has happened, in its turn or not."""
        with self._lock:
            act = self._timeline.next_act_of(what)
            if act is None:
                return
            act.left -= 1
            self.patience.done_acts += 1
            self._timeline.active_s = self._clock.now_s
            if self._timeline.next == act.seq:
                self._timeline.next_since_s = self._clock.now_s
            self._advance()
            if act.is_read and not act.is_together and self._timeline.has_joined_near():
                self._deliver_after_piece()
            if self._waiting.queue or self.timers.held:
                self._deliver()

    def _deliver_after_piece(self) -> None:
        loop = self._rest.find_loop(running_loop())
        if loop is not None:
            loop.note_arrival()
            self._arrivals.deliver_next(loop)

    # Timers and deadlines

    def hold_timer(self, name: str, held: HeldTimer) -> bool:
        """Fire *held* in its turn; returns false if it is to fire by itself."""
        with self._lock:
            if self._waiting.is_over or not self.timers.hold(name, held):
                return False
            self._start_ticker()
        return True

    def drop_timer(self, name: str) -> None:
        """The timer was cancelled; if it fired in the recording, it is no longer awaited."""
        with self._lock:
            if self.timers.drop(name):
                self._deliver()

    @property
    def has_old_sleeps(self) -> bool:
        """Whether the recording counts sleeps from the start of their lane."""
        return self._timeline.has_old_sleeps

    def choose_wait(self, name: str) -> WaitFor:
        """How the calling thread must wait if it waits with the deadline *name*."""
        if self._rest.would_block_loop() or self._waiting.is_over or self.timers.time_passes:
            return "its time"
        return "nothing" if name in self._timeline.went_off else "what comes"

    def hold_deadline(self, name: str, lane: Lane, seconds: float, passed: Callable[[], object]) -> None:
        """Call *passed* when the deadline of the waiting thread of *lane* passes."""
        with self._lock:
            if self._waiting.is_over:
                passed()
                return
            self.timers.hold_deadline(name, lane, seconds, passed)
            self._deliver()
            self._start_ticker()

    def is_idle(self) -> bool:
        """Whether nothing else will happen, so that a deadline may pass that did not when recorded."""
        with self._lock:
            self._rest.look_around()
            self._asked_rounds = _ASKED_ROUNDS
            self._start_ticker()
            return self.patience.is_idle()

    def let_time_pass(self) -> None:
        """From now on, fire timers by real time: the recorded order no longer applies to them."""
        with self._lock:
            self.timers.time_passes = True
            if self.timers.held:
                self._start_ticker()

    def watch_end(self, on_stuck: Callable[[], None]) -> None:
        """The run has diverged and should end; call *on_stuck* if nothing happens instead.

        The divergence may have ended a thread for whose result another one waits.
        """
        with self._lock:
            self.patience.on_stuck, self._timeline.active_s = on_stuck, self._clock.now_s
            self._start_ticker()

    def note_activity(self) -> None:
        """Note that the run does something; takes no lock."""
        self._timeline.active_s = self._clock.now_s

    def forget_order(self) -> None:
        """From now on the run differs: release what waits for the recorded order, and use real time."""
        with self._lock:
            self._is_free = self.timers.time_passes = True
            self._timeline.forget_order()
            self._waiting.release_acting()
            if self.shared is not None:
                self.shared.leave()
            self._advance()
            self._deliver()
            if self.timers.held or self._waiting.queue:
                self._start_ticker()

    def _may_act(self, act: Act, *, on_loop: bool) -> bool:
        if self._timeline.next > act.seq or act.left <= 0:
            return True
        is_due = self._timeline.next == act.seq and self._timeline.due_act() is act
        if is_due and act.is_end and not on_loop:
            # The threads that the last end has woken come to rest; what it woke on a loop has its own turn.
            return self._rest.are_threads_quiet(self._ticker)
        # First let what a timer has woken come to rest, so that it sees the state as when recorded.
        return is_due and (not (self.timers.is_settling or act.is_first_read) or self._rest.is_there)

    def _release_taking(self) -> None:
        for name in [*self._waiting.taking]:
            if self.shared is None or self.shared.is_due(name, self._clock.now_s):
                self._timeline.wait_again()
                self._waiting.taking.pop(name)()

    def _release_acting(self) -> None:
        for waiter in list(self._waiting.acting):
            if self._may_act(waiter.act, on_loop=waiter.is_on_loop):
                self._waiting.acting.remove(waiter)
                waiter.release()

    # Delivering

    def _on_loop_dry(self) -> None:
        with self._lock:
            self._deliver()

    def _on_loop_round(self, loop: Loop) -> None:
        """After a round of *loop*: deliver what came in before the loop was at rest."""
        with self._lock:
            self._arrivals.deliver_next(loop)
        if self._rest.has_threads and loop.is_here:
            self._hold_loop(lambda: self._arrivals.find_missing(loop))
            with self._lock:
                self._arrivals.deliver_next(loop)

    def _deliver(self) -> None:
        """Fire the timers and answer the calls whose turn it is, as long as everything is at rest."""
        if self.timers.is_settling and self._rest.is_there:
            self.timers.is_settling = False
            self._release_acting()
        while self._timeline.acts or self.timers.held:
            if not (self._fire_due_timer() or self.timers.skip_due()):
                break
        while self._waiting.queue:
            waiter = self._waiting.queue[0][-1]
            if not waiter.is_done:
                loop = waiter.loop if isinstance(waiter, LoopWaiter) else None
                if not self._is_due(waiter.call) or not self._is_quiet() or self._comes_too_soon(waiter):
                    return
                if loop is not None and not self._may_begin_on(loop, waiter.call):
                    return
                first = self._find_first_to_act(waiter) if loop is None else waiter
                self._answer(first)
                if first is not waiter:
                    return
                if loop is not None:
                    self._arrivals.deliver_next(loop, at_once=True)
            heappop(self._waiting.queue)

    def _fire_due_timer(self) -> bool:
        """Fire the timer whose turn it is, if any; returns whether one fired."""
        timer = self.timers.find_due()
        if timer is None:
            return False
        if timer.loop is None:
            self.timers.fire_in_turn(timer)
        elif not self._may_begin_on(timer.loop, self._timeline.next_act_of(timer.name)):
            return False
        else:
            self._arrivals.fire(timer.loop, timer)
        self._timeline.next_since_s = self._clock.now_s
        return True

    def _may_begin_on(self, loop: Loop, first: Act | RecordedCall | None) -> bool:
        """Whether *first* may come in on *loop* now: in the loop's thread, and all that follows is ready."""
        return self._arrivals.are_ready(loop, first) and (loop.is_here or not loop.call(self._on_loop_dry))

    def _find_first_to_act(self, waiter: Waiter) -> Waiter:
        """Of the threads that got answers together with *waiter*, the one that acted first.

        An answer passes through the SDK before the agent sees it, so another thread may overtake meanwhile.
        The recorded acts, such as ends and puts, and the next call of *waiter*'s thread show in which order
        the agent's code ran.
        """
        if waiter.call.is_stream or len(self._waiting.queue) == 1 or not self._timeline.acts:
            return waiter
        until_ms = waiter.call.ended_ms + _OVERTAKING_MS
        answered = {
            entry[-1].call.outcome_seq: entry[-1]
            for entry in self._waiting.queue
            if not entry[-1].is_done and entry[-1].call.ended_ms <= until_ms
        }
        under_way = {waiter.call.lane: waiter}
        first: Waiter | None = None
        for item in islice(self._timeline.all_items(), _OVERTAKING):
            if isinstance(item, Act):
                if FIRED in item.what:
                    return waiter
                # Who got no answer acts on any of them; who already waits to act has run before.
                if item.lane in under_way and all(acting.act is not item for acting in self._waiting.acting):
                    first = first or under_way[item.lane]
                    if item.lane == waiter.call.lane:
                        return first
                continue
            call = self._timeline.by_seq[item]
            if item == call.seq:
                is_own = call.lane == waiter.call.lane
                if is_own or under_way.pop(call.lane, None) is None:
                    return first if is_own and first is not None else waiter
            else:
                other = answered.get(item)
                if not isinstance(other, ThreadWaiter) or other.call.is_stream:
                    return waiter
                under_way.setdefault(call.lane, other)
        return waiter

    def _comes_too_soon(self, waiter: Waiter) -> bool:
        """Whether another program that waits for several answers may still process the last one."""
        if self._latest is None or waiter.answered_before == self._answered:
            return False
        gap_s = (waiter.call.ended_ms - self._latest.ended_ms) / 1000
        return self._clock.now_s < self._answered_s + min(gap_s, _CLIENT_S)

    def _answer(self, waiter: Waiter) -> None:
        if self._is_causal:
            self._latest, self._answered_s = waiter.call, self._clock.now_s
            self._answered += 1
        self._note_answered(waiter)
        waiter.release()
        if isinstance(waiter, LoopWaiter):
            waiter.loop.expect_arrival()
        elif isinstance(waiter, ThreadWaiter):
            self._rest.wake(waiter.runner)

    def _note_answered(self, waiter: Waiter) -> None:
        waiter.is_done = True
        self._note_delivery(waiter.call)

    def _note_delivery(self, call: RecordedCall) -> None:
        # The outcome of a stream is its end, which comes when the agent has read it.
        if not call.is_stream:
            self._timeline.happened[call.outcome_seq] = 1
            self._timeline.active_s = self._clock.now_s
            self._advance()

    def _is_due(self, call: RecordedCall) -> bool:
        if self._timeline.next <= call.due_after:
            return self._is_free
        # Of a stream's beginning only the event before it is recorded, not the acts in between.
        return (
            not self._timeline.acts
            or call.is_stream
            or self._timeline.next > call.due_after + 1
            or self._timeline.due_act() is None
        )

    def _is_quiet(self) -> bool:
        return self._rest.is_quiet(self._ticker)

    def _advance(self) -> None:
        """Move to the first event that has not happened and is still awaited."""
        if self._timeline.move_on():
            self.timers.extra_sleeps = 0
            if self._timeline.next > self._timed_until and not self.timers.time_passes:
                self.let_time_pass()
        if self._waiting.acting:
            self._release_acting()

    # Time passing

    def _start_ticker(self) -> None:
        if self._waiting.is_over:
            return
        if self._ticker is None:
            ticker = threading.Thread(target=self._tick, name="reenact-turns", daemon=True)
            # Started without the seam: the engine's own thread must not get a lane.
            start: Any = threading.Thread.start
            while hasattr(start, "__wrapped__"):  # others may have wrapped the seam
                start = start.__wrapped__
            try:
                start(ticker)
            except RuntimeError:
                # Python 3.12 starts no thread at shutdown: calls of exit functions do not wait for a turn.
                self.close()
                return
            self._ticker = ticker
        self._wake.set()

    def _tick(self) -> None:
        while not self._waiting.is_over:
            with self._lock:
                self._rest.look_around()
                self._release_taking()
                self.patience.pass_over_late_event()
                self.patience.release_stalled()
                self.patience.release_early()
                self._release_acting()
                self._deliver()
                if self.timers.held:
                    self.timers.fire_by_clock(self.patience.is_idle)
                self.patience.interrupt_stuck()
                is_idle = self._waiting.is_empty and not (
                    self.timers.held or self._held_loops or self._asked_rounds or self.patience.on_stuck
                )
                self._asked_rounds = max(0, self._asked_rounds - 1)
                is_moving = self._rest.may_come_soon or bool(self._waiting.taking)
                pause_s = _LOOK_S if is_moving else _ROUND_S
            if is_idle:
                self._wake.wait()
            else:
                self._clock.pause(self._wake, pause_s)
            self._wake.clear()

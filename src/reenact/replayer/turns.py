"""Delivers recorded outcomes in recorded order, so that races and completion order repeat.

An outcome's turn has come when every event before it has happened and everything that the last delivery has
woken is at rest: event loops have nothing ready, threads have reached their next call or their end. The
*acts* of the agent's tasks (ending, putting items into queues, taking locks) are part of the order: a thread
does them in its turn. So are timers: a timer that fired in the recording fires in its turn, without waiting;
one that did not fire does not, as long as anything recorded is still to come.

If something came in on an event loop before the loop was at rest, it comes in after the same number of the
loop's rounds.

Recorded order is a preference, not a condition. If an earlier event does not come within the time that the
recording took to reach it, plus a grace, it is skipped and noted, and the waiting call is answered. Nothing
waits for ever, and a synchronous call on an event loop's own thread does not wait at all.
"""

from __future__ import annotations

import _thread
import math
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from heapq import heappop, heappush
from itertools import islice
from time import monotonic
from types import MappingProxyType
from typing import Any, Final

from reenact.boundary import HeldTimer, Lane, WaitFor, is_cancellation, is_on_loop
from reenact.formats.capture import FIRED
from reenact.lane_name import LaneName
from reenact.replayer.idle import PatientClock
from reenact.replayer.loops import Loop, give_way, running_loop
from reenact.replayer.rest import Rest, note_running_loop, who_runs
from reenact.replayer.source import Act, RecordedCall
from reenact.replayer.timeline import LOOKED_AHEAD, Timeline, is_handed, is_sleep, slept_after
from reenact.replayer.waiters import ActWaiter, EarlyCall, LoopWaiter, ThreadWaiter, Timer, Waiter

_COMPUTING_S: Final = 1.0
"""How much longer to wait for a late event while some thread still runs."""
_WORKING_S: Final = 0.5
"""How much longer to wait for an act of a running task; halved after each act that did not come."""
_EARLY_S: Final = 0.25
"""How long a call that came too early waits while nothing else happens."""
_MOST_MISSED_ACTS: Final = 8
_MOST_MISSED_SHARE: Final = 0.25
"""After this many acts that did not come, and this share of all, none is awaited: the tasks are others."""
_MOST_EARLY_ACTS: Final = 8
"""How many acts may happen before their turn because one event does not come."""
_CLIENT_S: Final = 0.02
"""How long another program gets, at most, to process one answer before the next one."""
_OVERTAKING: Final = 512
"""How many recorded items to search for a thread that overtook another."""
_IDLE_S: Final = 2.0
"""How long nothing must happen before a timer fires that did not fire in the recording."""
_MOST_EXTRA_SLEEPS: Final = 10
"""This many unrecorded sleeps in a row take no time; a task that sleeps more often waits for something."""
_HELD_S: Final = 0.05
"""How long an event loop stands still, at most, for the act of a running thread."""
_HOLD_LOOK_S: Final = 0.0005
_INTERRUPTED_S: Final = 10.0
"""How long an interrupted run may clean up before it is interrupted again."""
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
    ) -> None:
        """*is_causal*: lanes say nothing about order, so a call needs all calls that had ended before it.

        *is_running* says whether a recorded lane has begun here and has not ended, *runs_in_thread* whether
        it does so as a thread or job, *progress_of* how many calls and tasks it has started. The recording
        has timers up to the event *timed_until*. A long gap before a recorded event makes replay wait for it
        no longer than *longest_gap_s*.
        """
        self._timed_until = timed_until
        self._is_free = False
        """Whether every outcome is due at once, because earlier recorded events may never come."""
        self._is_running = is_running
        self._runs_in_thread = runs_in_thread
        self._not_held_for: Act | None = None
        """The act of a thread for which an event loop has stood still in vain."""
        self._progress_of = progress_of
        self._working_s = _WORKING_S
        self._is_causal = is_causal
        self.came_early: dict[int, int] = {}
        """By the number of a call: an earlier call that had ended before it, but was not made here."""
        self._stall_s = stall_s
        self._on_note = on_note
        self.on_timer: Callable[[str], None] = lambda _name: None
        """Called with the name of each timer that fires."""
        self._lock = threading.RLock()
        self._clock = PatientClock()
        self._timeline = Timeline(by_seq, times_ms, acts, self._clock, longest_gap_s)
        self._queue: list[tuple[int, int, int, Waiter]] = []
        self._endless: list[Waiter] = []
        """Calls without a recorded answer: they wait until their caller is cancelled, as when recorded."""
        self._acting: list[ActWaiter] = []
        self._timers: dict[str, Timer] = {}
        """By name: the timers that are set, and the deadlines of waiting threads."""
        self._extra_sleeps = 0
        """How many unrecorded sleeps have ended since the last recorded item."""
        self._is_settling = False
        """Whether what a timer has woken may still run."""
        self._time_passes = False
        """Whether timers fire by real time, because the run differs from the recorded one."""
        self._missed_acts = self._done_acts = 0
        self._early_acts_for = 0, 0
        """The number of a late event, and how many acts after it may still be released before it."""
        self._early: list[EarlyCall] = []
        self._stirred_s = 0.0
        """When something happened last."""
        self._rest = Rest(self._clock, self._on_loop_round, self._on_loop_dry)
        self._latest: RecordedCall | None = None
        """The call that was answered last; only if *is_causal*."""
        self._answered = 0
        """How many calls were answered, and when the last one; only if *is_causal*."""
        self._answered_s = 0.0
        self._asked_rounds = 0
        """For how many more rounds the ticker must run, because a thread asked whether all is quiet."""
        self._on_stuck: Callable[[], None] | None = None
        """Called if the run has diverged and hangs."""
        self._ticker: threading.Thread | None = None
        self._wake = threading.Event()
        self._is_closed = False
        self._advance()

    # What the engine reports

    def happened(self, seqs: Sequence[int]) -> None:
        """Note that these recorded events have happened or need not happen."""
        with self._lock:
            for seq in seqs:
                self._timeline.happened[seq] = 1
            self._advance()
            self._stirred_s = self._clock.now_s
            if self._early:
                self._try_early_again()
            if self._queue or self._timers:
                self._deliver()

    def stream_ended(self, call: RecordedCall, *, is_read: bool) -> None:
        """Note that the stream of *call* has ended; if it *is_read* to its end, that came in on the loop."""
        with self._lock:
            if is_read and self._timeline.has_joined_near():
                loop = self._rest.find_loop(running_loop())
                if loop is not None:
                    loop.has_come_in()
            self.happened([call.outcome_seq])

    def has_happened(self, seq: int) -> bool:
        """Whether a recorded event has happened or need not happen."""
        return bool(self._timeline.happened[seq])

    def loop_seen(self, loop: object) -> None:
        """From now on, *loop* must be at rest before anything is delivered."""
        found = self._rest.find_loop(loop)
        if found is not None:
            found.notice()
            return
        with self._lock:
            self._rest.notice_loop(loop)

    def lane_starting(self, lane: Lane) -> None:
        with self._lock:
            self._rest.start_job(lane)

    def lane_began(self, lane: Lane) -> None:
        with self._lock:
            self._rest.begin_thread(lane)

    def lane_ended(self, lane: Lane) -> None:
        with self._lock:
            self._rest.stop(lane)
            self._rest.stir_loops()
            self._deliver()

    def close(self) -> None:
        """The run is over: release all that wait."""
        with self._lock:
            self._is_closed = True
            for waiter in (*(entry[-1] for entry in self._queue), *self._endless):
                waiter.release()
            for early in self._early:
                early.release()
            for thread in self._acting:
                thread.release()
            for timer in self._timers.values():
                timer.let_go()
            self._timers.clear()
            self._queue.clear()
            self._endless.clear()
            self._early.clear()
            self._acting.clear()
            self._rest.release_loops()
        self._wake.set()

    # Waiting

    def wait(self, call: RecordedCall, lane: Lane) -> bool:
        """Block until the turn of *call*; false if it stalled: it has no answer and is not cancelled here."""
        if self._rest.would_block_loop() or self._is_closed:
            self._skip_turn(call)
            return True
        runner = who_runs(lane)
        with self._lock:
            self._rest.stop(runner)
            self._timeline.overdue.discard(call.lane)
            if not self._queue and not call.never_ends and self._is_due(call) and self._is_quiet():
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

    async def turn(self, call: RecordedCall, lane: Lane) -> bool:
        """The same on an event loop, without creating a task."""
        if call.inline or self._is_closed:
            self._skip_turn(call)
            return True
        if not is_on_loop():  # the coroutine is driven by hand, or by an unknown event loop
            return self.wait(call, lane)
        with self._lock:
            self._timeline.overdue.discard(call.lane)
            waiter = LoopWaiter(call, lane, self._stalls_at_s(call), note_running_loop(self._rest))
            waiter.loop.stir()
            self._enqueue(waiter)
        await self._wait_on_loop(waiter)
        return not waiter.stalled

    async def stay(self, call: RecordedCall, lane: Lane) -> None:
        """Wait to be cancelled, as the recorded caller was; returns if no cancellation comes."""
        if self._is_closed or not is_on_loop():
            return
        with self._lock:
            waiter = LoopWaiter(call, lane, self._clock.now_s + self._stall_s, note_running_loop(self._rest))
            self._endless.append(waiter)
            self._start_ticker()
        await self._wait_on_loop(waiter)

    def wait_to_match(self, lane: Lane, try_again: Callable[[], bool]) -> None:
        """Block until *try_again*, which is called after every event, says that the call may come now.

        Returns, too, if nothing happens any more that could let it come.
        """
        if self._rest.would_block_loop() or self._is_closed:
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

    async def turn_to_match(self, lane: Lane, try_again: Callable[[], bool]) -> None:
        """The same on an event loop."""
        if not is_on_loop():
            self.wait_to_match(lane, try_again)
            return
        if self._is_closed:
            return
        with self._lock:
            if try_again():
                return
            loop = note_running_loop(self._rest)
            future = loop.new_wait()
            early = EarlyCall(try_again, lambda: loop.resolve(future), self._clock.now_s)
            self._wait_early(early)
            loop.stir()
        try:
            await future
        finally:
            with self._lock:
                if early in self._early:
                    self._early.remove(early)

    def _wait_early(self, early: EarlyCall) -> None:
        self._early.append(early)
        self._start_ticker()

    def _try_early_again(self) -> None:
        """Release the early calls that may come now; each may let others come."""
        while ready := next((early for early in self._early if early.try_again()), None):
            self._early.remove(ready)
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
        self.happened([] if call.is_stream else [call.outcome_seq])

    def _stalls_at_s(self, call: RecordedCall) -> float | None:
        if not call.never_ends:
            return None
        took_s = max(0.0, call.ended_ms - call.made_ms) / 1000
        return self._clock.now_s + took_s * 2 + self._stall_s

    def _enqueue(self, waiter: Waiter) -> None:
        if waiter.call.never_ends:
            self._endless.append(waiter)
        else:
            call = waiter.call
            waiter.answered_before = self._answered
            heappush(self._queue, (call.due_after, call.opening, call.seq, waiter))
            self._deliver()
        if not waiter.is_done:
            self._start_ticker()

    def _give_up(self, waiter: Waiter) -> None:
        with self._lock:
            waiter.is_done = True
            if waiter in self._endless:
                self._endless.remove(waiter)
            self.happened([waiter.call.outcome_seq])

    # Acts of the agent's tasks

    def wait_to_act(self, what: str, lane: Lane) -> None:
        """Block the thread of *lane* until everything before the act *what* in the recording has happened."""
        if self._is_closed:
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
            self._acting.append(ActWaiter(act, release))
            self._start_ticker()
        self._block(came)

    async def turn_to_act(self, what: str) -> None:
        """The same on an event loop."""
        if not is_on_loop() or self._is_closed:
            return
        self._hold_loop(lambda: self._timeline.next_act_of(what))
        with self._lock:
            act = self._act_to_await(what, on_loop=True)
            if act is None:
                return
            loop = note_running_loop(self._rest)
            future = loop.new_wait()
            waiter = ActWaiter(act, lambda: loop.resolve(future), is_on_loop=True)
            self._acting.append(waiter)
            loop.stir()
            self._start_ticker()
        try:
            await future
        finally:
            with self._lock:
                if waiter in self._acting:
                    self._acting.remove(waiter)

    async def async_wait_to_read(self, what: str) -> None:
        """Wait for the turn of *what*, the read of a piece; other tasks run meanwhile if they did then."""
        with self._lock:
            act = self._timeline.next_act_of(what)
        if act is None or not act.is_together:
            await give_way()
            await self.turn_to_act(what)

    def _hold_loop(self, next_act: Callable[[], Act | None]) -> None:
        """Let the event loop of this thread stand still while a running thread must act before *next_act*.

        Otherwise its other tasks would run ahead of what the thread hands to them.
        """
        began_s: float | None = None
        while True:
            with self._lock:
                act = next_act()
                due = self._timeline.due_act() if act is not None and self._timeline.acts else None
                if due is None or due is act or due is self._not_held_for or not self._comes_from_thread(due):
                    return
                if began_s is None:
                    began_s = self._clock.now_s
                    self._asked_rounds = _ASKED_ROUNDS
                    self._start_ticker()
                elif self._clock.now_s - began_s > _HELD_S:
                    self._not_held_for = due
                    return
                self._rest.look_around()
                self._release_acting()
            pause = _thread.allocate_lock()
            pause.acquire()
            pause.acquire(timeout=_HOLD_LOOK_S)

    def _comes_from_thread(self, act: Act) -> bool:
        """Whether a thread that runs here must do *act*; a callback that it has handed over is the loop's."""
        if FIRED in act.what and (not is_handed(act.what) or act.what in self._timers):
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
            self._done_acts += 1
            self._stirred_s = self._clock.now_s
            if self._timeline.next == act.seq:
                self._timeline.next_since_s = self._clock.now_s
            self._advance()
            if act.is_read and not act.is_together and self._timeline.has_joined_near():
                self._deliver_after_piece()
            if self._queue or self._timers:
                self._deliver()

    def _deliver_after_piece(self) -> None:
        loop = self._rest.find_loop(running_loop())
        if loop is not None:
            loop.has_come_in()
            self._deliver_followers(loop)

    # Timers and deadlines

    def hold_timer(self, name: str, held: HeldTimer) -> bool:
        """Fire *held* in its turn; returns false if it is to fire by itself."""
        with self._lock:
            is_new = is_handed(name) and name not in self._timeline.went_off
            if self._is_closed or self._time_passes or is_new or name in self._timers:
                return False
            loop = self._rest.notice_loop(held.loop)
            timer = Timer(name, lambda: loop.run(held.fire), held.let_go)
            timer.when_s = held.when_s
            timer.loop, timer.stir = loop, loop.came_in
            self._timers[name] = timer
            loop.stir()
            self._start_ticker()
        return True

    def drop_timer(self, name: str) -> None:
        """The timer was cancelled; if it fired in the recording, it is no longer awaited."""
        with self._lock:
            self._timers.pop(name, None)
            act = self._timeline.next_act_of(name)
            if act is not None:
                act.left = 0
                self._on_note(f"a deadline that passed when it was recorded ({name}) was taken back here")
                self._advance()
                self._deliver()

    @property
    def has_old_sleeps(self) -> bool:
        """Whether the recording counts sleeps from the start of their lane."""
        return self._timeline.has_old_sleeps

    def deadline(self, name: str) -> WaitFor:
        """How the calling thread must wait if it waits with the deadline *name*."""
        if self._rest.would_block_loop() or self._is_closed or self._time_passes:
            return "its time"
        return "nothing" if name in self._timeline.went_off else "what comes"

    def hold_deadline(self, name: str, lane: Lane, seconds: float, passed: Callable[[], object]) -> None:
        """Call *passed* when the deadline of the waiting thread of *lane* passes."""
        with self._lock:
            if self._is_closed:
                passed()
                return
            runner = who_runs(lane)
            # Before their first call it is not known which recorded thread each is: two may have one name.
            same = self._timers.get(name)

            def pass_with_same() -> None:
                passed()
                if same is not None:
                    same.fire()

            def stir() -> None:
                self._rest.wake(runner)
                if same is not None and same.stir is not None:
                    same.stir()

            timer = Timer(name, pass_with_same, pass_with_same)
            timer.when_s = monotonic() + seconds
            timer.stir = stir
            self._rest.stop(runner)
            self._timers[name] = timer
            self._deliver()
            self._start_ticker()

    def is_idle(self) -> bool:
        """Whether nothing else will happen, so that a deadline may pass that did not when recorded."""
        with self._lock:
            self._rest.look_around()
            self._asked_rounds = _ASKED_ROUNDS
            self._start_ticker()
            return self._is_idle()

    def let_time_pass(self) -> None:
        """From now on, fire timers by real time: the recorded order no longer applies to them."""
        with self._lock:
            self._time_passes = True
            if self._timers:
                self._start_ticker()

    def watch_end(self, on_stuck: Callable[[], None]) -> None:
        """The run has diverged and should end; call *on_stuck* if nothing happens instead.

        The divergence may have ended a thread for whose result another one waits.
        """
        with self._lock:
            self._on_stuck, self._stirred_s = on_stuck, self._clock.now_s
            self._start_ticker()

    def goes_on(self) -> None:
        """Note that the run does something; takes no lock."""
        self._stirred_s = self._clock.now_s

    def _interrupt_stuck(self) -> None:
        if self._on_stuck is None or self._queue or self._early or self._acting or not self._rest.is_there:
            return
        if self._clock.now_s - self._stirred_s < self._stall_s or self._rest.do_others_run():
            return
        self._stirred_s = self._clock.now_s + _INTERRUPTED_S
        self._on_stuck()

    def forget_order(self) -> None:
        """From now on the run differs: release what waits for the recorded order, and use real time."""
        with self._lock:
            self._is_free = self._time_passes = True
            self._timeline.forget_order()
            for waiter in self._acting:
                waiter.release()
            self._acting.clear()
            self._advance()
            self._deliver()
            if self._timers or self._queue:
                self._start_ticker()

    def _fire_due_timer(self) -> bool:
        """Fire the timer whose turn it is, if any; returns whether one fired."""
        if not self._rest.is_there:
            return False
        timer = self._due_timer() or self._find_extra_sleep()
        if timer is None:
            return False
        if timer.loop is None:
            self._fire_in_turn(timer)
        elif not self._begin_on(timer.loop, self._timeline.next_act_of(timer.name)):
            return False
        else:
            self._fire_on(timer.loop, timer)
        self._timeline.next_since_s = self._clock.now_s
        return True

    # What comes in while an event loop is not at rest

    def _fire_on(self, loop: Loop, timer: Timer, before: Act | RecordedCall | None = None) -> None:
        """Fire *timer*, with what came in on *loop* together with it; with *before*, only before that."""
        ahead = self._deliver_ahead(timer, loop) if before is None else []
        self._fire_in_turn(timer)
        self._deliver_followers(loop, at_once=True, before=ahead[-1] if ahead else before)
        if ahead and ahead[0].joined:
            loop.came_in(rounds_later=1)  # the others of its round are counted from it

    def _begin_on(self, loop: Loop, first: Act | RecordedCall | None) -> bool:
        """Whether *first* may come in on *loop* now: in the loop's thread, and all that follows is ready."""
        for act in self._followers(loop, first):
            if isinstance(act, Act) and act.what not in self._timers and self._release_thread(act.lane):
                return False
        return loop.is_here or not loop.call(self._on_loop_dry)

    def _release_thread(self, lane: str) -> bool:
        """Release the thread of *lane*, which must schedule a callback next; returns whether it waited."""
        for acting in self._acting:
            if acting.act.lane == lane and not acting.is_on_loop:
                self._acting.remove(acting)
                acting.release()
                return True
        for *_, waiter in self._queue:
            if waiter.call.lane == lane and isinstance(waiter, ThreadWaiter) and not waiter.is_done:
                self._answer(waiter)
                return True
        return False

    def _deliver_ahead(self, timer: Timer, loop: Loop) -> list[Act | RecordedCall]:
        """Deliver what comes in one round after *timer* before it fires, up to the last answer.

        Those tasks had their answers already: a timeout must not cancel them, and what it wakes runs later.
        """
        ahead: list[Act | RecordedCall] = []
        rounds = 0
        for found in self._followers(loop, self._timeline.next_act_of(timer.name)):
            rounds += found.joined or 0
            if rounds > 1:
                break
            if isinstance(found, Act):
                ahead += [found] if rounds and found.what in self._timers else []
                continue
            waiter = self._waiter_of(found)
            if not rounds or not isinstance(waiter, LoopWaiter) or waiter.loop is not loop:
                break
            ahead.append(found)
        while ahead and isinstance(ahead[-1], Act):
            ahead.pop()
        for each in ahead:
            if isinstance(each, Act):
                held = self._timers[each.what]
                held.fire = partial(loop.run, held.fire)  # one round later
                self._fire_in_turn(held)
            elif (waiter := self._waiter_of(each)) is not None:
                loop.run(waiter.release)
                self._note_answered(waiter)
        return ahead

    def _deliver_followers(
        self, loop: Loop, *, at_once: bool = False, before: Act | RecordedCall | None = None
    ) -> None:
        """Deliver what came in on *loop* together with the last item, or as many rounds after it.

        With *before*, only what came in before the outcome of that call.
        """
        while (found := next(self._followers(loop), None)) is not None:
            if before is not None and _place_of(found) > _place_of(before):
                return
            is_due = found.joined == 0 if at_once else loop.rounds >= (found.joined or 0)
            if not is_due:
                return
            if isinstance(found, Act):
                timer = self._timers.get(found.what)
                if timer is None or timer.loop is not loop:
                    return
                self._fire_on(loop, timer, before)
                return
            waiter = self._waiter_of(found)
            if not isinstance(waiter, LoopWaiter) or waiter.loop is not loop:
                return
            self._answer(waiter)
            at_once = True

    def _followers(self, loop: Loop, first: Act | RecordedCall | None = None) -> Iterator[Act | RecordedCall]:
        """The items that came in on *loop* before it was at rest, in recorded order, without *first*."""
        if not self._timeline.has_joined_near():
            return
        for item in islice(self._timeline.items(), LOOKED_AHEAD):
            if item is first:
                continue
            if item.joined is not None:
                yield item
            elif isinstance(item, RecordedCall):
                waiter = self._waiter_of(item)
                is_here = isinstance(waiter, LoopWaiter) and waiter.loop is loop
                if is_here or not (item.is_instant or self._timeline.happened[item.seq]):
                    return  # it came when all was at rest, or its call is not made yet, maybe on this loop
            elif item.is_read and not item.is_together:
                return  # what follows came in after it
            elif FIRED in item.what:
                timer = self._timers.get(item.what)
                if timer is None or timer.loop is loop:
                    return

    def _waiter_of(self, call: RecordedCall) -> Waiter | None:
        waiters = (entry[-1] for entry in self._queue)
        return next((waiter for waiter in waiters if waiter.call is call and not waiter.is_done), None)

    def _fire_in_turn(self, timer: Timer) -> None:
        del self._timers[timer.name]
        act = self._timeline.next_act_of(timer.name)
        if act is not None:
            act.left = 0
        self._fire(timer)
        self._advance()

    def _due_timer(self) -> Timer | None:
        """The timer whose turn it is, or one that was set after its turn had passed."""
        act = self._timeline.due_act() if self._timeline.acts else None
        if act is not None and act.what in self._timers:
            return self._timers[act.what]
        late = (timer for timer in self._timers.values() if timer.name in self._timeline.went_off)
        return next((timer for timer in late if self._timeline.next_act_of(timer.name) is None), None)

    def _find_extra_sleep(self) -> Timer | None:
        """An unrecorded sleep of the task that must act next, or of the task that must start that one."""
        sleeps = {
            timer.name.partition(FIRED)[0]: timer
            for timer in self._timers.values()
            if is_sleep(timer.name) and timer.name not in self._timeline.went_off
        }
        if (
            not sleeps
            or self._timeline.next > self._timeline.last
            or self._extra_sleeps >= _MOST_EXTRA_SLEEPS
        ):
            return None
        act = self._timeline.due_act()
        if act is not None and act.is_cancelled:
            return None
        lane = act.lane if act is not None else self._timeline.by_seq[self._timeline.next].lane
        if self._is_waiting(lane):
            return None
        while lane not in sleeps and not self._is_running(lane) and (starter := LaneName(lane).parent):
            lane = starter
        timer = sleeps.get(lane)
        self._extra_sleeps += timer is not None
        return timer

    def _skip_due_timer(self) -> bool:
        """Skip the timer that is due if its task already does something else, so that it did not set it."""
        act = self._timeline.due_act()
        if act is None or FIRED not in act.what or act.what in self._timers:
            return False
        if not self._rest.is_there or not (self._is_waiting(act.lane) or self._is_past(act)):
            return False
        act.left = 0
        self._advance()
        return True

    def _is_past(self, act: Act) -> bool:
        """Whether *act* is a sleep before something that its task has already done here."""
        if not is_sleep(act.what) or (progress := slept_after(act.what)) is None:
            return False
        return self._progress_of(act.lane) > progress

    def _is_waiting(self, lane: str) -> bool:
        return any(waiter.act.lane == lane for waiter in self._acting) or any(
            entry[-1].call.lane == lane and not entry[-1].is_done for entry in self._queue
        )

    def _fire(self, timer: Timer) -> None:
        self.on_timer(timer.name)
        timer.fire()
        if timer.stir is not None:
            timer.stir()
        self._is_settling = True
        self._stirred_s = self._clock.now_s

    def _fire_idle_timer(self) -> None:
        """Fire the earliest unrecorded timer that is due in real time, if nothing else will happen."""
        now_s = monotonic()
        due = [
            timer
            for timer in self._timers.values()
            if timer.when_s <= now_s and (self._time_passes or timer.name not in self._timeline.went_off)
        ]
        if not due or not self._is_idle():
            return
        timer = min(due, key=lambda timer: timer.when_s)
        del self._timers[timer.name]
        if self._timeline.next <= self._timeline.last and not self._time_passes:
            self._on_note(f"a deadline passed here that did not when it was recorded ({timer.name})")
        self._fire(timer)

    def _is_idle(self) -> bool:
        """Whether nothing recorded is still to come, or it did not come although it was awaited."""
        if self._time_passes or self._is_closed:
            return True
        if not self._rest.is_there or self._queue or self._acting:
            return False
        if self._timeline.next > self._timeline.last and self._timeline.due_act() is None:
            return True
        quiet_s = self._clock.now_s - max(self._stirred_s, self._timeline.late_at_s())
        return quiet_s > _IDLE_S and (quiet_s > self._stall_s or not self._rest.do_others_run())

    def _may_act(self, act: Act, *, on_loop: bool) -> bool:
        if self._timeline.next > act.seq or act.left <= 0:
            return True
        is_due = self._timeline.next == act.seq and self._timeline.due_act() is act
        if is_due and act.is_end and not on_loop:
            # The threads that the last end has woken come to rest; what it woke on a loop has its own turn.
            return self._rest.are_threads_quiet(self._ticker)
        # First let what a timer has woken come to rest, so that it sees the state as when recorded.
        return is_due and (not (self._is_settling or act.is_first_read) or self._rest.is_there)

    def _release_acting(self) -> None:
        for waiter in list(self._acting):
            if self._may_act(waiter.act, on_loop=waiter.is_on_loop):
                self._acting.remove(waiter)
                waiter.release()

    def _pass_over_late_act(self, act: Act) -> None:
        """Stop waiting for *act*; if too many acts did not come, stop waiting for any."""
        if act.what in self._timers or any(waiter.act is act for waiter in self._acting):
            return
        if self._timeline.has_deadlines and self._is_running(act.lane):
            if self._clock.now_s < self._timeline.late_at_s() + self._working_s:
                return
            self._working_s /= 2
        act.left = 0
        if is_sleep(act.what):
            self._timeline.pass_over_sleeps(act.what)
        self._missed_acts += 1
        seen = self._missed_acts + self._done_acts
        if self._missed_acts >= max(_MOST_MISSED_ACTS, seen * _MOST_MISSED_SHARE):
            self._timeline.forget_acts()
            self._time_passes = True
        self._timeline.next_since_s = self._clock.now_s
        self._advance()

    # Delivering

    def _on_loop_dry(self) -> None:
        with self._lock:
            self._deliver()

    def _on_loop_round(self, loop: Loop) -> None:
        """After a round of *loop*: deliver what came in before the loop was at rest."""
        with self._lock:
            self._deliver_followers(loop)
        if self._rest.has_threads and loop.is_here:
            self._hold_loop(lambda: self._handed_after_round(loop))
            with self._lock:
                self._deliver_followers(loop)

    def _handed_after_round(self, loop: Loop) -> Act | None:
        """The callback that a thread must have handed to *loop* by this round."""
        found = next(self._followers(loop), None)
        if isinstance(found, Act) and loop.rounds >= (found.joined or 0) and found.what not in self._timers:
            return found
        return None

    def _deliver(self) -> None:
        """Fire the timers and answer the calls whose turn it is, as long as everything is at rest."""
        if self._is_settling and self._rest.is_there:
            self._is_settling = False
            self._release_acting()
        while self._timeline.acts or self._timers:
            if not (self._fire_due_timer() or self._skip_due_timer()):
                break
        while self._queue:
            waiter = self._queue[0][-1]
            if not waiter.is_done:
                loop = waiter.loop if isinstance(waiter, LoopWaiter) else None
                if not self._is_due(waiter.call) or not self._is_quiet() or self._comes_too_soon(waiter):
                    return
                if loop is not None and not self._begin_on(loop, waiter.call):
                    return
                first = self._find_first_to_act(waiter) if loop is None else waiter
                self._answer(first)
                if first is not waiter:
                    return
                if loop is not None:
                    self._deliver_followers(loop, at_once=True)
            heappop(self._queue)

    def _find_first_to_act(self, waiter: Waiter) -> Waiter:
        """Of the threads that got answers together with *waiter*, the one that acted first.

        An answer passes through the SDK before the agent sees it, so another thread may overtake meanwhile.
        The recorded acts, such as ends and puts, and the next call of *waiter*'s thread show in which order
        the agent's code ran.
        """
        if waiter.call.is_stream or len(self._queue) == 1 or not self._timeline.acts:
            return waiter
        answered = {entry[-1].call.outcome_seq: entry[-1] for entry in self._queue if not entry[-1].is_done}
        under_way = {waiter.call.lane: waiter}
        first: Waiter | None = None
        for item in islice(self._timeline.all_items(), _OVERTAKING):
            if isinstance(item, Act):
                if any(acting.act is item for acting in self._acting):
                    continue  # its thread already waits to do it
                if item.lane not in under_way or FIRED in item.what:
                    return waiter
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
            waiter.loop.came_in()
        elif isinstance(waiter, ThreadWaiter):
            self._rest.wake(waiter.runner)

    def _note_answered(self, waiter: Waiter) -> None:
        waiter.is_done = True
        self._note_delivery(waiter.call)

    def _note_delivery(self, call: RecordedCall) -> None:
        # The outcome of a stream is its end, which comes when the agent has read it.
        if not call.is_stream:
            self._timeline.happened[call.outcome_seq] = 1
            self._stirred_s = self._clock.now_s
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
            self._extra_sleeps = 0
            if self._timeline.next > self._timed_until and not self._time_passes:
                self.let_time_pass()
        if self._acting:
            self._release_acting()

    # Time passing

    def _start_ticker(self) -> None:
        if self._is_closed:
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
        while not self._is_closed:
            with self._lock:
                self._rest.look_around()
                self._pass_over_late_event()
                self._release_stalled()
                self._release_early()
                self._release_acting()
                self._deliver()
                if self._timers:
                    self._fire_idle_timer()
                self._interrupt_stuck()
                is_idle = not (self._queue or self._endless or self._early or self._acting or self._timers)
                is_idle = is_idle and not self._asked_rounds and self._on_stuck is None
                self._asked_rounds = max(0, self._asked_rounds - 1)
                is_moving = self._rest.may_come_soon
                pause_s = _LOOK_S if is_moving else _ROUND_S
            if is_idle:
                self._wake.wait()
            else:
                self._clock.pause(self._wake, pause_s)
            self._wake.clear()

    def _pass_over_late_event(self) -> None:
        is_awaited = self._queue or self._acting or not self._timeline.went_off.isdisjoint(self._timers)
        if not is_awaited:
            return
        if self._clock.now_s < self._timeline.late_at_s() or not self._rest.is_there:
            return
        if self._timeline.next > self._timeline.last or (
            self._queue and self._is_due(self._queue[0][-1].call)
        ):
            return
        if self._clock.now_s < self._timeline.late_at_s() + _COMPUTING_S and self._rest.do_others_run():
            return  # the thread that must make the call may not have got a processor yet
        act = self._timeline.due_act() if self._timeline.acts else None
        if act is not None:
            self._pass_over_late_act(act)
            return
        late = self._timeline.by_seq[self._timeline.next]
        if self._timeline.next == late.seq and self._let_act_early():
            return
        if not self._queue:  # only acts and timers wait for it
            self._timeline.pass_over(late)
            self._advance()
            return
        call = self._queue[0][-1].call
        if self._is_causal and 0 < late.outcome_seq < call.seq:
            if self._clock.now_s < self._timeline.next_since_s + self._stall_s:
                return
            self.came_early.setdefault(call.seq, late.seq)
        late_seq = self._timeline.next
        self._on_note(
            f"event {late_seq} ({late.type} {late.name}, task {late.lane}) did not come in its turn; "
            f"event {call.outcome_seq} was delivered before it"
        )
        self._timeline.pass_over(late)
        self._advance()

    def _let_act_early(self) -> bool:
        """Release the first that waits to act: the late call may be waiting for it.

        In a server that gets its requests in another order, a task must end before it takes the next request.
        """
        if self._early_acts_for[0] != self._timeline.next:
            self._early_acts_for = self._timeline.next, _MOST_EARLY_ACTS
        seq, left = self._early_acts_for
        if not self._acting or not left:
            return False
        self._early_acts_for = seq, left - 1
        first = min(self._acting, key=lambda waiter: waiter.act.seq)
        self._acting.remove(first)
        first.release()
        self._timeline.wait_again()
        return True

    def _release_stalled(self) -> None:
        for waiter in list(self._endless):
            if waiter.stalls_at_s is not None and self._clock.now_s > waiter.stalls_at_s:
                self._endless.remove(waiter)
                waiter.is_done = waiter.stalled = True
                waiter.release()

    def _release_early(self) -> None:
        """Release early calls if nothing moves any more that could let them come."""
        if not self._early or self._queue or not self._rest.is_there:
            return
        for early in list(self._early):
            waited_s = self._clock.now_s - max(early.since_s, self._stirred_s)
            if waited_s > _EARLY_S and (waited_s > _COMPUTING_S or not self._rest.do_others_run()):
                self._early.remove(early)
                early.release()


def _place_of(item: Act | RecordedCall) -> int:
    return item.seq if isinstance(item, Act) else item.outcome_seq

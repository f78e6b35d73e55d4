"""Decides when a replay stops waiting for what does not come.

Recorded order is a preference, not a condition. If an earlier event does not come within the time that the
recording took to reach it, plus a grace, it is skipped and noted. Nothing waits for ever.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from reenact.replayer.idle import PatientClock
from reenact.replayer.rest import Rest
from reenact.replayer.source import Act, RecordedCall
from reenact.replayer.timeline import Timeline, is_sleep
from reenact.replayer.timers import Timers
from reenact.replayer.waiters import Waiting

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
_IDLE_S: Final = 2.0
"""How long nothing must happen before a timer fires that did not fire in the recording."""
_INTERRUPTED_S: Final = 10.0
"""How long an interrupted run may clean up before it is interrupted again."""


class Patience:
    """How long a replay waits for each recorded event and act; its owner holds the lock."""

    def __init__(
        self,
        timeline: Timeline,
        rest: Rest,
        waiting: Waiting,
        timers: Timers,
        clock: PatientClock,
        *,
        stall_s: float,
        is_causal: bool,
        advance: Callable[[], None],
        on_note: Callable[[str], None],
        is_due: Callable[[RecordedCall], bool],
        is_running: Callable[[str], bool],
    ) -> None:
        self._timeline = timeline
        self._rest = rest
        self._waiting = waiting
        self._timers = timers
        self._clock = clock
        self._stall_s = stall_s
        self._is_causal = is_causal
        self._advance = advance
        self._on_note = on_note
        self._is_due = is_due
        self._is_running = is_running
        self.came_early: dict[int, int] = {}
        """By the number of a call: an earlier call that had ended before it, but was not made here."""
        self.on_stuck: Callable[[], None] | None = None
        """Called if the run has diverged and hangs."""
        self.done_acts = 0
        self._missed_acts = 0
        self._working_s = _WORKING_S
        self._early_acts_for = 0, 0
        """The number of a late event, and how many acts after it may still be released before it."""

    def pass_over_late_event(self) -> None:
        is_awaited = (
            self._waiting.queue
            or self._waiting.acting
            or not self._timeline.went_off.isdisjoint(self._timers.held)
        )
        if not is_awaited or self._waiting.taking:  # what is late may need what other processes do
            return
        if self._clock.now_s < self._timeline.late_at_s() or not self._rest.is_there:
            return
        if self._timeline.next > self._timeline.last or (
            self._waiting.queue and self._is_due(self._waiting.queue[0][-1].call)
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
        if not self._waiting.queue:  # only acts and timers wait for it
            self._timeline.pass_over(late)
            self._advance()
            return
        call = self._waiting.queue[0][-1].call
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

    def _pass_over_late_act(self, act: Act) -> None:
        """Stop waiting for *act*; if too many acts did not come, stop waiting for any."""
        if act.what in self._timers.held or any(waiter.act is act for waiter in self._waiting.acting):
            return
        if self._timeline.has_deadlines and self._is_running(act.lane):
            if self._clock.now_s < self._timeline.late_at_s() + self._working_s:
                return
            self._working_s /= 2
        act.left = 0
        if is_sleep(act.what):
            self._timeline.pass_over_sleeps(act.what)
        self._missed_acts += 1
        seen = self._missed_acts + self.done_acts
        if self._missed_acts >= max(_MOST_MISSED_ACTS, seen * _MOST_MISSED_SHARE):
            self._timeline.forget_acts()
            self._timers.time_passes = True
        self._timeline.next_since_s = self._clock.now_s
        self._advance()

    def _let_act_early(self) -> bool:
        """Release the first that waits to act: the late call may be waiting for it.

        In a server that gets its requests in another order, a task must end before it takes the next request.
        """
        if self._early_acts_for[0] != self._timeline.next:
            self._early_acts_for = self._timeline.next, _MOST_EARLY_ACTS
        seq, left = self._early_acts_for
        if not self._waiting.acting or not left:
            return False
        self._early_acts_for = seq, left - 1
        first = min(self._waiting.acting, key=lambda waiter: waiter.act.seq)
        self._waiting.acting.remove(first)
        first.release()
        self._timeline.wait_again()
        return True

    def release_stalled(self) -> None:
        for waiter in list(self._waiting.endless):
            if waiter.stalls_at_s is not None and self._clock.now_s > waiter.stalls_at_s:
                self._waiting.endless.remove(waiter)
                waiter.is_done = waiter.stalled = True
                waiter.release()

    def release_early(self) -> None:
        """Release early calls if nothing moves any more that could let them come."""
        if not self._waiting.early or self._waiting.queue or not self._rest.is_there:
            return
        for early in list(self._waiting.early):
            waited_s = self._clock.now_s - max(early.since_s, self._timeline.active_s)
            if waited_s > _EARLY_S and (waited_s > _COMPUTING_S or not self._rest.do_others_run()):
                self._waiting.early.remove(early)
                early.release()

    def is_idle(self) -> bool:
        """Whether nothing recorded is still to come, or it did not come although it was awaited."""
        if self._timers.time_passes or self._waiting.is_over:
            return True
        if not self._rest.is_there or self._waiting.queue or self._waiting.acting:
            return False
        if self._timeline.next > self._timeline.last and self._timeline.due_act() is None:
            return True
        quiet_s = self._clock.now_s - max(self._timeline.active_s, self._timeline.late_at_s())
        return quiet_s > _IDLE_S and (quiet_s > self._stall_s or not self._rest.do_others_run())

    def interrupt_stuck(self) -> None:
        if (
            self.on_stuck is None
            or self._waiting.queue
            or self._waiting.early
            or self._waiting.acting
            or not self._rest.is_there
        ):
            return
        if self._clock.now_s - self._timeline.active_s < self._stall_s or self._rest.do_others_run():
            return
        self._timeline.active_s = self._clock.now_s + _INTERRUPTED_S
        self.on_stuck()

"""Holds the timers of a replay until their turn: sleeps, time limits, and callbacks that threads hand over.

A timer that fired in the recording fires in its turn, without waiting; one that did not fire does not, as
long as anything recorded is still to come.
"""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic
from typing import Final

from reenact.boundary import HeldTimer, Lane
from reenact.formats.capture import FIRED
from reenact.lane_name import LaneName
from reenact.replayer.idle import PatientClock
from reenact.replayer.loops import Loop
from reenact.replayer.rest import Rest, who_runs
from reenact.replayer.source import Act
from reenact.replayer.timeline import Timeline, is_handed, is_sleep, slept_after
from reenact.replayer.waiters import Waiting

_MOST_EXTRA_SLEEPS: Final = 10
"""This many unrecorded sleeps in a row take no time; a task that sleeps more often waits for something."""


class Timer:
    """A timer that fires in its turn, or the deadline of a waiting thread."""

    def __init__(self, name: str, fire: Callable[[], object], let_go: Callable[[], object]) -> None:
        self.name = name
        self.fire = fire
        self.let_go = let_go
        """Called instead of *fire* when the run is over."""
        self.when_s = 0.0
        """When it would fire without replay, on the clock of the process."""
        self.loop: Loop | None = None
        """The loop on which it fires; ``None`` for a thread's deadline."""
        self.watch_woken: Callable[[], object] | None = None
        """Starts to watch what it has woken, until that has come to rest."""


class Timers:
    """The timers that are set, and the deadlines of waiting threads; their owner holds the lock."""

    def __init__(
        self,
        timeline: Timeline,
        rest: Rest,
        waiting: Waiting,
        clock: PatientClock,
        *,
        advance: Callable[[], None],
        on_note: Callable[[str], None],
        is_running: Callable[[str], bool],
        progress_of: Callable[[str], int],
    ) -> None:
        self._timeline = timeline
        self._rest = rest
        self._waiting = waiting
        self._clock = clock
        self._advance = advance
        self._on_note = on_note
        self._is_running = is_running
        self._progress_of = progress_of
        self.held: dict[str, Timer] = {}
        """By name."""
        self.on_fired: Callable[[str], None] = lambda _name: None
        """Called with the name of each timer that fires."""
        self.time_passes = False
        """Whether timers fire by real time, because the run differs from the recorded one."""
        self.is_settling = False
        """Whether what a timer has woken may still run."""
        self.extra_sleeps = 0
        """How many unrecorded sleeps have ended since the last recorded item."""

    def hold(self, name: str, held: HeldTimer) -> bool:
        """Fire *held* in its turn; returns false if it is to fire by itself."""
        is_new = is_handed(name) and name not in self._timeline.went_off
        if self.time_passes or is_new or name in self.held:
            return False
        loop = self._rest.notice_loop(held.loop)
        timer = Timer(name, lambda: loop.run(held.fire), held.let_go)
        timer.when_s = held.when_s
        timer.loop, timer.watch_woken = loop, loop.expect_arrival
        self.held[name] = timer
        loop.watch_rest()
        return True

    def hold_deadline(self, name: str, lane: Lane, seconds: float, passed: Callable[[], object]) -> None:
        """Call *passed* when the deadline of the waiting thread of *lane* passes."""
        runner = who_runs(lane)
        # Before their first call it is not known which recorded thread each is: two may have one name.
        same = self.held.get(name)

        def pass_with_same() -> None:
            passed()
            if same is not None:
                same.fire()

        def watch_woken() -> None:
            self._rest.wake(runner)
            if same is not None and same.watch_woken is not None:
                same.watch_woken()

        timer = Timer(name, pass_with_same, pass_with_same)
        timer.when_s = monotonic() + seconds
        timer.watch_woken = watch_woken
        self._rest.stop(runner)
        self.held[name] = timer

    def drop(self, name: str) -> bool:
        """Forget a cancelled timer; returns whether it was awaited, because it fired in the recording."""
        self.held.pop(name, None)
        act = self._timeline.next_act_of(name)
        if act is None:
            return False
        act.left = 0
        self._on_note(f"a deadline that passed when it was recorded ({name}) was taken back here")
        self._advance()
        return True

    def release_all(self) -> None:
        for timer in self.held.values():
            timer.let_go()
        self.held.clear()

    def find_due(self) -> Timer | None:
        """The timer whose turn it is, or an unrecorded sleep that must end first."""
        return (self._find_in_turn() or self._find_extra_sleep()) if self._rest.is_there else None

    def _find_in_turn(self) -> Timer | None:
        """The timer whose turn it is, or one that was set after its turn had passed."""
        act = self._timeline.due_act() if self._timeline.acts else None
        if act is not None and act.what in self.held:
            return self.held[act.what]
        late = (timer for timer in self.held.values() if timer.name in self._timeline.went_off)
        return next((timer for timer in late if self._timeline.next_act_of(timer.name) is None), None)

    def _find_extra_sleep(self) -> Timer | None:
        """An unrecorded sleep of the task that must act next, or of the task that must start that one."""
        sleeps = {
            timer.name.partition(FIRED)[0]: timer
            for timer in self.held.values()
            if is_sleep(timer.name) and timer.name not in self._timeline.went_off
        }
        if not sleeps or self._timeline.next > self._timeline.last or self.extra_sleeps >= _MOST_EXTRA_SLEEPS:
            return None
        act = self._timeline.due_act()
        if act is not None and act.is_cancelled:
            return None
        lane = act.lane if act is not None else self._timeline.by_seq[self._timeline.next].lane
        if self._waiting.has_lane(lane):
            return None
        while lane not in sleeps and not self._is_running(lane) and (starter := LaneName(lane).parent):
            lane = starter
        timer = sleeps.get(lane)
        self.extra_sleeps += timer is not None
        return timer

    def skip_due(self) -> bool:
        """Skip the timer that is due if its task already does something else, so that it did not set it."""
        act = self._timeline.due_act()
        if act is None or FIRED not in act.what or act.what in self.held:
            return False
        if not self._rest.is_there or not (self._waiting.has_lane(act.lane) or self._is_past(act)):
            return False
        act.left = 0
        self._advance()
        return True

    def _is_past(self, act: Act) -> bool:
        """Whether *act* is a sleep before something that its task has already done here."""
        if not is_sleep(act.what) or (progress := slept_after(act.what)) is None:
            return False
        return self._progress_of(act.lane) > progress

    def fire_in_turn(self, timer: Timer) -> None:
        del self.held[timer.name]
        act = self._timeline.next_act_of(timer.name)
        if act is not None:
            act.left = 0
        self._fire(timer)
        self._advance()

    def fire_by_clock(self, is_idle: Callable[[], bool]) -> None:
        """Fire the earliest unrecorded timer that is due in real time, if nothing else will happen."""
        now_s = monotonic()
        due = [
            timer
            for timer in self.held.values()
            if timer.when_s <= now_s and (self.time_passes or timer.name not in self._timeline.went_off)
        ]
        if not due or not is_idle():
            return
        timer = min(due, key=lambda timer: timer.when_s)
        del self.held[timer.name]
        if self._timeline.next <= self._timeline.last and not self.time_passes:
            self._on_note(f"a deadline passed here that did not when it was recorded ({timer.name})")
        self._fire(timer)

    def _fire(self, timer: Timer) -> None:
        self.on_fired(timer.name)
        timer.fire()
        if timer.watch_woken is not None:
            timer.watch_woken()
        self.is_settling = True
        self._timeline.active_s = self._clock.now_s

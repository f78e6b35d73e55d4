"""The recorded order of a run, and how far its replay has come in it.

Events come in the order of the log. Before an event stands what the agent's own tasks did among themselves:
ending, putting items into queues, taking locks, timers that went off. Nobody waits here; see :mod:`turns`
for that.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from reenact.boundary import HANDED, SLEEPS, SLEPT_AFTER
from reenact.formats.capture import FIRED
from reenact.replayer.idle import PatientClock
from reenact.replayer.source import Act, RecordedCall

LOOKED_AHEAD: Final = 64
"""How many things are looked at for one that came in on an event loop before it was at rest."""
_GRACE_S: Final = 0.05
"""How much longer than the recording an event is waited for."""
_ACT_S: Final = 1.0
"""How long what the agent's own tasks do is waited for at most, and a little longer."""


class Timeline:
    """What is to come of a recorded run; its owner has the lock."""

    def __init__(
        self,
        by_seq: dict[int, RecordedCall],
        times_ms: Sequence[float],
        acts: Mapping[int, Sequence[Act]],
        clock: PatientClock,
        longest_gap_s: float,
    ) -> None:
        self._longest_gap_s = longest_gap_s
        self.by_seq = by_seq
        self.times_ms = times_ms
        self.last = len(times_ms)
        """The number of the last event."""
        self._clock = clock
        self.happened = bytearray(self.last + 2)
        """By the number of an event: whether it has happened, or never needs to."""
        for seq in range(1, self.last + 1):
            if seq not in by_seq:
                self.happened[seq] = 1
        self.next = 1
        """The first event that has not happened and is still waited for."""
        self.next_since_s = 0.0
        """Since when it is the next, or since when something was done before it."""
        self.overdue: set[str] = set()
        """Recorded lanes that did not come in time; nobody waits for them until they do."""
        self.acts = {seq: deque(listed) for seq, listed in acts.items()}
        """By the number of an event: what the agent's own tasks do before it, as far as it is to come."""
        self.acts_by_name: dict[str, deque[Act]] = {}
        for act in (act for listed in acts.values() for act in listed):
            self.acts_by_name.setdefault(act.what, deque()).append(act)
        self._joined = deque(item for item in self.items() if item.joined is not None)
        """What came in on an event loop that was not at rest, as far as it is to come."""
        self.went_off = {what for what in self.acts_by_name if FIRED in what}
        """The timers that went off in the recording, and what was handed to event loops."""
        self.has_deadlines = any(not is_handed(what) for what in self.went_off)
        self.has_old_sleeps = any(is_sleep(what) and slept_after(what) is None for what in self.went_off)
        """Whether sleeps are counted from the start of their lane, as in captures of earlier versions."""

    def move_on(self) -> bool:
        """Go to the first event that has not happened and is waited for; whether that is another one."""
        before = self.next
        while self.next <= self.last:
            if self.acts and self.due_act() is not None:
                break
            if not self.happened[self.next] and self.by_seq[self.next].lane not in self.overdue:
                break
            self.next += 1
        if self.next == before:
            return False
        self.next_since_s = self._clock.now_s
        return True

    def due_act(self) -> Act | None:
        """What has to be done before the next event."""
        acts = self.acts.get(self.next)
        while acts and acts[0].left <= 0:
            acts.popleft()
        return acts[0] if acts else None

    def next_act_of(self, what: str) -> Act | None:
        """The next time that *what* is to be done."""
        acts = self.acts_by_name.get(what)
        while acts and (acts[0].left <= 0 or acts[0].seq < self.next):
            acts.popleft()
        return acts[0] if acts else None

    def forget_acts(self) -> None:
        """What the agent's own tasks did is not waited for any more."""
        self.acts.clear()
        self.acts_by_name.clear()

    def forget_order(self) -> None:
        """Nor is what came in on busy event loops: the run is another one now."""
        self.forget_acts()
        self._joined.clear()

    def items(self) -> Iterator[Act | RecordedCall]:
        """What is to come, in recorded order: acts, and calls whose outcome is."""
        for seq in range(self.next, self.last + 1):
            yield from [act for act in self.acts.get(seq, ()) if act.left > 0]
            if not self.happened[seq] and self.by_seq[seq].outcome_seq == seq:
                yield self.by_seq[seq]

    def all_items(self) -> Iterator[Act | int]:
        """What is to come, in recorded order: acts, and the numbers of calls and of outcomes."""
        for seq in range(self.next, self.last + 1):
            yield from [act for act in self.acts.get(seq, ()) if act.left > 0]
            if not self.happened[seq]:
                yield seq

    def has_joined_near(self) -> bool:
        """Whether something that came in on a busy event loop is soon to come."""
        while self._joined and self._is_past(self._joined[0]):
            self._joined.popleft()
        if not self._joined:
            return False
        first = self._joined[0]
        return (first.seq if isinstance(first, Act) else first.outcome_seq) <= self.next + LOOKED_AHEAD

    def _is_past(self, item: Act | RecordedCall) -> bool:
        if isinstance(item, Act):
            return item.left <= 0 or item.seq < self.next
        return bool(self.happened[item.outcome_seq])

    def late_at_s(self) -> float:
        """When the next event has been waited for long enough."""
        index = min(self.next, self.last) - 1
        gap_s = max(0.0, self.times_ms[index] - self.times_ms[max(0, index - 1)]) / 1000
        longest_s = _ACT_S if self.acts and self.due_act() is not None else self._longest_gap_s
        return self.next_since_s + min(gap_s, longest_s) + _GRACE_S

    def pass_over(self, late: RecordedCall) -> None:
        """Wait no longer for the next event, which is *late*: neither for its call nor for its outcome."""
        if self.next == late.seq:
            self.overdue.add(late.lane)
        else:
            self.happened[self.next] = 1

    def pass_over_sleeps(self, sleep: str) -> None:
        """Where *sleep* does not come, as in polling for what is there at once, no later one of it does."""
        polling = _polling_of(sleep)
        for name, acts in self.acts_by_name.items():
            if is_sleep(name) and _polling_of(name) == polling:
                for act in acts:
                    act.left = 0


def is_sleep(name: str) -> bool:
    """Whether the timer *name* is a sleep, on an event loop or in a thread."""
    return name.partition(FIRED)[2].startswith(SLEEPS)


def slept_after(name: str) -> int | None:
    """How many calls and tasks the lane of the sleep *name* had begun; ``None`` where that is not told."""
    progress, mark, _ = name.partition(FIRED)[2][1:].partition(SLEPT_AFTER)
    return int(progress) if mark and progress.isdecimal() else None


def _polling_of(sleep: str) -> tuple[str, int | None]:
    """The sleeps among which it is counted have this in common."""
    return sleep.partition(FIRED)[0], slept_after(sleep)


def is_handed(what: str) -> bool:
    """Whether it is something that a thread handed to an event loop."""
    return what.partition(FIRED)[2].startswith(HANDED)

"""The recorded order of a run, and how far its replay has come in it.

The order has the events of the log and, before each event, the *acts* of the agent's tasks: ending, putting
items into queues, taking locks, timers that fired. This module only keeps the order; :mod:`turns` makes
threads and tasks wait for their turn.
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
"""How many items to search for one that came in on an event loop before the loop was at rest."""
_GRACE_S: Final = 0.05
"""How much longer than in the recording to wait for an event."""
_NEEDED_S: Final = 0.3
"""How much longer to wait for a late event after an act that it may need."""
_ACT_S: Final = 1.0
"""How long to wait for an act of the agent's tasks at most, plus the grace."""


class Timeline:
    """What is still to come of a recorded run; its owner holds the lock."""

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
        """By the number of an event: whether it has happened or need not happen."""
        for seq in range(1, self.last + 1):
            if seq not in by_seq:
                self.happened[seq] = 1
        self.next = 1
        """The first event that has not happened and is still awaited."""
        self.next_since_s = 0.0
        """When it became the next event, or when the last act before it happened."""
        self.active_s = 0.0
        """When the run did something last."""
        self.overdue: set[str] = set()
        """Recorded lanes that were too late; they are not awaited until they make their call."""
        self.acts = {seq: deque(listed) for seq, listed in acts.items()}
        """By the number of an event: the acts before it that are still to come."""
        self.acts_by_name: dict[str, deque[Act]] = {}
        for act in (act for listed in acts.values() for act in listed):
            self.acts_by_name.setdefault(act.what, deque()).append(act)
        self._joined = deque(item for item in self.items() if item.joined is not None)
        """Items still to come that came in on an event loop which was not at rest."""
        self.went_off = {what for what in self.acts_by_name if FIRED in what}
        """The timers that fired in the recording, and callbacks that threads scheduled on event loops."""
        self.has_deadlines = any(not is_handed(what) for what in self.went_off)
        self.has_old_sleeps = any(is_sleep(what) and slept_after(what) is None for what in self.went_off)
        """Whether sleeps are counted from the start of their lane, as in older captures."""

    def move_on(self) -> bool:
        """Move to the first event that has not happened and is awaited; returns whether it moved."""
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
        """The act that must happen before the next event, if any."""
        acts = self.acts.get(self.next)
        while acts and acts[0].left <= 0:
            acts.popleft()
        return acts[0] if acts else None

    def next_act_of(self, what: str) -> Act | None:
        """The next act of that name that is still to come."""
        acts = self.acts_by_name.get(what)
        while acts and (acts[0].left <= 0 or acts[0].seq < self.next):
            acts.popleft()
        return acts[0] if acts else None

    def forget_acts(self) -> None:
        """Await no more acts of the agent's tasks."""
        self.acts.clear()
        self.acts_by_name.clear()

    def forget_order(self) -> None:
        """Await no more acts, nor what came in on busy event loops: the run differs from now on."""
        self.forget_acts()
        self._joined.clear()

    def items(self) -> Iterator[Act | RecordedCall]:
        """What is to come, in recorded order: acts, and calls whose outcome is to come."""
        for seq in range(self.next, self.last + 1):
            yield from [act for act in self.acts.get(seq, ()) if act.left > 0]
            if not self.happened[seq] and self.by_seq[seq].outcome_seq == seq:
                yield self.by_seq[seq]

    def all_items(self) -> Iterator[Act | int]:
        """What is to come, in recorded order: acts, and the event numbers of calls and outcomes."""
        for seq in range(self.next, self.last + 1):
            yield from [act for act in self.acts.get(seq, ()) if act.left > 0]
            if not self.happened[seq]:
                yield seq

    def has_joined_near(self) -> bool:
        """Whether an item that came in on a busy event loop will come soon."""
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
        """The time after which the next event is too late."""
        index = min(self.next, self.last) - 1
        gap_s = max(0.0, self.times_ms[index] - self.times_ms[max(0, index - 1)]) / 1000
        longest_s = _ACT_S if self.acts and self.due_act() is not None else self._longest_gap_s
        return self.next_since_s + min(gap_s, longest_s) + _GRACE_S

    def wait_again(self) -> None:
        """Wait for the next event a little longer: something that it may need happens now."""
        self.next_since_s += max(0.0, self._clock.now_s + _NEEDED_S - self.late_at_s())

    def pass_over(self, late: RecordedCall) -> None:
        """Stop waiting for the next event, which is the call *late* or its outcome."""
        if self.next == late.seq:
            self.overdue.add(late.lane)
        else:
            self.happened[self.next] = 1

    def pass_over_sleeps(self, sleep: str) -> None:
        """Await no later sleep of the same polling loop as *sleep*, which did not come.

        In replay, what the loop polls for may be there at once.
        """
        polling = _polling_of(sleep)
        for name, acts in self.acts_by_name.items():
            if is_sleep(name) and _polling_of(name) == polling:
                for act in acts:
                    act.left = 0


def is_sleep(name: str) -> bool:
    """Whether the timer *name* is a sleep, on an event loop or in a thread."""
    return name.partition(FIRED)[2].startswith(SLEEPS)


def slept_after(name: str) -> int | None:
    """How many calls and tasks the lane of the sleep *name* had started; ``None`` in older captures."""
    progress, mark, _ = name.partition(FIRED)[2][1:].partition(SLEPT_AFTER)
    return int(progress) if mark and progress.isdecimal() else None


def _polling_of(sleep: str) -> tuple[str, int | None]:
    """What all sleeps have in common that are counted together: their lane and its progress."""
    return sleep.partition(FIRED)[0], slept_after(sleep)


def is_handed(what: str) -> bool:
    """Whether it is a callback that a thread scheduled on an event loop."""
    return what.partition(FIRED)[2].startswith(HANDED)

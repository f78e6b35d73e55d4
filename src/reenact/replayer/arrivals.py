"""Delivers what came in on an event loop before the loop was at rest, after as many of its rounds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice

from reenact.formats.capture import FIRED
from reenact.replayer.loops import Loop
from reenact.replayer.source import Act, RecordedCall
from reenact.replayer.timeline import LOOKED_AHEAD, Timeline
from reenact.replayer.timers import Timer, Timers
from reenact.replayer.waiters import LoopWaiter, ThreadWaiter, Waiter, Waiting


class Arrivals:
    """What comes in on event loops one after the other; its owner holds the lock."""

    def __init__(
        self,
        timeline: Timeline,
        waiting: Waiting,
        timers: Timers,
        *,
        answer: Callable[[Waiter], None],
        note_answered: Callable[[Waiter], None],
    ) -> None:
        """*answer* releases a waiting call; *note_answered* notes that one is released otherwise."""
        self._timeline = timeline
        self._waiting = waiting
        self._timers = timers
        self._answer = answer
        self._note_answered = note_answered

    def are_ready(self, loop: Loop, first: Act | RecordedCall | None) -> bool:
        """Whether no thread must be released that hands over what comes in on *loop* behind *first*."""
        for act in self._items_on(loop, first):
            if isinstance(act, Act) and act.what not in self._timers.held and self._release_thread(act.lane):
                return False
        return True

    def _release_thread(self, lane: str) -> bool:
        """Release the thread of *lane*, which must schedule a callback next; returns whether it waited."""
        for acting in self._waiting.acting:
            if acting.act.lane == lane and not acting.is_on_loop:
                self._waiting.acting.remove(acting)
                acting.release()
                return True
        for *_, waiter in self._waiting.queue:
            if waiter.call.lane == lane and isinstance(waiter, ThreadWaiter) and not waiter.is_done:
                self._answer(waiter)
                return True
        return False

    def fire(
        self, loop: Loop, timer: Timer, before: Act | RecordedCall | None = None, *, fired: int = 0
    ) -> None:
        """Fire *timer*, with what came in on *loop* together with it; with *before*, only before that.

        So many timers have *fired* in this round of the loop.
        """
        ahead = self._deliver_ahead(timer, loop, before, fired)
        self._timers.fire_in_turn(timer)
        last = ahead[-1] if ahead else before
        self.deliver_next(loop, at_once=True, before=last, fired=fired + 1)
        if ahead and ahead[0].joined:
            loop.expect_arrival(rounds_later=1)  # the others of its round are counted from it

    def _deliver_ahead(
        self, timer: Timer, loop: Loop, before: Act | RecordedCall | None, fired: int
    ) -> list[Act | RecordedCall]:
        """Deliver what goes on one round after *timer* but before what it wakes, up to the last answer.

        Those tasks had their answers already: a timeout must not cancel them, and what it wakes runs later.
        What comes in after *before* is at least one round later.
        """
        ahead: list[Act | RecordedCall] = []
        rounds = 0
        for found in self._items_on(loop, self._timeline.next_act_of(timer.name)):
            rounds += found.joined or 0
            if before is not None and _place_of(found) > _place_of(before):
                rounds = max(rounds, 1)
            if rounds > 1:
                break
            if isinstance(found, Act):
                ahead += [found] if rounds and found.what in self._timers.held else []
                continue
            waiter = self._waiting.find(found)
            is_here = isinstance(waiter, LoopWaiter) and waiter.loop is loop
            if not rounds or not is_here or found.behind > fired:
                break
            ahead.append(found)
        while ahead and isinstance(ahead[-1], Act):
            ahead.pop()
        for each in ahead:
            if isinstance(each, Act):
                held = self._timers.held[each.what]
                held.fire = partial(loop.run, held.fire)  # one round later
                self._timers.fire_in_turn(held)
            elif (waiter := self._waiting.find(each)) is not None:
                loop.run(waiter.release)
                self._note_answered(waiter)
        return ahead

    def deliver_next(
        self,
        loop: Loop,
        *,
        at_once: bool = False,
        before: Act | RecordedCall | None = None,
        fired: int = 0,
    ) -> None:
        """Deliver what came in on *loop* together with the last item, or as many rounds after it.

        With *before*, only what came in before that item. So many timers have *fired* in this round.
        """
        while (found := next(self._items_on(loop), None)) is not None:
            if before is not None and _place_of(found) > _place_of(before):
                return
            is_due = found.joined == 0 if at_once else loop.rounds >= (found.joined or 0)
            if not is_due:
                return
            if isinstance(found, Act):
                timer = self._timers.held.get(found.what)
                if timer is None or timer.loop is not loop:
                    return
                self.fire(loop, timer, before, fired=fired)
                return
            waiter = self._waiting.find(found)
            if not isinstance(waiter, LoopWaiter) or waiter.loop is not loop:
                return
            self._answer(waiter)
            at_once = True

    def find_missing(self, loop: Loop) -> Act | None:
        """The callback that a thread must have handed to *loop* by this round."""
        found = next(self._items_on(loop), None)
        if (
            isinstance(found, Act)
            and loop.rounds >= (found.joined or 0)
            and found.what not in self._timers.held
        ):
            return found
        return None

    def _items_on(self, loop: Loop, first: Act | RecordedCall | None = None) -> Iterator[Act | RecordedCall]:
        """The items that came in on *loop* before it was at rest, in recorded order, without *first*."""
        if not self._timeline.has_joined_near():
            return
        for item in islice(self._timeline.items(), LOOKED_AHEAD):
            if item is first:
                continue
            if item.joined is not None:
                yield item
            elif isinstance(item, RecordedCall):
                waiter = self._waiting.find(item)
                is_here = isinstance(waiter, LoopWaiter) and waiter.loop is loop
                if is_here or not (item.is_instant or self._timeline.happened[item.seq]):
                    return  # it came when all was at rest, or its call is not made yet, maybe on this loop
            elif item.is_read and not item.is_together:
                return  # what follows came in after it
            elif FIRED in item.what:
                timer = self._timers.held.get(item.what)
                if timer is None or timer.loop is loop:
                    return


def _place_of(item: Act | RecordedCall) -> int:
    return item.seq if isinstance(item, Act) else item.outcome_seq

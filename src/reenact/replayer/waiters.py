"""Calls that wait for their turn: in a thread, which blocks, or in a task, which awaits a future."""

from __future__ import annotations

import threading
from collections.abc import Callable, Coroutine, Generator
from typing import Any, Final

from reenact.boundary import Lane
from reenact.replayer.idle import UnseenThread
from reenact.replayer.loops import Loop
from reenact.replayer.source import Act, RecordedCall


class Waiter:
    """A call that waits for its turn."""

    def __init__(self, call: RecordedCall, lane: Lane, stalls_at_s: float | None) -> None:
        self.call = call
        self.lane = lane
        self.stalls_at_s = stalls_at_s
        """When to stop waiting; only for calls without a recorded answer."""
        self.is_done = False
        self.stalled = False
        self.answered_before = 0
        """How many calls were answered before it began to wait."""

    def release(self) -> None:
        raise NotImplementedError


class EarlyCall:
    """A call that equals a recorded one before which other calls must be made."""

    def __init__(self, try_again: Callable[[], bool], release: Callable[[], None], since_s: float) -> None:
        self.try_again = try_again
        self.release = release
        self.since_s = since_s


class ActWaiter:
    """A thread or task that waits for its turn to end, to put an item into a queue, or to take a lock."""

    def __init__(self, act: Act, release: Callable[[], None], *, is_on_loop: bool = False) -> None:
        self.act = act
        self.release = release
        self.is_on_loop = is_on_loop


class ThreadWaiter(Waiter):
    """A call that waits in a blocked thread."""

    def __init__(
        self, call: RecordedCall, lane: Lane, runner: Lane | UnseenThread, stalls_at_s: float | None
    ) -> None:
        super().__init__(call, lane, stalls_at_s)
        self.runner = runner
        """The thread's lane, or its identity if several threads share the lane."""
        self.came = threading.Event()

    def release(self) -> None:
        self.came.set()


class LoopWaiter(Waiter):
    """A call that waits in a task of an event loop."""

    def __init__(self, call: RecordedCall, lane: Lane, stalls_at_s: float | None, loop: Loop) -> None:
        super().__init__(call, lane, stalls_at_s)
        self.loop = loop
        self.future = loop.new_wait()

    def release(self) -> None:
        self.loop.resolve(self.future)


class Waiting:
    """All calls, acts and early calls that wait in a replay; its owner holds the lock."""

    def __init__(self) -> None:
        self.queue: list[tuple[int, int, int, Waiter]] = []
        """The calls, a heap by the event that they wait for."""
        self.endless: list[Waiter] = []
        """Calls without a recorded answer: they wait until their caller is cancelled, as when recorded."""
        self.acting: list[ActWaiter] = []
        self.taking: dict[str, Callable[[], None]] = {}
        """By lane: what releases a thread that waits for other processes."""
        self.early: list[EarlyCall] = []
        self.is_over = False
        """Whether the run is over, so that nothing waits any more."""

    @property
    def is_empty(self) -> bool:
        return not (self.queue or self.endless or self.early or self.acting or self.taking)

    def find(self, call: RecordedCall) -> Waiter | None:
        waiters = (entry[-1] for entry in self.queue)
        return next((waiter for waiter in waiters if waiter.call is call and not waiter.is_done), None)

    def has_lane(self, lane: str) -> bool:
        return any(waiter.act.lane == lane for waiter in self.acting) or any(
            entry[-1].call.lane == lane and not entry[-1].is_done for entry in self.queue
        )

    def release_all(self) -> None:
        self.is_over = True
        for waiter in (*(entry[-1] for entry in self.queue), *self.endless):
            waiter.release()
        for early in self.early:
            early.release()
        self.release_acting()
        self.queue.clear()
        self.endless.clear()
        self.early.clear()

    def release_acting(self) -> None:
        """Release all that wait to act or to take something."""
        for acting in self.acting:
            acting.release()
        for release in self.taking.values():
            release()
        self.acting.clear()
        self.taking.clear()


_STATE: Final = ("cr_await", "cr_frame", "cr_running", "cr_suspended")
"""The attributes of a coroutine that say whether it runs, waits or has ended."""


class EndingInTurn(Coroutine[object, object, object]):
    """A task's coroutine that ends only when its turn to end has come.

    It delegates everything to the original coroutine, so that a task that never starts leaves nothing behind.
    While it waits for its turn, its state says so: anyio would cancel a task that is neither done nor waiting
    again in every round of the event loop, which would then never be at rest.
    """

    def __init__(
        self,
        coro: Coroutine[object, object, object],
        turn: Callable[[], Coroutine[object, object, None]],
        ended: Callable[[object, BaseException | None], None],
    ) -> None:
        self._coro = coro
        self._on_end = ended
        self._make_turn = turn
        self._turn: Coroutine[object, object, None] | None = None
        self._answer: object = None
        self._error: Exception | None = None

    def __getattr__(self, name: str) -> object:
        is_waiting = self._turn is not None and name in _STATE
        return getattr(self._turn if is_waiting else self._coro, name)

    def __await__(self) -> Generator[object, object, object]:
        raise NotImplementedError("only a task runs it")

    def send(self, value: object) -> object:
        if self._turn is None:
            return self._run(lambda: self._coro.send(value))
        try:
            return self._turn.send(value)
        except StopIteration:
            return self._end()

    def throw(self, *error: Any) -> object:
        if self._turn is None:
            return self._run(lambda: self._coro.throw(*error))
        self._turn.close()  # cancelled after the original has ended, so just end
        return self._end()

    def close(self) -> None:
        (self._turn or self._coro).close()

    def _run(self, step: Callable[[], object]) -> object:
        try:
            return step()
        except StopIteration as end:
            self._answer = end.value
        except Exception as error:
            self._error = error
        except BaseException as error:  # a cancelled task ends at once
            self._on_end(None, error)
            raise
        self._turn = self._make_turn()
        return self.send(None)

    def _end(self) -> object:
        self._on_end(self._answer, self._error)
        if self._error is not None:
            raise self._error
        raise StopIteration(self._answer)

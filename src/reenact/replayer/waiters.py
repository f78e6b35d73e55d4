"""Calls that wait for their turn, each in the way of its caller: a thread blocks, a task awaits."""

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
        """When waiting becomes pointless; only for calls that have no answer to give."""
        self.is_done = False
        self.stalled = False
        self.answered_before = 0
        """How many calls had been answered when it began to wait."""

    def release(self) -> None:
        raise NotImplementedError


class EarlyCall:
    """A call that equals a recorded one before which others have to be made first."""

    def __init__(self, try_again: Callable[[], bool], release: Callable[[], None], since_s: float) -> None:
        self.try_again = try_again
        self.release = release
        self.since_s = since_s


class ActWaiter:
    """A thread or task that waits to end, or to put an item into a queue."""

    def __init__(self, act: Act, release: Callable[[], None], *, is_on_loop: bool = False) -> None:
        self.act = act
        self.release = release
        self.is_on_loop = is_on_loop


class Timer:
    """A timer that goes off when its turn has come, or a thread that waits for its deadline to pass."""

    def __init__(self, name: str, fire: Callable[[], object], let_go: Callable[[], object]) -> None:
        self.name = name
        self.fire = fire
        self.let_go = let_go
        """What is done instead when the run is over."""
        self.when_s = 0.0
        """On the clock of the process, when it would go off by itself."""
        self.loop: Loop | None = None
        """Where it goes off; ``None`` for a thread's."""
        self.stir: Callable[[], object] | None = None
        """Finds out when what it sets in motion has come to rest."""


class ThreadWaiter(Waiter):
    """In a thread, which blocks."""

    def __init__(
        self, call: RecordedCall, lane: Lane, runner: Lane | UnseenThread, stalls_at_s: float | None
    ) -> None:
        super().__init__(call, lane, stalls_at_s)
        self.runner = runner
        """The thread, by its lane, or by its identity where others share that."""
        self.came = threading.Event()

    def release(self) -> None:
        self.came.set()


class LoopWaiter(Waiter):
    """On an event loop, where a task awaits."""

    def __init__(self, call: RecordedCall, lane: Lane, stalls_at_s: float | None, loop: Loop) -> None:
        super().__init__(call, lane, stalls_at_s)
        self.loop = loop
        self.future = loop.new_wait()

    def release(self) -> None:
        self.loop.resolve(self.future)


_STATE: Final = ("cr_await", "cr_frame", "cr_running", "cr_suspended")
"""What of a coroutine says whether it runs, waits or is over."""


class EndingInTurn(Coroutine[object, object, object]):
    """A task's coroutine, which is over only when its turn to end has come.

    It passes everything on to the original, so that a task which never starts leaves nothing behind. While it
    waits for its turn it says that it does: anyio cancels who is neither done nor waiting again and again, in
    every round of the event loop, which is never at rest then.
    """

    def __init__(
        self,
        coro: Coroutine[object, object, object],
        turn: Callable[[], Coroutine[object, object, None]],
        ended: Callable[[object, BaseException | None], None],
    ) -> None:
        self._coro = coro
        self._tell_end = ended
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
        self._turn.close()  # cancelled after its end: it has ended
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
        except BaseException as error:  # one that was cancelled ends at once
            self._tell_end(None, error)
            raise
        self._turn = self._make_turn()
        return self.send(None)

    def _end(self) -> object:
        self._tell_end(self._answer, self._error)
        if self._error is not None:
            raise self._error
        raise StopIteration(self._answer)

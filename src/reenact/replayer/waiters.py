"""Calls that wait for their turn, each in the way of its caller: a thread blocks, a task awaits."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable

from reenact.boundary import Lane
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

    def release(self) -> None:
        raise NotImplementedError


class EarlyCall:
    """A call that equals a recorded one before which others have to be made first."""

    def __init__(self, try_again: Callable[[], bool], release: Callable[[], None], since_s: float) -> None:
        self.try_again = try_again
        self.release = release
        self.since_s = since_s


class ActWaiter:
    """A thread that waits to end, or to put an item into a queue."""

    def __init__(self, act: Act, lane: Lane) -> None:
        self.act = act
        self.lane = lane
        self.came = threading.Event()

    def release(self) -> None:
        self.came.set()


class ThreadWaiter(Waiter):
    """In a thread, which blocks."""

    def __init__(self, call: RecordedCall, lane: Lane, stalls_at_s: float | None) -> None:
        super().__init__(call, lane, stalls_at_s)
        self.came = threading.Event()

    def release(self) -> None:
        self.came.set()


class LoopWaiter(Waiter):
    """On an event loop, where a task awaits."""

    def __init__(self, call: RecordedCall, lane: Lane, stalls_at_s: float | None, loop: Loop) -> None:
        super().__init__(call, lane, stalls_at_s)
        self.loop = loop
        self.future: asyncio.Future[None] = loop.loop.create_future()

    def release(self) -> None:
        self.loop.run(lambda: resolve(self.future))


def resolve(future: asyncio.Future[None]) -> None:
    """Let who awaits *future* go on, if anybody still does."""
    if not future.done():
        future.set_result(None)

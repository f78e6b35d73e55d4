"""Calls that wait for their turn, each in the way of its caller: a thread blocks, a task awaits."""

from __future__ import annotations

import asyncio
import threading

from reenact.boundary import Lane
from reenact.replayer.loops import Loop
from reenact.replayer.source import RecordedCall


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
        self.loop.run(self._release)

    def _release(self) -> None:
        if not self.future.done():
            self.future.set_result(None)

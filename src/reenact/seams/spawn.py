"""Where an agent starts something that runs beside it: tasks, threads, jobs for an executor.

Each gets its lane when it is started, not when it first runs, so its name does not depend on scheduling.
A pool's own worker threads are nobody's children: they come and go with the load, and the jobs they run
have lanes of their own.
"""

from __future__ import annotations

import asyncio
import asyncio.base_events
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from types import FrameType
from typing import Any, Final

from reenact.boundary import UNCLAIMED, Lane, current_lane, disown, lane_var, own, set_lane, share
from reenact.seams.patches import Patch

_FRAMES_TO_WAIT_FOR: Final = 2
"""``ensure_future`` and its inner half."""
_WAIT_FOR: Final = asyncio.wait_for.__code__
_POOLS: Final = ("concurrent.futures.", "anyio.", "multiprocessing.pool")


def patches() -> list[Patch]:
    """What to replace while a run is open."""
    return [
        Patch(asyncio.base_events.BaseEventLoop, "create_task", bound_to_lanes),
        Patch(asyncio, "as_completed", _as_completed),
        Patch(threading.Thread, "start", _start),
        Patch(ThreadPoolExecutor, "submit", _submit),
    ]


def bound_to_lanes(original: Callable[..., Any]) -> Callable[..., Any]:
    """``create_task`` of an event loop, but each task has a lane from its start."""

    def create_task(self: Any, coro: Any, *, context: Any = None, **options: Any) -> Any:
        lane = current_lane()
        if lane is None:
            return original(self, coro, context=context, **options)
        lane.context.loop_seen(self)
        if _is_waited_for(sys._getframe(1)):  # noqa: SLF001 — who asks decides what it means
            task = original(self, coro, context=context, **options)
            share(id(task), lane)
            weakref.finalize(task, disown, id(task))
            return task
        child = lane.child()
        if context is not None:
            # A context the caller shares between tasks says nothing about who is running.
            task = original(self, coro, context=context, **options)
            own(id(task), child)
            weakref.finalize(task, disown, id(task))
            return task
        child.owner = UNCLAIMED
        context = copy_context()
        context.run(lane_var.set, child)
        task = original(self, coro, context=context, **options)
        child.owner = id(task)
        return task

    return create_task


def _is_waited_for(frame: FrameType | None) -> bool:
    """Whether ``wait_for`` makes the task, as it does before Python 3.12: its caller is the one who calls."""
    for _ in range(_FRAMES_TO_WAIT_FOR):
        frame = frame.f_back if frame is not None else None
    return frame is not None and frame.f_code is _WAIT_FOR


def _as_completed(original: Callable[..., Any]) -> Callable[..., Any]:
    def as_completed(fs: Any, **options: Any) -> Iterator[Any]:
        """The original starts bare coroutines in the order of a set; this one in the order given."""
        if current_lane() is not None and not asyncio.iscoroutine(fs) and not asyncio.isfuture(fs):
            fs = [asyncio.ensure_future(item) for item in fs]
        result: Iterator[Any] = original(fs, **options)
        return result

    return as_completed


def _start(original: Callable[..., Any]) -> Callable[..., Any]:
    def start(self: threading.Thread) -> None:
        lane = current_lane()
        if lane is None or _is_pool_worker(self):
            original(self)
            return
        child = lane.child()
        run = self.run
        self.run = lambda: run_in_thread(child, run)  # type: ignore[method-assign]
        original(self)

    return start


def _is_pool_worker(thread: threading.Thread) -> bool:
    target = getattr(thread, "_target", None)
    return any(
        str(getattr(part, "__module__", "")).startswith(_POOLS) for part in (target, type(thread)) if part
    )


def _submit(original: Callable[..., Any]) -> Callable[..., Any]:
    def submit(self: Any, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        lane = current_lane()
        if lane is None:
            future: Future[Any] = original(self, fn, *args, **kwargs)
            return future
        ending = _JobEnding(lane.child())

        def job() -> Any:
            try:
                return _run_in(ending.lane, lambda: fn(*args, **kwargs))
            finally:
                ending.returned()

        future = original(self, job)
        ending.has(future)
        return future

    return submit


class _JobEnding:
    """A job's lane ends when everybody who waits for its result has been told.

    Done callbacks run in the order they were added; ours must be the last, so it is added when the job
    returns, not when it is submitted.
    """

    def __init__(self, lane: Lane) -> None:
        self.lane = lane
        self._lock = threading.Lock()
        self._future: Future[Any] | None = None
        self._has_returned = False

    def has(self, future: Future[Any]) -> None:
        with self._lock:
            self._future = future
            is_over = self._has_returned
        if is_over:
            self._listen(future)

    def returned(self) -> None:
        with self._lock:
            self._has_returned = True
            future = self._future
        if future is not None:
            self._listen(future)

    def _listen(self, future: Future[Any]) -> None:
        future.add_done_callback(lambda _: self.lane.context.lane_ended(self.lane))


def run_in_thread(lane: Lane, run: Callable[[], None]) -> None:
    """All that a thread does, in *lane*, which is over then."""
    try:
        _run_in(lane, run)
    finally:
        lane.context.lane_ended(lane)


def _run_in(lane: Lane, work: Callable[[], Any]) -> Any:
    """Do *work* in *lane*, also where it enters a context of its own (``asyncio.to_thread`` does)."""
    me = threading.get_ident()
    before = lane_var.get()
    own(me, lane)
    set_lane(lane)
    lane.context.lane_began(lane)
    try:
        return work()
    finally:
        set_lane(before)
        disown(me)

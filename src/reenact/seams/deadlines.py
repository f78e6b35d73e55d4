"""Timers: those of event loops, and threads that wait with a timeout.

Whether a deadline passes before the work under it is done depends on chance, and decides what the agent does
next. So the recorded order of the run's tasks includes the timers that fired. In replay a timer fires at its
recorded position in that order, however long anything takes. A sleep is a timer too, and takes no time in
replay.

A timer is identified by the lane that set it, its kind, and its ordinal among those; a timer that another
timer's callback sets is identified by that timer. Timers that a library sets for its own purposes, such as to
keep connections alive, are not recorded.
"""

from __future__ import annotations

import asyncio
import asyncio.base_events
import concurrent.futures
import concurrent.futures._base
import queue
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import Context as Variables
from time import monotonic
from typing import Any, Final

from reenact.boundary import HANDED, Lane, current_lane, outside
from reenact.formats.capture import PUT
from reenact.library import is_library
from reenact.process_state import lane_of_job, lane_var, loops_ahead_s, this_thread
from reenact.seams.patches import Patch

_LOOK_S: Final = 0.05
"""How often a thread that waits beyond its deadline checks whether to give up."""
_RUN_ONCE: Final = asyncio.base_events.BaseEventLoop._run_once.__code__  # type: ignore[attr-defined]  # noqa: SLF001
_WOKEN: Final = "k"
"""The kind of a wait without a deadline, which ends when the thread is woken."""
_WOKEN_BY_SOME: Final = "g"
"""The kind of a wait for several jobs, which ends when the thread is woken: how many have ended by then?"""
_KINDS: Final = {
    "asyncio.futures": "s",
    "asyncio.timeouts": "t",
    "asyncio.tasks": "w",
    "anyio._backends._asyncio": "a",
    "async_timeout": "t",
}
"""By the module of a timer's callback: ``sleep``, ``timeout``, ``wait`` and ``wait_for``, anyio's scopes."""


def patches() -> list[Patch]:
    """The patches to apply while a run is open."""
    threads = [
        Patch(threading.Event, "wait", _event_wait),
        Patch(threading.Condition, "wait", _condition_wait),
        Patch(threading.Condition, "wait_for", _condition_wait_for),
        Patch(threading.Semaphore, "acquire", _acquire),
        Patch(threading.Thread, "join", _join),
        Patch(queue.Queue, "get", get_in_turn),
        Patch(Future, "result", _result),
        Patch(Future, "exception", _result),
    ]
    futures = [
        Patch(module, name, wrap)
        for module in (concurrent.futures, concurrent.futures._base)  # noqa: SLF001
        for name, wrap in (("wait", _wait), ("as_completed", _as_completed))
    ]
    loop = asyncio.base_events.BaseEventLoop
    return [
        Patch(loop, "call_at", call_at),
        Patch(loop, "call_soon_threadsafe", call_in_turn),
        Patch(loop, "time", loop_time),
        Patch(asyncio.Timeout, "reschedule", _reschedule),
        *threads,
        *futures,
    ]


# Timers of event loops


def loop_time(original: Callable[[object], float]) -> Callable[[object], float]:
    """``time`` of an event loop, but skipped sleeps count as passed."""

    def time(self: object) -> float:
        now_s = original(self)
        # The loop itself waits in real time.
        if not loops_ahead_s or sys._getframe(1).f_code is _RUN_ONCE:  # noqa: SLF001
            return now_s
        return now_s + loops_ahead_s.get(self, 0.0)

    return time


def call_at(original: Callable[..., object]) -> Callable[..., object]:
    """``call_at`` of an event loop, but in replay its timers fire in the recorded order."""

    def call_at(self: Any, when: float, callback: object, *args: object, context: Any = None) -> object:
        timer = _new_timer(self, when - self.time(), callback)
        if timer is None:
            return original(self, when - loops_ahead_s.get(self, 0.0), callback, *args, context=context)
        held = _HeldHandle(timer, when, args, context)
        if timer.lane.context.hold_timer(timer.lane, timer.name, held):
            return held
        return original(self, when - loops_ahead_s.get(self, 0.0), timer, *args, context=context)

    return call_at


def call_later(original: Callable[..., object]) -> Callable[..., object]:
    """The same for ``call_later`` of an event loop that does not implement it with ``call_at``."""

    def call_later(self: Any, delay: float, callback: object, *args: object, context: Any = None) -> object:
        timer = _new_timer(self, delay, callback)
        if timer is None:
            return original(self, delay, callback, *args, context=context)
        held = _HeldHandle(timer, self.time() + delay, args, context)
        if timer.lane.context.hold_timer(timer.lane, timer.name, held):
            return held
        return original(self, delay, timer, *args, context=context)

    return call_later


def _reschedule(original: Callable[..., None]) -> Callable[..., None]:
    """``reschedule`` of ``asyncio.timeout``, but a deadline that has already passed sets a timer, too."""

    def reschedule(self: Any, when: float | None) -> None:
        original(self, when)
        if when is None or hasattr(self._timeout_handler, "when") or current_lane() is None:
            return
        self._timeout_handler.cancel()
        self._timeout_handler = asyncio.get_running_loop().call_at(when, self._on_timeout)

    return reschedule


def call_in_turn(original: Callable[..., object]) -> Callable[..., object]:
    """``call_soon_threadsafe`` of an event loop, but the callback runs in the recorded order, as a timer."""

    def call_soon_threadsafe(self: Any, callback: Any, *args: object, context: Any = None) -> object:
        lane = _scheduling_lane(self, args)
        if lane is None or not lane.has_order:
            return original(self, callback, *args, context=context)
        timer = LoopTimer(lane, lane.next_timer(HANDED), self, callback)
        held = _HeldHandle(timer, self.time(), args, context)
        if lane.context.hold_timer(lane, timer.name, held):
            return held
        return original(self, timer, *args, context=context)

    return call_soon_threadsafe


def set_lane_of_callbacks(lane: Lane | None) -> None:
    """This thread now runs the done callbacks of the job of *lane*; ``None`` when it has run them."""
    this_thread.telling = lane


def _scheduling_lane(loop: object, args: tuple[object, ...]) -> Lane | None:
    """The lane on whose behalf a callback is scheduled on *loop* from outside the loop."""
    if asyncio._get_running_loop() is loop:  # noqa: SLF001 — in asyncio's __all__
        # On the loop itself this is called for a job that ended before its done callback was added.
        return lane_of_job.get(args[-1]) if args and isinstance(args[-1], Future) else None
    if this_thread.telling is not None:
        return this_thread.telling
    return current_lane() if lane_var.get() is not None else None


class LoopTimer:
    """A timer's callback; sets the current timer while it runs."""

    __slots__ = ("callback", "lane", "loop", "name", "spawned")

    def __init__(self, lane: Lane, name: str, loop: Any, callback: Any) -> None:
        self.lane = lane
        self.name = name
        self.loop = loop
        self.callback = callback
        self.spawned = 0

    def __call__(self, *args: object) -> None:
        self.lane.context.timer_fired(self.lane, self.name)
        self.run(*args)
        self.lane.context.timer_ran(self.lane)

    def run(self, *args: Any) -> None:
        before, this_thread.timer = this_thread.timer, self
        try:
            self.callback(*args)
        finally:
            this_thread.timer = before


def _new_timer(loop: object, delay_s: float, callback: object) -> LoopTimer | None:
    """The timer that is being set; ``None`` if the run does not record it."""
    lane = current_lane()
    if lane is None:
        return None
    function = getattr(callback, "__func__", callback)
    kind = _KINDS.get(getattr(function, "__module__", None) or "")
    if kind is None and delay_s > 0:  # else the loop knows its turn
        kind = _kind_of_caller()
    if kind is None:
        return None
    setter = this_thread.timer
    if setter is not None and setter.loop is loop:
        setter.spawned += 1
        return LoopTimer(setter.lane, f"{setter.name}.{kind}{setter.spawned - 1}", loop, callback)
    return LoopTimer(lane, lane.next_timer(kind), loop, callback) if lane.has_order else None


def _kind_of_caller() -> str | None:
    """The kind of a timer that the agent's own code sets; ``None`` if a library sets it."""
    frame = sys._getframe(3)  # noqa: SLF001 — the caller decides whose timer it is
    while frame.f_back is not None and frame.f_globals.get("__name__") == "asyncio.base_events":
        frame = frame.f_back
    return None if is_library(frame.f_code.co_filename) else "c"


class _HeldHandle(asyncio.TimerHandle):
    """The handle of a timer that the replay fires; the agent can cancel it."""

    __slots__ = ("_is_over", "_timer", "loop", "when_s")

    def __init__(self, timer: LoopTimer, when: float, args: Any, context: Variables | None) -> None:
        super().__init__(when, timer.run, args, timer.loop, context)
        self._timer = timer
        self._is_over = False
        self.loop = timer.loop
        self.when_s = monotonic() + when - timer.loop.time()

    def cancel(self) -> None:
        if not self._cancelled and not self._is_over:
            self._timer.lane.context.drop_timer(self._timer.lane, self._timer.name)
        asyncio.Handle.cancel(self)

    def fire(self) -> None:
        self._is_over = True
        if not self._cancelled:
            ahead_s = loops_ahead_s.get(self.loop, 0.0)
            loops_ahead_s[self.loop] = max(ahead_s, ahead_s + self.when() - self.loop.time())
            self._run()

    def let_go(self) -> None:
        delay_s = self.when_s - monotonic()
        if not self.loop.is_closed():
            with outside():
                self.loop.call_soon_threadsafe(self.loop.call_later, max(0.0, delay_s), self.fire)


# Threads that wait


class _RanOut:
    """The result of a wait that timed out."""


RAN_OUT: Final = _RanOut()


def wait_with_deadline(
    kind: str,
    seconds: float,
    attempt: Callable[[float], object],
    unlocked: Callable[[], AbstractContextManager[None]] = nullcontext,
) -> object:
    """Wait with *attempt*, which waits up to the given seconds and returns ``RAN_OUT`` on a timeout.

    In replay the wait times out exactly if the recorded one did. *unlocked* releases a lock meanwhile that
    other threads need.
    """
    lane = current_lane()
    if lane is None or not lane.has_order or this_thread.is_waiting:
        return attempt(seconds)
    name = lane.next_timer(kind)
    this_thread.is_waiting = True
    try:
        match lane.context.deadline(lane, name):
            case "its time":
                outcome = attempt(seconds)
                if outcome is RAN_OUT:
                    lane.context.timer_fired(lane, name)
                return outcome
            case "nothing":
                passed = threading.Event()
                with unlocked():
                    lane.context.hold_deadline(lane, name, seconds, passed.set)
                    passed.wait()
                return RAN_OUT
        until_s = monotonic() + seconds
        while (outcome := attempt(_LOOK_S)) is RAN_OUT:
            if monotonic() >= until_s and lane.context.may_give_up(lane):
                break
        return outcome
    finally:
        this_thread.is_waiting = False


def _wake_in_turn(wait: Callable[[], object], *, is_there: bool) -> object:
    """Wait without a deadline; in replay the thread goes on when it is its turn in the recorded order.

    Several threads may be woken at the same time, as by the tasks of an event loop in another thread. A
    thread that need not wait, because what it waits for *is_there*, has no turn.
    """
    lane = lane_with_turns()
    if lane is None or this_thread.is_waiting:
        return wait()
    name = lane.next_timer(_WOKEN)
    try:
        return wait()
    finally:
        _go_on(lane, name, is_noted=not is_there)


def lane_with_turns() -> Lane | None:
    """The current lane; ``None`` for a thread that the run did not start, and for threads started there.

    Such a thread may belong to a server outside the run, which gets no requests in replay.
    """
    lane = current_lane()
    return lane if lane is not None and lane.has_order and not lane.is_below_loose else None


def _go_on(lane: Lane, name: str, *, is_noted: bool = True) -> None:
    """The thread was woken from the wait *name*; in replay, wait for its turn to go on."""
    if lane.context.time_passes(lane):
        if is_noted:
            lane.context.timer_fired(lane, name)
    elif lane.context.deadline(lane, name) == "nothing":
        woken = threading.Event()
        lane.context.hold_deadline(lane, name, 0.0, woken.set)
        woken.wait()


def is_in_wait() -> bool:
    """Whether this thread is inside a wait with a deadline: locks that it takes meanwhile belong to it."""
    return this_thread.is_waiting


@contextmanager
def _join_outer_wait() -> Iterator[None]:
    """Treat waits in the block as part of an outer wait, not as waits to record."""
    this_thread.is_waiting = True
    try:
        yield
    finally:
        this_thread.is_waiting = False


def sleep_in_turn(lane: Lane, seconds: float) -> None:
    """Do not sleep, but return when it is the turn of *lane* in the recorded order."""
    name = lane.next_timer("z")
    if lane.context.deadline(lane, name) == "its time":
        lane.context.timer_fired(lane, name)
        return
    woken = threading.Event()
    lane.context.hold_deadline(lane, name, seconds, woken.set)
    woken.wait()


def _event_wait(original: Callable[..., bool]) -> Callable[..., bool]:
    def wait(self: threading.Event, timeout: float | None = None) -> bool:
        if timeout is None or this_thread.is_waiting:
            return original(self, timeout)
        return wait_with_deadline("e", timeout, lambda seconds: original(self, seconds) or RAN_OUT) is True

    return wait


def _condition_wait(original: Callable[..., bool]) -> Callable[..., bool]:
    def wait(self: threading.Condition, timeout: float | None = None) -> bool:
        if timeout is None or this_thread.is_waiting:
            return original(self, timeout)
        outcome = wait_with_deadline(
            "v", timeout, lambda seconds: original(self, seconds) or RAN_OUT, lambda: _release_for_wait(self)
        )
        return outcome is not RAN_OUT

    return wait


def _condition_wait_for(original: Callable[..., object]) -> Callable[..., object]:
    def wait_for(
        self: threading.Condition, predicate: Callable[[], object], timeout: float | None = None
    ) -> object:
        if timeout is None or this_thread.is_waiting:
            return original(self, predicate, timeout)
        outcome = wait_with_deadline(
            "v",
            timeout,
            lambda seconds: original(self, predicate, seconds) or RAN_OUT,
            lambda: _release_for_wait(self),
        )
        return False if outcome is RAN_OUT else outcome

    return wait_for


@contextmanager
def _release_for_wait(condition: Any) -> Iterator[None]:
    state = condition._release_save()  # noqa: SLF001 — as the condition itself does while it waits
    try:
        yield
    finally:
        condition._acquire_restore(state)  # noqa: SLF001


def _acquire(original: Callable[..., bool]) -> Callable[..., bool]:
    def acquire(self: object, blocking: bool = True, timeout: float | None = None) -> bool:
        if timeout is None or not blocking or this_thread.is_waiting:
            return original(self, blocking, timeout)
        if timeout <= 0:  # only a check, as executors do to find idle workers
            with _join_outer_wait():
                return original(self, blocking, timeout)
        outcome = wait_with_deadline("l", timeout, lambda seconds: original(self, True, seconds) or RAN_OUT)
        return outcome is not RAN_OUT

    return acquire


def _join(original: Callable[..., None]) -> Callable[..., None]:
    def join(self: threading.Thread, timeout: float | None = None) -> None:
        def attempt(seconds: float) -> object:
            original(self, seconds)
            return RAN_OUT if self.is_alive() else None

        if timeout is None or this_thread.is_waiting:
            original(self, timeout)
        else:
            wait_with_deadline("j", timeout, attempt)

    return join


def get_in_turn(original: Callable[..., object]) -> Callable[..., object]:
    """``get`` of a queue, but in replay its timeout passes in the recorded order."""

    def get(self: object, block: bool = True, timeout: float | None = None) -> object:
        def attempt(seconds: float) -> object:
            try:
                return original(self, True, seconds)
            except queue.Empty:
                return RAN_OUT

        if timeout is None or timeout < 0 or not block or this_thread.is_waiting:
            return original(self, block, timeout)
        item = wait_with_deadline("q", timeout, attempt)
        if item is RAN_OUT:
            raise queue.Empty
        return item

    return get


def put_in_turn(original: Callable[..., None]) -> Callable[..., None]:
    """``put`` of a queue, but in replay items go in, and its timeout passes, in the recorded order."""

    def put(self: object, item: object, block: bool = True, timeout: float | None = None) -> None:
        lane = current_lane()

        def put_now(block: bool, seconds: float | None) -> None:
            if lane is not None:
                lane.context.wait_to_act(lane, PUT)
            original(self, item, block, seconds)

        def attempt(seconds: float) -> object:
            try:
                put_now(True, seconds)
            except queue.Full:
                return RAN_OUT
            return None

        if timeout is None or timeout < 0 or not block or this_thread.is_waiting:
            put_now(block, timeout)
        elif wait_with_deadline("p", timeout, attempt) is RAN_OUT:
            raise queue.Full

    return put


def _result(original: Callable[..., object]) -> Callable[..., object]:
    """``result`` or ``exception`` of an executor's job."""

    def result(self: Any, timeout: float | None = None) -> object:
        def attempt(seconds: float) -> object:
            try:
                return original(self, seconds)
            except TimeoutError as error:
                if error is self._exception:  # the job itself raised it
                    raise
                return RAN_OUT

        if timeout is None or this_thread.is_waiting:
            # Jobs end in turn, one after the other, so that they wake one thread at a time.
            if self in lane_of_job:
                return original(self, timeout)
            return _wake_in_turn(lambda: original(self, timeout), is_there=self.done())
        found = wait_with_deadline("f", timeout, attempt)
        if found is RAN_OUT:
            raise TimeoutError
        return found

    return result


def _wait(original: Callable[..., Any]) -> Callable[..., object]:
    def wait(
        fs: Iterable[Future[object]], timeout: float | None = None, return_when: str = "ALL_COMPLETED"
    ) -> object:
        if this_thread.is_waiting:
            return original(fs, timeout, return_when)
        jobs = list(fs)
        lane = lane_with_turns()
        name = lane.next_timer(_WOKEN_BY_SOME) if lane is not None else ""

        def attempt(seconds: float) -> object:
            found = original(jobs, seconds, return_when)
            return RAN_OUT if found.not_done and not _is_enough(found, return_when) else found

        if timeout is None:
            original(jobs, None, return_when)
        ran_out = timeout is not None and wait_with_deadline("w", timeout, attempt) is RAN_OUT
        if lane is not None and not ran_out:
            _go_on(lane, name)
        with _join_outer_wait():
            return original(jobs, 0, return_when)

    return wait


def _is_enough(found: Any, return_when: str) -> bool:
    if return_when == "FIRST_COMPLETED":
        return bool(found.done)
    return return_when == "FIRST_EXCEPTION" and any(
        not job.cancelled() and job.exception() is not None for job in found.done
    )


def _as_completed(original: Callable[..., Iterator[object]]) -> Callable[..., Iterator[object]]:
    def as_completed(fs: Iterable[Future[object]], timeout: float | None = None) -> Iterator[object]:
        lane = current_lane()
        if timeout is None or lane is None or not lane.has_order:
            return original(fs, timeout)
        name = lane.next_timer("x")
        if lane.context.deadline(lane, name) == "its time":
            return _note_deadline(original(fs, timeout), lane, name)
        return _yield_completed(list(dict.fromkeys(fs)), timeout, lane, name)

    return as_completed


def _note_deadline(jobs: Iterator[object], lane: Lane, name: str) -> Iterator[object]:
    try:
        yield from jobs
    except TimeoutError:
        lane.context.timer_fired(lane, name)
        raise


def _yield_completed(jobs: list[Future[object]], seconds: float, lane: Lane, name: str) -> Iterator[object]:
    """Yield the jobs as they end; raise ``TimeoutError`` if the recorded wait did."""
    ended: queue.SimpleQueue[Future[object] | None] = queue.SimpleQueue()
    """The jobs that ended; ``None`` says that the deadline has passed."""
    for job in jobs:
        job.add_done_callback(ended.put)
    if lane.context.deadline(lane, name) == "nothing":
        lane.context.hold_deadline(lane, name, seconds, lambda: ended.put(None))
    until_s = monotonic() + seconds
    left = len(jobs)
    while left:
        try:
            first = ended.get(timeout=_LOOK_S)
        except queue.Empty:
            if monotonic() < until_s or not lane.context.may_give_up(lane):
                continue
            first = None
        if first is None:
            raise TimeoutError(f"{left} (of {len(jobs)}) futures unfinished")
        left -= 1
        yield first

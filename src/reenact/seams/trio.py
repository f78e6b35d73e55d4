"""trio: tasks get lanes, and in replay deadlines pass in the recorded order, as on other event loops.

A cancel scope with a deadline is a timer, which is set when the scope is entered or its deadline changes. A
sleep is a timer, too. A function that runs in a worker thread is a job with a lane.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Coroutine
from functools import partial
from math import inf
from random import Random
from time import monotonic, perf_counter
from types import ModuleType
from typing import Any, Final

from reenact.boundary import UNCLAIMED, Lane, current_lane, running_in
from reenact.process_state import trio_deadlines
from reenact.seams.imports import Libraries
from reenact.seams.patches import Patch
from reenact.seams.spawn import describe_end, name_function, run_in_thread

_NO_DEADLINES: Final = (inf, -inf)
"""``inf`` means no deadline; ``-inf`` marks a scope that is cancelled from the start."""
_FRAMES_TO_SLEEP: Final = 8
"""The most frames between ``sleep_until`` and the function that sets its deadline."""


def _patches(module: ModuleType) -> list[Patch]:
    patches = [
        Patch(module, "run", partial(_run, module)),
        Patch(module.Nursery, "start_soon", _start_in_lane),
        Patch(module.Nursery, "start", _start_and_wait_in_lane),
        Patch(module.to_thread, "run_sync", _run_in_worker),
    ]
    core = sys.modules.get("trio._core._run")
    if isinstance(getattr(core, "_r", None), Random):
        patches.append(Patch(core, "_r", _make_fixed_coin))
    # trio has no hook for a deadline that passes; without its private list, only results are compared.
    deadlines = getattr(core, "Deadlines", None)
    if all(hasattr(deadlines, name) for name in ("add", "remove", "expire")):
        is_sleep = partial(_is_sleep, module.sleep_until.__code__)
        patches += [
            Patch(module.CancelScope, "__enter__", partial(_enter, is_sleep)),
            Patch(deadlines, "add", partial(_add, is_sleep)),
            Patch(deadlines, "remove", _remove),
            Patch(deadlines, "expire", _expire),
        ]
    return patches


def _make_fixed_coin(original: Random) -> Random:
    """The generator with which trio tosses whether tasks that are ready together run in reverse: never."""
    generator = Random()
    generator.setstate(original.getstate())
    generator.random = lambda: 0.5  # type: ignore[method-assign]  # below it they would be reversed
    return generator


def _run(module: ModuleType, original: Callable[..., object]) -> Callable[..., object]:
    def run(async_fn: object, *args: object, clock: object = None, **options: object) -> object:
        lane = current_lane()
        if lane is None:
            return original(async_fn, *args, clock=clock, **options)
        child = lane.child()
        child.owner = UNCLAIMED
        function, how = name_function(async_fn), ""
        lane.context.lane_began(child)
        try:
            with running_in(child):
                answer = original(async_fn, *args, clock=clock or _new_clock(module), **options)
            how = describe_end(function, answer, None)
            return answer
        except BaseException as error:
            how = describe_end(function, None, error)
            raise
        finally:
            lane.context.lane_ending(child, how)
            lane.context.lane_end_seen(child)
            lane.context.lane_ended(child)

    return run


# Tasks


def _start_in_lane(original: Callable[..., object]) -> Callable[..., object]:
    def start_soon(self: object, async_fn: object, *args: object, name: object = None) -> object:
        lane = current_lane()
        if lane is None or not callable(async_fn):
            return original(self, async_fn, *args, name=name)
        child = _lane_of_next_task(lane)
        with running_in(child):
            return original(self, _follow(child, async_fn), *args, name=async_fn if name is None else name)

    return start_soon


def _start_and_wait_in_lane(original: Callable[..., Any]) -> Callable[..., object]:
    async def start(self: object, async_fn: object, *args: object, name: object = None) -> object:
        lane = current_lane()
        if lane is None or not callable(async_fn):
            return await original(self, async_fn, *args, name=name)
        child = _lane_of_next_task(lane)
        with running_in(child):
            return await original(
                self, _follow(child, async_fn), *args, name=async_fn if name is None else name
            )

    return start


def _lane_of_next_task(lane: Lane) -> Lane:
    """A new child lane; the task that inherits it takes ownership of it at its first call."""
    child = lane.child()
    child.owner = UNCLAIMED
    return child


def _follow(lane: Lane, async_fn: Callable[..., object]) -> Callable[..., object]:
    """*async_fn*, but the run learns of its end, and in replay it ends in the recorded order."""
    describe = partial(describe_end, name_function(async_fn))

    def start(*args: object, **options: object) -> object:
        coro = async_fn(*args, **options)
        return lane.context.task_body(lane, coro, describe) if isinstance(coro, Coroutine) else coro

    return start


def _run_in_worker(original: Callable[..., Any]) -> Callable[..., object]:
    async def run_sync(sync_fn: Callable[..., object], *args: object, **options: object) -> object:
        lane = current_lane()
        if lane is None:
            return await original(sync_fn, *args, **options)
        child, function = lane.child(), name_function(sync_fn)
        lane.context.lane_starting(child)
        return await original(lambda: run_in_thread(child, partial(sync_fn, *args), function), **options)

    return run_sync


# Deadlines


class TrioDeadline:
    """The deadline of a cancel scope, which in replay passes in the recorded order."""

    def __init__(self, lane: Lane, name: str, set_again: Callable[[], None], scope: Any, at: float) -> None:
        trio = sys.modules["trio"]
        self.lane = lane
        self.name = name
        self.is_held = False
        self._is_over = False
        self._set_again = set_again
        self._scope = scope
        self._at = at
        self._clock = trio.lowlevel.current_clock()
        self.loop = trio.lowlevel.current_trio_token()
        self.when_s = monotonic() + at - trio.current_time()

    def fire(self) -> None:
        self._is_over = True
        if hasattr(self._clock, "put_forward_to"):
            self._clock.put_forward_to(self._at)
        self._scope.cancel()

    def drop(self) -> None:
        """The scope was exited, or its deadline was changed."""
        if not self._is_over:
            self._is_over = True
            self.lane.context.drop_timer(self.lane, self.name)

    def let_go(self) -> None:
        try:
            self.loop.run_sync_soon(self._pass_by_itself)
        except RuntimeError:  # trio's run is over
            self._is_over = True

    def _pass_by_itself(self) -> None:
        if not self._is_over:
            self.is_held, self._is_over = False, True
            self._set_again()


def _enter(is_sleep: Callable[[], bool], original: Callable[[object], object]) -> Callable[[object], object]:
    def enter(self: Any) -> object:
        """Treat a deadline that has already passed as a timer, too: trio cancels at once and sets none."""
        at = self._deadline
        if at in _NO_DEADLINES or self._cancel_called or sys.modules["trio"].current_time() < at:
            return original(self)
        lane = current_lane()
        if lane is None or not lane.has_order:
            return original(self)
        name = lane.next_timer("s" if is_sleep() else "t")
        known = TrioDeadline(lane, name, self.cancel, self, at)
        known.is_held = lane.context.hold_timer(lane, name, known)
        if not known.is_held:
            lane.context.timer_fired(lane, name)
            return original(self)
        trio_deadlines[self] = known
        self._deadline = inf
        entered = original(self)
        self._deadline = self._registered_deadline = at
        return entered

    return enter


def _add(is_sleep: Callable[[], bool], original: Callable[..., None]) -> Callable[..., None]:
    def add(self: object, deadline: float, cancel_scope: object) -> None:
        lane = current_lane()
        if lane is None or not lane.has_order:
            original(self, deadline, cancel_scope)
            return
        name = lane.next_timer("s" if is_sleep() else "t")
        known = TrioDeadline(
            lane, name, lambda: original(self, deadline, cancel_scope), cancel_scope, deadline
        )
        trio_deadlines[cancel_scope] = known
        known.is_held = lane.context.hold_timer(lane, name, known)
        if not known.is_held:
            original(self, deadline, cancel_scope)

    return add


def _remove(original: Callable[..., None]) -> Callable[..., None]:
    def remove(self: object, deadline: float, cancel_scope: object) -> None:
        known = trio_deadlines.pop(cancel_scope, None)
        if known is not None and known.is_held:
            known.drop()
        else:
            original(self, deadline, cancel_scope)

    return remove


def _expire(original: Callable[..., bool]) -> Callable[..., bool]:
    def expire(self: Any, now: float) -> bool:
        if trio_deadlines:
            passed = [entry for entry in self._heap if entry[0] <= now]
            for at, scope in dict.fromkeys((at, scope) for at, _, scope in sorted(passed)):
                known = trio_deadlines.get(scope)
                if known is not None and at == scope._registered_deadline:  # noqa: SLF001 — else it was changed
                    known.lane.context.timer_fired(known.lane, known.name)
        return original(self, now)

    return expire


def _is_sleep(sleep_until: object) -> bool:
    frame: Any = sys._getframe(2)  # noqa: SLF001 — the function that sets a deadline decides its kind
    for _ in range(_FRAMES_TO_SLEEP):
        if frame is None or frame.f_code is sleep_until:
            break
        frame = frame.f_back
    return frame is not None and frame.f_code is sleep_until


def _new_clock(module: ModuleType) -> object:
    """trio's clock, but skipped sleeps count as passed."""

    class Clock(module.abc.Clock):  # type: ignore[name-defined, misc]
        def __init__(self) -> None:
            self._ahead_s = 0.0

        def start_clock(self) -> None:
            """Nothing to do: ``perf_counter`` always runs."""

        def current_time(self) -> float:
            return perf_counter() + self._ahead_s

        def deadline_to_sleep_time(self, deadline: float) -> float:
            return deadline - self.current_time()

        def put_forward_to(self, moment: float) -> None:
            self._ahead_s += max(0.0, moment - self.current_time())

    return Clock()


LIBRARIES: Final[Libraries] = {
    "trio": _patches,
    "anyio._backends._trio": lambda module: [Patch(module, "run_sync", _run_in_worker)],
}

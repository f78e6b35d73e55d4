"""Random concurrent programs: what an agent may do with tasks, threads, executors, locks and races.

A program is data; the same program is run once while it is recorded and then replayed. Every live call
gets an answer that no other call gets, so an answer that went to another call shows in the result.
"""

from __future__ import annotations

import asyncio
import itertools
import random
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from hypothesis import strategies as st

import reenact

LoopFactory: TypeAlias = Callable[[], asyncio.AbstractEventLoop] | None
SLOW_S = 0.03
GIVE_UP_S = 0.004


@dataclass(frozen=True)
class Step:
    """One step of a program; *kind* says what is done with *children*."""

    kind: str
    value: int = 0
    children: tuple[Any, ...] = ()


@dataclass
class World:
    """What a program's steps share: the tools and the locks."""

    rng: random.Random
    live_calls: int = 0
    counter: Any = field(default_factory=lambda: itertools.count(1))

    def __post_init__(self) -> None:
        self.lock: asyncio.Lock | None = None
        self.thread_lock = threading.Lock()

        @reenact.tool
        async def look_up(value: int) -> dict[str, int]:
            await asyncio.sleep(self._delay())
            return self._answer(value)

        @reenact.tool
        async def look_up_slowly(value: int) -> dict[str, int]:
            await asyncio.sleep(SLOW_S)
            return self._answer(value)

        @reenact.tool
        async def look_up_for_ever(value: int) -> dict[str, int]:
            await asyncio.sleep(60)
            return self._answer(value)

        @reenact.tool
        async def look_up_after(value: int, delay_ms: int) -> dict[str, int]:
            await asyncio.sleep(delay_ms / 1000)
            return self._answer(value)

        @reenact.tool
        def compute_for(value: int, delay_ms: int) -> dict[str, int]:
            time.sleep(delay_ms / 1000)
            return self._answer(value)

        @reenact.tool
        async def look_up_at_once(value: int) -> dict[str, int]:
            return self._answer(value)

        @reenact.tool
        def compute(value: int) -> dict[str, int]:
            time.sleep(self._delay())
            return self._answer(value)

        @reenact.tool
        def fail(value: int) -> None:
            self._answer(value)
            raise KeyError(value)

        self.look_up, self.look_up_slowly, self.look_up_at_once = look_up, look_up_slowly, look_up_at_once
        self.look_up_for_ever, self.look_up_after = look_up_for_ever, look_up_after
        self.compute, self.compute_for, self.fail = compute, compute_for, fail

    def _delay(self) -> float:
        return self.rng.choice((0.0, 0.001, 0.002, 0.004))

    def _answer(self, value: int) -> dict[str, int]:
        self.live_calls += 1
        return {"value": value, "nobody_else_gets": next(self.counter)}


async def run_async(step: Step, world: World) -> Any:
    """Do *step* on the event loop; the result holds every answer where it was received."""
    return await _ASYNC[step.kind](step, world)


def run_sync(step: Step, world: World) -> Any:
    """Do *step* in a thread."""
    return _SYNC[step.kind](step, world)


async def _sequence(step: Step, world: World) -> Any:
    return [await run_async(child, world) for child in step.children]


async def _call(step: Step, world: World) -> Any:
    return await world.look_up(step.value)


async def _call_at_once(step: Step, world: World) -> Any:
    return await world.look_up_at_once(step.value)


async def _blocking_call(step: Step, world: World) -> Any:
    return world.compute(step.value)


async def _failing_call(step: Step, world: World) -> Any:
    try:
        return world.fail(step.value)
    except KeyError as error:
        return repr(error)


async def _gather(step: Step, world: World) -> Any:
    return await asyncio.gather(*(run_async(child, world) for child in step.children))


async def _group(step: Step, world: World) -> Any:
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(run_async(child, world)) for child in step.children]
    return [task.result() for task in tasks]


async def _as_completed(step: Step, world: World) -> Any:
    """By place: outcomes of one loop tick may finish in either order, which another test looks at."""

    async def placed(place: int, child: Step) -> tuple[int, Any]:
        return place, await run_async(child, world)

    children = [placed(place, child) for place, child in enumerate(step.children)]
    return sorted([await done for done in asyncio.as_completed(children)], key=lambda pair: pair[0])


async def _race(step: Step, world: World) -> Any:
    """The child wins over slow rivals, which are cancelled."""
    child = asyncio.create_task(run_async(step.children[0], world))
    rivals = [asyncio.create_task(world.look_up_for_ever(step.value)) for _ in step.children[1:]]
    done, pending = await asyncio.wait([*rivals, child], return_when=asyncio.FIRST_COMPLETED)
    for task in pending:
        task.cancel()
    await asyncio.gather(*pending, return_exceptions=True)
    return [child in done, len(done), child.result()]


async def _give_up(step: Step, world: World) -> Any:
    try:
        async with asyncio.timeout(GIVE_UP_S):
            return await world.look_up_slowly(step.value)
    except TimeoutError:
        return "gave up"


async def _locked(step: Step, world: World) -> Any:
    assert world.lock is not None
    async with world.lock:
        return await world.look_up(step.value)


async def _in_thread(step: Step, world: World) -> Any:
    return await asyncio.to_thread(run_sync, Step("sequence", 0, step.children), world)


async def _in_executor(step: Step, world: World) -> Any:
    with ThreadPoolExecutor(3) as pool:
        loop = asyncio.get_running_loop()
        jobs = [loop.run_in_executor(pool, run_sync, child, world) for child in step.children]
        return await asyncio.gather(*jobs)


_ASYNC: dict[str, Callable[[Step, World], Any]] = {
    "sequence": _sequence,
    "call": _call,
    "call_at_once": _call_at_once,
    "blocking_call": _blocking_call,
    "failing_call": _failing_call,
    "gather": _gather,
    "group": _group,
    "as_completed": _as_completed,
    "race": _race,
    "give_up": _give_up,
    "locked": _locked,
    "in_thread": _in_thread,
    "in_executor": _in_executor,
}


def _sync_sequence(step: Step, world: World) -> Any:
    return [run_sync(child, world) for child in step.children]


def _sync_call(step: Step, world: World) -> Any:
    return world.compute(step.value)


def _sync_failing(step: Step, world: World) -> Any:
    try:
        return world.fail(step.value)
    except KeyError as error:
        return repr(error)


def _sync_locked(step: Step, world: World) -> Any:
    with world.thread_lock:
        return world.compute(step.value)


def _sync_pool(step: Step, world: World) -> Any:
    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(lambda child: run_sync(child, world), step.children))


def _sync_threads(step: Step, world: World) -> Any:
    results: dict[int, Any] = {}
    threads = [
        threading.Thread(
            target=lambda place, child: results.update({place: run_sync(child, world)}), args=pair
        )
        for pair in enumerate(step.children)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return [results[place] for place in range(len(threads))]


_SYNC: dict[str, Callable[[Step, World], Any]] = {
    "sequence": _sync_sequence,
    "blocking_call": _sync_call,
    "failing_call": _sync_failing,
    "thread_locked": _sync_locked,
    "pool": _sync_pool,
    "threads": _sync_threads,
}

_values = st.integers(0, 2)
_sync_leaves = st.builds(Step, st.sampled_from(("blocking_call", "failing_call", "thread_locked")), _values)
sync_steps: st.SearchStrategy[Step] = st.recursive(
    _sync_leaves,
    lambda inner: st.builds(
        Step,
        st.sampled_from(("sequence", "pool", "threads")),
        _values,
        st.lists(inner, min_size=1, max_size=3).map(tuple),
    ),
    max_leaves=5,
)
_async_leaves = st.builds(
    Step,
    st.sampled_from(
        ("call", "call", "call", "call_at_once", "blocking_call", "failing_call", "give_up", "locked")
    ),
    _values,
) | st.builds(
    Step,
    st.sampled_from(("in_thread", "in_executor")),
    _values,
    st.lists(sync_steps, min_size=1, max_size=2).map(tuple),
)
async_steps: st.SearchStrategy[Step] = st.recursive(
    _async_leaves,
    lambda inner: st.builds(
        Step,
        st.sampled_from(("sequence", "gather", "group", "as_completed", "race")),
        _values,
        st.lists(inner, min_size=1, max_size=4).map(tuple),
    ),
    max_leaves=12,
)


class ShufflingLoop(asyncio.SelectorEventLoop):
    """Runs what is due in random order: another legal schedule of the same program."""

    rng = random.Random(0)

    def _run_once(self) -> None:
        ready: deque[asyncio.Handle] = self._ready  # type: ignore[attr-defined]
        # One by one, since other threads append meanwhile.
        due = [ready.popleft() for _ in range(len(ready))]
        self.rng.shuffle(due)
        ready.extendleft(due)
        super()._run_once()  # type: ignore[misc]


def run_program(step: Step, world: World, loop_factory: LoopFactory = None) -> Any:
    """Do *step* on an event loop of its own."""

    async def main() -> Any:
        world.lock = asyncio.Lock()
        return await run_async(step, world)

    with asyncio.Runner(loop_factory=loop_factory) as runner:
        return runner.run(main())

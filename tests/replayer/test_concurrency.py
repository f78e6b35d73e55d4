"""Concurrent programs replay exactly, however they are scheduled."""

from __future__ import annotations

import asyncio
import random
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import chain, pairwise
from pathlib import Path

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import reenact
from reenact.formats.capture import ToolResult
from reenact.formats.record import ABSENT
from reenact.store.reader import CaptureReader
from tests.hard import rounds
from tests.replayer.programs import ShufflingLoop, Step, World, async_steps, run_program

settings.register_profile(
    "programs",
    deadline=None,
    derandomize=False,
    max_examples=rounds(160, 1250),
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
)


@pytest.mark.parametrize("shard", range(4))
@settings(settings.get_profile("programs"))
@given(program=async_steps, seed=st.integers(0, 2**16))
def test_every_call_gets_its_own_outcome(shard: int, program: Step, seed: int) -> None:
    """A random program is recorded once and replayed under random scheduling with the same result."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run"
        world = World(random.Random(seed))
        with reenact.capture(path):
            recorded = run_program(program, world)
        live_calls = world.live_calls
        ShufflingLoop.rng = random.Random(seed)
        interval = sys.getswitchinterval()
        try:
            for loop_factory in (None, ShufflingLoop):
                sys.setswitchinterval(random.Random(seed).choice((1e-5, 1e-3, interval)))
                with reenact.replay(path, stall_s=5):
                    replayed = run_program(program, world, loop_factory)
                assert replayed == recorded
                assert world.live_calls == live_calls
        finally:
            sys.setswitchinterval(interval)


@dataclass(frozen=True)
class Timed:
    """A call that takes its own time, reached through so many tasks, on the loop or in a thread."""

    delay_ms: int
    depth: int
    in_thread: bool


@st.composite
def timed_calls(draw: st.DrawFn) -> list[Timed]:
    """Calls whose outcomes come at least a few loop ticks apart."""
    delays = draw(st.permutations([6 * step for step in range(1, draw(st.integers(2, 6)) + 1)]))
    return [Timed(delay, draw(st.integers(0, 3)), draw(st.booleans())) for delay in delays]


async def completion_order(calls: list[Timed], world: World) -> list[int]:
    async def reach(place: int, call: Timed, depth: int) -> int:
        if depth:
            return await asyncio.create_task(reach(place, call, depth - 1))
        if call.in_thread:
            await asyncio.to_thread(world.compute_for, place, call.delay_ms)
        else:
            await world.look_up_after(place, call.delay_ms)
        return place

    return [await done for done in asyncio.as_completed([reach(p, c, c.depth) for p, c in enumerate(calls)])]


def _recorded_order(path: Path) -> list[int]:
    """The calls in the order of their outcomes; empty where a busy machine bunched the outcomes."""
    outcomes = [event for event in CaptureReader(path).events() if isinstance(event, ToolResult)]
    if any(later.ts - earlier.ts < 3 for earlier, later in pairwise(outcomes)):
        return []
    return [CaptureReader(path).resolve(event.data.result)["value"] for event in outcomes]


@settings(settings.get_profile("programs"), max_examples=80)
@given(calls=timed_calls(), seed=st.integers(0, 2**16))
def test_completion_order_repeats(calls: list[Timed], seed: int) -> None:
    """``as_completed`` yields in the recorded order, although nothing takes any time in replay."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run"
        world = World(random.Random(seed))
        with reenact.capture(path):
            recorded = asyncio.run(completion_order(calls, world))
        assume(_recorded_order(path) == recorded)
        for loop_factory in (None, ShufflingLoop):
            ShufflingLoop.rng = random.Random(seed)
            with reenact.replay(path) as run, asyncio.Runner(loop_factory=loop_factory) as runner:
                assert runner.run(completion_order(calls, world)) == recorded
            assert not run.notes


Lanes = list[list[int]]
_lanes = st.lists(st.lists(st.integers(0, 3), min_size=2, max_size=5), min_size=1, max_size=4)


def run_lanes(lanes: Lanes, world: World, *, in_threads: bool) -> None:
    """One task, or thread, per lane; each calls a tool with its numbers, one after the other."""

    async def on_the_loop() -> None:
        async with asyncio.TaskGroup() as group:
            for lane in lanes:
                group.create_task(calls_on_the_loop(lane))

    async def calls_on_the_loop(lane: list[int]) -> None:
        for number in lane:
            await world.look_up(number)

    def calls_in_a_thread(lane: list[int]) -> None:
        for number in lane:
            world.compute(number)

    if not in_threads:
        asyncio.run(on_the_loop())
        return
    with ThreadPoolExecutor(len(lanes)) as pool:
        for job in [pool.submit(calls_in_a_thread, lane) for lane in lanes]:
            job.result()


@st.composite
def changed_lanes(draw: st.DrawFn) -> tuple[Lanes, Lanes]:
    """Lanes, and the same with one call of one lane swapped, dropped, added or changed."""
    lanes = draw(_lanes)
    index = draw(st.integers(0, len(lanes) - 1))
    lane = list(lanes[index])
    place = draw(st.integers(0, len(lane) - 2))
    change = draw(st.sampled_from(("swap", "drop", "add", "change")))
    if change == "swap":
        lane[place], lane[place + 1] = lane[place + 1], lane[place]
    elif change == "drop":
        del lane[place]
    elif change == "add":
        lane.insert(place, draw(st.integers(0, 3)))
    else:
        lane[place] += 10
    changed = [*lanes[:index], lane, *lanes[index + 1 :]]
    # A changed lane may be what another lane is: then nothing has changed but their order.
    assume(sorted(changed) != sorted(lanes))
    return lanes, changed


@settings(settings.get_profile("programs"), max_examples=100)
@given(both=changed_lanes(), in_threads=st.booleans())
def test_a_changed_call_is_always_reported(both: tuple[Lanes, Lanes], in_threads: bool) -> None:
    """Dropping, adding or changing one call within a lane never passes.

    Nor does swapping two, unless other lanes make the same calls and each came when it might; then the
    receipt says that calls were moved.
    """
    lanes, changed = both
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run"
        world = World(random.Random(0))
        with reenact.capture(path):
            run_lanes(lanes, world, in_threads=in_threads)
        live_calls = world.live_calls
        try:
            with reenact.replay(path) as run:
                run_lanes(changed, world, in_threads=in_threads)
        except reenact.Diverged:
            assert run.divergences
        else:
            assert sorted(chain(*changed)) == sorted(chain(*lanes))
            assert run.receipt is not None
            assert run.receipt.acrossTasks is not ABSENT
        assert world.live_calls == live_calls

"""Concurrent programs replay exactly, however they are scheduled."""

from __future__ import annotations

import asyncio
import random
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import reenact
from tests.replayer.programs import ShufflingLoop, Step, World, async_steps, run_program

settings.register_profile(
    "programs",
    deadline=None,
    max_examples=500,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


@settings(settings.get_profile("programs"))
@given(program=async_steps, seed=st.integers(0, 2**16))
def test_every_call_gets_its_own_outcome(program: Step, seed: int) -> None:
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
            for shuffled in (False, True):
                sys.setswitchinterval(random.Random(seed).choice((1e-5, 1e-3, interval)))
                with reenact.replay(path, stall_s=5):
                    replayed = run_program(program, world, shuffled=shuffled)
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
            await asyncio.to_thread(world.compute_for, 0, call.delay_ms)
        else:
            await world.look_up_after(0, call.delay_ms)
        return place

    return [await done for done in asyncio.as_completed([reach(p, c, c.depth) for p, c in enumerate(calls)])]


@settings(settings.get_profile("programs"), max_examples=150)
@given(calls=timed_calls(), seed=st.integers(0, 2**16))
def test_completion_order_repeats(calls: list[Timed], seed: int) -> None:
    """``as_completed`` yields in the recorded order, although nothing takes any time in replay."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run"
        world = World(random.Random(seed))
        with reenact.capture(path):
            recorded = asyncio.run(completion_order(calls, world))
        for loop_factory in (None, ShufflingLoop):
            ShufflingLoop.rng = random.Random(seed)
            with reenact.replay(path) as run, asyncio.Runner(loop_factory=loop_factory) as runner:
                assert runner.run(completion_order(calls, world)) == recorded
            assert not run.notes

"""On trio every task gets what was recorded for it, and deadlines pass where they passed."""

from __future__ import annotations

import itertools
import random
import threading
import time
from functools import partial
from pathlib import Path
from typing import Any

import anthropic
import anyio
import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st

import reenact
from reenact.testing import ScriptedProvider, echo


@pytest.mark.parametrize("opens_outside", [True, False])
def test_parallel_tasks_get_what_they_asked_for(opens_outside: bool, tmp_path: Path) -> None:
    """In whichever order they come, and without one waiting for the other."""
    rng = random.Random(1)

    @reenact.tool
    async def double(number: int) -> float:
        await trio.sleep(rng.random() / 50)
        return number * 2 + rng.random()

    async def main() -> dict[int, float]:
        found: dict[int, float] = {}

        async def ask(number: int) -> None:
            await trio.sleep(rng.random() / 50)
            found[number] = await double(number)
            found[-number] = await double(-number)

        async with trio.open_nursery() as nursery:
            for number in range(1, 30):
                nursery.start_soon(ask, number)
        return found

    async def inside(opened: reenact.Run) -> dict[int, float]:
        async with opened:
            return await main()

    def outside(opened: reenact.Run) -> dict[int, float]:
        with opened:
            return trio.run(main)

    work = outside if opens_outside else partial(trio.run, inside)
    recorded = work(reenact.capture(tmp_path / "run"))
    for _ in range(3):
        run = reenact.replay(tmp_path / "run")
        assert work(run) == recorded
        assert not run.notes


def test_tasks_that_are_ready_together_run_in_the_same_order_again(tmp_path: Path) -> None:
    """Trio tosses a coin for the order of each batch, and with it for who gets a limited place first."""

    @reenact.tool
    async def work(number: int) -> int:
        await trio.sleep(0.001)
        return number

    async def main() -> list[int]:
        done: list[int] = []
        limit = trio.CapacityLimiter(2)

        async def ask(number: int) -> None:
            async with limit:
                done.append(await work(number))

        async with trio.open_nursery() as nursery:
            for number in range(6):
                nursery.start_soon(ask, number)
        return done

    with reenact.capture(tmp_path / "run"):
        recorded = trio.run(main)
    for _ in range(8):
        with reenact.replay(tmp_path / "run"):
            assert trio.run(main) == recorded


Tree = list["Tree"]
TREES = st.recursive(st.just([]), lambda trees: st.lists(trees, max_size=4), max_leaves=12)


@settings(deadline=None, max_examples=60)
@given(tree=TREES, seed=st.integers(0, 99), way=st.sampled_from(["start_soon", "start", "anyio"]))
def test_equal_calls_of_parallel_tasks_are_told_apart(
    tmp_path_factory: pytest.TempPathFactory, tree: Tree, seed: int, way: str
) -> None:
    """Whoever starts them, however deep: each gets its own answer although all ask the same."""
    counted = itertools.count()

    @reenact.tool
    async def draw() -> int:
        await trio.sleep(rng.random() / 1000)
        return next(counted)

    async def work(tree: Tree, path: tuple[int, ...], *, task_status: Any = trio.TASK_STATUS_IGNORED) -> None:
        task_status.started()
        await trio.sleep(rng.random() / 1000)
        drawn[path] = [await draw()]
        if way == "anyio":
            async with anyio.create_task_group() as group:
                for number, branch in enumerate(tree):
                    group.start_soon(work, branch, (*path, number))
        else:
            async with trio.open_nursery() as nursery:
                for number, branch in enumerate(tree):
                    if way == "start_soon":
                        nursery.start_soon(work, branch, (*path, number))
                    else:
                        await nursery.start(work, branch, (*path, number))
        drawn[path].append(await draw())

    folder = tmp_path_factory.mktemp("runs") / "run"
    drawn: dict[tuple[int, ...], list[int]] = {}
    rng = random.Random(seed)
    with reenact.capture(folder):
        trio.run(work, tree, ())
    recorded = drawn
    drawn, rng = {}, random.Random(seed + 1)
    with reenact.replay(folder) as run:
        trio.run(work, tree, ())
    assert drawn == recorded
    assert not run.notes


def test_nothing_of_trio_is_changed_when_the_run_is_over(tmp_path: Path) -> None:
    before = trio.run, trio.Nursery.start_soon, trio.Nursery.start
    with reenact.capture(tmp_path / "run"):
        assert trio.run is not before[0]
    assert (trio.run, trio.Nursery.start_soon, trio.Nursery.start) == before


def test_a_call_that_nobody_recorded_is_refused(tmp_path: Path) -> None:
    """As on any other loop; the server is not asked."""

    async def main(question: str) -> str:
        async with anthropic.AsyncAnthropic(base_url=url, api_key="unused", max_retries=0) as client:
            asked = [{"role": "user", "content": question}]
            answer = await client.messages.create(model="m-1", max_tokens=9, messages=asked)
            return answer.content[0].text

    with ScriptedProvider(echo()) as provider:
        url = provider.base_url("anthropic")
        with reenact.capture(tmp_path / "run"):
            assert trio.run(main, "one") == "one"
        before = provider.connections
        with reenact.replay(tmp_path / "run"):
            assert trio.run(main, "one") == "one"
        with reenact.replay(tmp_path / "run", policy="lenient") as run:
            trio.run(main, "two")
        assert provider.connections == before
    assert run.divergences[0].json_path == "$.data.request.body.messages[0].content"


class Pace:
    """How long the tool takes, and how long the agent sleeps or works by itself."""

    def __init__(self, tool_s: float, own_s: float) -> None:
        self.own_s = own_s

        @reenact.tool
        async def ask(what: Any) -> str:
            await trio.sleep(tool_s)
            return f"answer to {what}"

        self.ask = ask

    def work(self) -> None:
        """As a C library would: nobody sees it."""
        lock = threading.Lock()
        lock.acquire()
        lock.acquire(timeout=self.own_s)


async def move_on_after(pace: Pace) -> list[Any]:
    found = []
    with trio.move_on_after(0.1) as scope:
        found.append(await pace.ask(1))
        await trio.sleep(pace.own_s)
        found.append(await pace.ask(2))
    return [found, scope.cancelled_caught]


async def fail_after(pace: Pace) -> str:
    try:
        with trio.fail_after(0.1):
            await trio.sleep(pace.own_s)
            return await pace.ask(1)
    except trio.TooSlowError:
        return await pace.ask("gave up")


async def later_deadline(pace: Pace) -> bool:
    """It is set, and set again, while the scope is open."""
    with trio.CancelScope(deadline=trio.current_time() + 50) as scope:
        await pace.ask(1)
        scope.deadline = trio.current_time() + 0.1
        await trio.sleep(pace.own_s)
    return scope.cancelled_caught


async def cut_short_tool(pace: Pace) -> str:
    with trio.move_on_after(0.1):
        return await pace.ask(1)
    return "gave up"


async def overdue(pace: Pace) -> str:
    """The deadline has passed, or not, when the scope is entered."""
    deadline = trio.current_time() + 0.1
    pace.work()
    with trio.move_on_at(deadline):
        return await pace.ask(1)
    return "gave up"


async def sleepers(pace: Pace) -> list[str]:
    woken: list[str] = []

    async def sleeper(name: str, seconds: float) -> None:
        await trio.sleep(seconds)
        woken.append(name)

    delays = (0.05, 0.01, 0.03) if pace.own_s > 0.1 else (0.01, 0.05, 0.03)
    async with trio.open_nursery() as nursery:
        for each, seconds in enumerate(delays):
            nursery.start_soon(sleeper, str(each), seconds)
    return woken


async def first_one_wins(pace: Pace) -> list[str]:
    """A tool against a sleep, and whoever is first ends the other."""
    came: list[str] = []

    async def run(name: str, work: Any) -> None:
        await work()
        came.append(name)
        nursery.cancel_scope.cancel()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(run, "sleep", partial(trio.sleep, 0.1))
        nursery.start_soon(run, "tool", partial(pace.ask, 1))
    return came


async def polling(pace: Pace) -> int:
    rounds = 0
    with trio.move_on_after(pace.own_s + 0.01):
        while True:
            await trio.sleep(0.04)
            rounds += 1
    return rounds


async def anyio_scopes(pace: Pace) -> list[Any]:
    found: list[Any] = []
    with anyio.move_on_after(0.1) as scope:
        await anyio.sleep(pace.own_s)
        found.append(await pace.ask(1))
    try:
        with anyio.fail_after(0.1):
            found.append(await pace.ask(2))
    except TimeoutError:
        found.append("gave up")
    return [found, scope.cancelled_caught]


async def in_a_thread(pace: Pace) -> bool:
    with trio.move_on_after(0.1) as scope:
        await trio.to_thread.run_sync(pace.work, abandon_on_cancel=True)
    return scope.cancelled_caught


async def in_a_thread_of_anyio(pace: Pace) -> bool:
    with anyio.move_on_after(0.1) as scope:
        await anyio.to_thread.run_sync(pace.work, abandon_on_cancel=True)
    return scope.cancelled_caught


AGENTS = [
    move_on_after,
    fail_after,
    later_deadline,
    cut_short_tool,
    overdue,
    sleepers,
    first_one_wins,
    polling,
    anyio_scopes,
    in_a_thread,
    in_a_thread_of_anyio,
]
SLOW, QUICK = {"tool_s": 0.3, "own_s": 0.3}, {"tool_s": 0.01, "own_s": 0.02}


@pytest.mark.parametrize(("then", "now"), [(SLOW, QUICK), (QUICK, SLOW)], ids=["passed", "did_not_pass"])
@pytest.mark.parametrize("agent", AGENTS, ids=lambda agent: agent.__name__)
def test_a_deadline_passes_where_it_passed(
    agent: Any, then: dict[str, float], now: dict[str, float], tmp_path: Path
) -> None:
    """However long everything takes this time."""
    with reenact.capture(tmp_path / "run"):
        recorded = trio.run(agent, Pace(**then))
    with reenact.replay(tmp_path / "run") as run:
        assert trio.run(agent, Pace(**now)) == recorded
    assert not run.divergences


def test_sleeping_takes_no_time(tmp_path: Path) -> None:
    """The order in which they woke up repeats, and the clock has gone on."""

    async def main() -> list[str]:
        woken: list[str] = []

        async def sleeper(name: str, seconds: float) -> None:
            await trio.sleep(seconds)
            woken.append(name)

        began = trio.current_time()
        async with trio.open_nursery() as nursery:
            for name, seconds in (("a", 0.6), ("b", 0.2), ("c", 0.4)):
                nursery.start_soon(sleeper, name, seconds)
        assert trio.current_time() - began >= 0.6
        return woken

    with reenact.capture(tmp_path / "run"):
        assert trio.run(main) == ["b", "c", "a"]
    took_s = []
    for _ in range(5):
        began = time.monotonic()
        with reenact.replay(tmp_path / "run"):
            assert trio.run(main) == ["b", "c", "a"]
        took_s.append(time.monotonic() - began)
    assert min(took_s) < 0.5


def test_the_order_of_answers_repeats(tmp_path: Path) -> None:
    """Who asked last may be answered first, in replay too, where nothing takes any time."""

    @reenact.tool
    async def ask(seconds: float) -> float:
        await trio.sleep(seconds)
        return seconds

    async def main() -> list[float]:
        came: list[float] = []

        async def run(seconds: float) -> None:
            came.append(await ask(seconds))

        async with trio.open_nursery() as nursery:
            for seconds in (0.6, 0.2, 0.4, 0.0):
                nursery.start_soon(run, seconds)
        return came

    with reenact.capture(tmp_path / "run"):
        assert trio.run(main) == [0.0, 0.2, 0.4, 0.6]
    for _ in range(3):
        with reenact.replay(tmp_path / "run") as run:
            assert trio.run(main) == [0.0, 0.2, 0.4, 0.6]
        assert not run.notes


def test_another_result_of_a_task_is_not_the_same(tmp_path: Path) -> None:
    """What each task came to is compared, even where the run comes to nothing."""

    async def work(answer: str) -> str:
        await trio.sleep(0.001)
        return answer

    async def main(answer: str) -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(work, answer)

    with reenact.capture(tmp_path / "run"):
        trio.run(main, "one")
    with pytest.raises(reenact.Diverged, match=r"work.. returned"), reenact.replay(tmp_path / "run"):
        trio.run(main, "two")

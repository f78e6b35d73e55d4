"""On trio every task has its lane, and gets what was recorded for it, in whichever order they come."""

from __future__ import annotations

import itertools
import random
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


def test_another_result_is_not_the_same(tmp_path: Path) -> None:
    """Deadlines of trio's are not repeated, so what its run comes to is compared."""

    async def main(seconds: float) -> str:
        with trio.move_on_after(0.05):
            await trio.sleep(seconds)
            return "done"
        return "gave up"

    with reenact.capture(tmp_path / "run"):
        assert trio.run(main, 0.2) == "gave up"
    with pytest.raises(reenact.Diverged, match=r"main.. returned"), reenact.replay(tmp_path / "run"):
        trio.run(main, 0.01)

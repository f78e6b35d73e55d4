"""On trio, whose tasks are not told apart: by content, every call gets what was recorded for it."""

from __future__ import annotations

import random
from functools import partial
from pathlib import Path

import anthropic
import pytest
import trio

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

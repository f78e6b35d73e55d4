"""A call is found wherever its task sits: tasks more or less above it, other workers, other threads."""

from __future__ import annotations

import _thread
import asyncio
import itertools
import queue
import select
import threading
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import reenact
from reenact.formats.record import ABSENT

_numbers = itertools.count(1)


@reenact.tool
async def ask(what: str) -> str:
    await asyncio.sleep(0)
    return f"{what} {next(_numbers)}"


@reenact.tool
def ask_now(what: str) -> str:
    return f"{what} {next(_numbers)}"


async def worker(name: int) -> str:
    """Begins like all the others; what it asks then depends on what it was told."""
    drawn = await ask("begin")
    return await ask(f"{name}: {drawn}")


async def plain() -> list[str]:
    return await asyncio.gather(*(worker(name) for name in range(4)))


async def wrapped_each() -> list[str]:
    async def wrap(name: int) -> str:
        return await asyncio.create_task(worker(name))

    return await asyncio.gather(*(wrap(name) for name in range(4)))


async def wrapped_all() -> list[str]:
    return await asyncio.create_task(plain())


async def wrapped_twice() -> list[str]:
    return await asyncio.create_task(wrapped_all())


async def beside_a_silent_task() -> list[str]:
    silent = asyncio.create_task(asyncio.sleep(0))
    found = await asyncio.create_task(plain())
    await silent
    return found


SHAPES = [plain, wrapped_each, wrapped_all, wrapped_twice, beside_a_silent_task]
SAME_NAMES_FOR_OTHERS = [(wrapped_each, beside_a_silent_task), (beside_a_silent_task, wrapped_each)]
"""Where a task that begins alike stands in the very place of another, nothing tells them apart."""


@pytest.mark.parametrize(
    ("recorded", "replayed"),
    [pair for pair in itertools.product(SHAPES, SHAPES) if pair not in SAME_NAMES_FOR_OTHERS],
)
def test_tasks_around_tasks_change_nothing(
    recorded: Callable[[], Awaitable[list[str]]],
    replayed: Callable[[], Awaitable[list[str]]],
    tmp_path: Path,
) -> None:
    """Each task gets its own outcomes, although all begin alike, and the receipt says what was moved."""
    with reenact.capture(tmp_path / "run"):
        expected = asyncio.run(recorded())  # type: ignore[arg-type]
    with reenact.replay(tmp_path / "run") as run:
        assert asyncio.run(replayed()) == expected  # type: ignore[arg-type]
    assert run.receipt is not None
    assert not run.divergences
    assert (run.receipt.acrossTasks is ABSENT) == (recorded is replayed)


def with_clock(run: Any, name: int) -> str:
    return ask_now(f"{name} at {run.clock.now()} and {run.rng.random()}")


def in_pool(run: Any) -> list[str]:
    with ThreadPoolExecutor(3) as pool:
        return list(pool.map(lambda name: with_clock(run, name), range(6)))


def in_threads(run: Any) -> list[str]:
    """One thread more than the pool has: an event bus, say, that hands on to the pool."""
    found: list[str] = []
    thread = threading.Thread(target=lambda: found.extend(in_pool(run)))
    thread.start()
    thread.join()
    return found


@pytest.mark.parametrize("recorded", [in_pool, in_threads])
@pytest.mark.parametrize("replayed", [in_pool, in_threads])
def test_clocks_and_chance_follow_their_lane(
    recorded: Callable[[Any], list[str]], replayed: Callable[[Any], list[str]], tmp_path: Path
) -> None:
    """Every lane reads the clock first, and none gets the time of another."""
    with reenact.capture(tmp_path / "run") as run:
        expected = recorded(run)
    with reenact.replay(tmp_path / "run") as run:
        assert replayed(run) == expected


def by_workers(count: int, jobs: int) -> list[str]:
    """Workers of the agent's own, which take the next job from a queue."""
    todo: queue.Queue[int] = queue.Queue()
    found: dict[int, str] = {}
    for number in range(jobs):
        todo.put(number)

    def work() -> None:
        while True:
            try:
                number = todo.get_nowait()
            except queue.Empty:
                return
            found[number] = ask_now(f"again, {ask_now(f'job {number}')}")

    threads = [threading.Thread(target=work) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return [found[number] for number in range(jobs)]


@pytest.mark.parametrize(("recorded", "replayed"), [(3, 3), (1, 3), (3, 1), (2, 5)])
def test_workers_may_take_each_others_jobs(recorded: int, replayed: int, tmp_path: Path) -> None:
    """Also where there are more of them, or fewer."""
    with reenact.capture(tmp_path / "run"):
        expected = by_workers(recorded, 12)
    with reenact.replay(tmp_path / "run"):
        assert by_workers(replayed, 12) == expected


def test_who_shares_a_task_waits_for_the_other(tmp_path: Path) -> None:
    """Two workers make the calls of one: the faster is not refused for what the slower has still to make."""
    with reenact.capture(tmp_path / "run"):
        expected = [ask_now(f"job {number}") for number in range(4)]
    first_asked, second_asked = threading.Event(), threading.Event()
    found: dict[int, str] = {}

    def slower() -> None:
        first_asked.wait(5)
        found[1] = ask_now("job 1")
        second_asked.set()
        time.sleep(0.05)
        found[2] = ask_now("job 2")

    with reenact.replay(tmp_path / "run"):
        thread = threading.Thread(target=slower)
        thread.start()
        found[0] = ask_now("job 0")
        first_asked.set()
        second_asked.wait(5)
        found[3] = ask_now("job 3")
        thread.join()
    assert [found[number] for number in range(4)] == expected


def test_a_call_that_comes_too_early_for_good_is_named(tmp_path: Path) -> None:
    """What is in its way in the other task is named, not that it differs at no place."""
    with reenact.capture(tmp_path / "run"):
        thread = threading.Thread(target=lambda: [ask_now("a"), ask_now("b")])
        thread.start()
        thread.join()
    with pytest.raises(reenact.Diverged) as caught, reenact.replay(tmp_path / "run"):
        ask_now("b")
    assert str(caught.value) == (
        "event_unexpected: event 4: tool ask_now was called, but the same call was recorded in another task "
        "(event 4), behind event 2 (tool ask_now), which was not made"
    )


def test_a_call_made_twice_is_one_too_many(tmp_path: Path) -> None:
    """What was made already is nobody else's."""
    with reenact.capture(tmp_path / "run"):
        ask_now("a")
    with pytest.raises(reenact.Diverged) as caught, reenact.replay(tmp_path / "run"):
        ask_now("a")
        with ThreadPoolExecutor(1) as pool:
            pool.submit(ask_now, "a").result()
    assert "has no further call here" in str(caught.value)
    assert caught.value.divergence is not None
    assert "the same call, recorded in another task, already taken" in caught.value.divergence.explain()


def test_a_server_takes_its_requests_in_another_order(tmp_path: Path) -> None:
    """It takes the next request only when a task has ended whose turn was after the call of a later one."""
    said: list[int] = []

    @reenact.tool
    async def answer(request: int) -> int:
        await asyncio.sleep(0.1 + 0.02 * request)
        return request

    async def receive(pause_s: float = 0.02) -> None:
        """Wait for what a library in C reads, which no seam sees."""
        loop = asyncio.get_running_loop()
        came = loop.create_future()

        def let_come() -> None:
            select.select([], [], [], pause_s)
            loop.call_soon_threadsafe(came.set_result, None)

        _thread.start_new_thread(let_come, ())
        await came

    async def handle(request: int, pause_s: float) -> None:
        await receive(pause_s)
        said.append(await answer(request))

    async def serve(requests: list[int], pause_s: float = 0.02) -> None:
        async def take() -> int:
            await receive()
            await receive()
            return requests.pop(0)

        handlers = []
        while requests:
            handlers.append(asyncio.create_task(handle(await asyncio.create_task(take()), pause_s)))
        await asyncio.gather(*handlers)

    with reenact.capture(tmp_path / "run"):
        asyncio.run(serve([0, 1, 2]))
    recorded = list(said)
    for order in ([1, 2, 0], [2, 1, 0]):
        said.clear()
        with reenact.replay(tmp_path / "run"):
            asyncio.run(serve(order, 0.12))
        assert said == recorded

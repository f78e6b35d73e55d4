"""What threads hand to an event loop that is busy reaches it in the recorded order."""

from __future__ import annotations

import asyncio
import concurrent.futures
import gc
import select
import threading
import time
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import anyio.to_thread
import pytest

import reenact
from reenact.boundary import watch_rounds
from tests.twice import captured, replayed

_COUNTED_ROUNDS = 40
"""A recording counts no more rounds than about so many."""


@reenact.tool
async def stream_at_once(count: int) -> AsyncIterator[int]:
    """A stream whose pieces are all there when the first one is."""
    await asyncio.sleep(0.005)
    for number in range(count):
        yield number


def test_pieces_that_arrived_together_are_read_together(tmp_path: Path) -> None:
    """No other task runs between two pieces if none ran there in the recording."""

    async def agent(_: reenact.Run) -> list[str]:
        seen: list[str] = []

        async def note(number: int) -> None:
            seen.append(f"note {number}")

        tasks = []
        async for number in stream_at_once(4):
            seen.append(f"piece {number}")
            tasks.append(asyncio.create_task(note(number)))
        await asyncio.gather(*tasks)
        return seen

    first = captured(tmp_path / "run", agent)
    assert first[:4] == ["piece 0", "piece 1", "piece 2", "piece 3"]
    assert replayed(tmp_path / "run", agent) == first


def test_pieces_that_arrived_one_by_one_are_read_one_by_one(tmp_path: Path) -> None:
    """Other tasks run between two pieces if they ran there in the recording."""

    @reenact.tool
    async def stream_slowly(count: int) -> AsyncIterator[int]:
        for number in range(count):
            await asyncio.sleep(0.003)
            yield number

    async def agent(_: reenact.Run) -> list[str]:
        seen: list[str] = []

        async def note(number: int) -> None:
            seen.append(f"note {number}")

        tasks = []
        async for number in stream_slowly(3):
            seen.append(f"piece {number}")
            tasks.append(asyncio.create_task(note(number)))
        await asyncio.gather(*tasks)
        return seen

    first = captured(tmp_path / "run", agent)
    assert first == ["piece 0", "note 0", "piece 1", "note 1", "piece 2", "note 2"]
    assert replayed(tmp_path / "run", agent) == first


def test_generators_that_are_left_to_the_collector_are_not_awaited(tmp_path: Path) -> None:
    """A library below the seams may leave one behind in the recorded run that a replay never makes."""
    is_recording = [True]

    async def numbers() -> AsyncIterator[int]:
        try:
            yield 1
            yield 2
        finally:
            await asyncio.sleep(0)

    @reenact.tool
    async def ask(number: int) -> int:
        await asyncio.sleep(0)
        return number

    async def agent(_: reenact.Run) -> list[int]:
        found = [await ask(0)]
        for number in range(12):
            if is_recording[0]:
                left: Any = numbers()
                await anext(left)
                del left
                gc.collect()
            await asyncio.gather(ask(number), ask(number + 1))
            found.append(number)
        return found

    first = captured(tmp_path / "run", agent)
    is_recording[0] = False
    began_s = time.monotonic()
    assert replayed(tmp_path / "run", agent) == first
    order = (tmp_path / "run" / "events.jsonl").read_text()
    assert "async_generator_athrow" not in order
    assert time.monotonic() - began_s < 30


def test_a_loop_does_not_run_ahead_of_a_thread(tmp_path: Path) -> None:
    """What a job hands to a loop that is busy reaches it about as many rounds later as when recorded."""
    seen: list[int] = []
    rounds = 0

    async def spin() -> None:
        nonlocal rounds
        for rounds in range(600):  # noqa: B007 — the others look at it
            await asyncio.sleep(0)

    async def agent(_: reenact.Run) -> None:
        await asyncio.to_thread(int)
        async for _piece in stream_at_once(2):
            pass
        spinning = asyncio.create_task(spin())
        await asyncio.to_thread(int)
        seen.append(rounds)
        await spinning

    for number in range(8):
        seen.clear()
        captured(tmp_path / f"run{number}", agent)
        replayed(tmp_path / f"run{number}", agent)
        recorded, replay = seen
        if recorded < _COUNTED_ROUNDS:
            assert abs(replay - recorded) <= 3


def test_a_job_ends_when_the_thread_that_the_last_end_woke_is_at_rest(tmp_path: Path) -> None:
    """Who waits for the first job goes on before who waits for the second, however long it computes."""

    def agent(pauses_s: tuple[float, ...], compute: int) -> list[int]:
        found: list[int] = []
        is_over = threading.Event()

        def work(number: int) -> None:
            threading.Event().wait(pauses_s[number])

        def follow(number: int) -> None:
            jobs[number].result()
            sum(range(compute * (2 - number)))
            found.append(number)
            is_over.wait()

        with ThreadPoolExecutor(3) as pool:
            jobs = [pool.submit(work, number) for number in range(3)]
            followers = [threading.Thread(target=follow, args=(number,)) for number in range(3)]
            for follower in followers:
                follower.start()
        while len(found) < 3:
            time.sleep(0.001)
        is_over.set()
        for follower in followers:
            follower.join()
        return found

    first = captured(tmp_path / "run", lambda _: agent((0.03, 0.09, 0.15), 0))
    assert first == [0, 1, 2]
    assert replayed(tmp_path / "run", lambda _: agent((0.0, 0.0, 0.0), 100_000)) == first


def test_a_piece_that_came_while_the_loop_was_busy_does_not_wait_for_rest(tmp_path: Path) -> None:
    """Other tasks do not finish all that they can do before the piece is read."""

    @reenact.tool
    async def stream_in_rounds(name: str) -> AsyncIterator[str]:
        await asyncio.sleep(0.005)
        for number in range(5):
            yield f"{name}{number}"
            await asyncio.sleep(0)

    seen: list[str] = []

    async def tick() -> None:
        for number in range(60):
            seen.append(f"tick {number}")
            await asyncio.sleep(0)

    async def read(name: str) -> None:
        async for piece in stream_in_rounds(name):
            if piece == "b1":
                ticking.append(asyncio.create_task(tick()))
            seen.append(piece)

    async def agent(_: reenact.Run) -> None:
        await asyncio.gather(read("a"), read("b"))
        await ticking.pop()

    ticking: list[asyncio.Task[None]] = []
    for run in (captured, replayed):
        seen.clear()
        run(tmp_path / "run", agent)
        assert max(seen.index("a4"), seen.index("b4")) < seen.index("tick 40")


def test_what_a_thread_hands_over_comes_in_the_same_round(tmp_path: Path) -> None:
    """Counted from the end of a stream; within the round, others may run before it or after it."""

    @reenact.tool
    async def stream_to_its_end(count: int) -> AsyncIterator[int]:
        for number in range(count):
            yield number
        for _ in range(count):  # the end of a real stream comes in later than its last piece
            await asyncio.sleep(0)

    rounds = 0
    found: list[int] = []

    async def spin() -> None:
        nonlocal rounds
        for rounds in range(_COUNTED_ROUNDS):  # noqa: B007 — the others look at it
            select.select([], [], [], 0.0005)  # lets the threads run
            await asyncio.sleep(0)

    async def agent(_: reenact.Run) -> None:
        nonlocal rounds
        rounds = 0
        await asyncio.to_thread(int)
        async for _piece in stream_to_its_end(3):
            pass
        spinning = asyncio.create_task(spin())
        for _number in range(6):
            await asyncio.to_thread(int)
            found.append(rounds)
        await spinning

    compared = 0
    for number in range(10):
        found.clear()
        captured(tmp_path / f"run{number}", agent)
        recorded = list(found)
        found.clear()
        replayed(tmp_path / f"run{number}", agent)
        in_time = [each for each in recorded if each < _COUNTED_ROUNDS - 1]
        late_by = [live - each for live, each in zip(found, in_time, strict=False)]
        assert all(abs(each) <= 1 for each in late_by)
        compared += len(late_by)
    assert compared


@pytest.mark.parametrize("is_at_rest", [True, False])
def test_answers_that_came_together_after_a_callback_keep_their_order(
    is_at_rest: bool, tmp_path: Path
) -> None:
    """The first of them is not overtaken by the others, nor all by what the callback has woken after them."""
    found: list[object] = []

    async def agent(_: reenact.Run) -> None:
        loop = asyncio.get_running_loop()
        gates = [loop.create_future() for _ in range(3)]
        all_found, bell = asyncio.Event(), asyncio.Event()

        @reenact.tool
        async def ask(number: int) -> int:
            await gates[number]
            return number

        async def note(number: int) -> None:
            found.append(await ask(number))
            await all_found.wait()

        async def listen() -> None:
            await bell.wait()
            found.append("bell")
            all_found.set()

        def open_gates() -> None:
            for number in (2, 0, 1):
                gates[number].set_result(None)
            bell.set()

        def hand_over() -> None:
            if is_at_rest:
                select.select([], [], [], 0.02)  # meanwhile the loop comes to rest
            loop.call_soon_threadsafe(open_gates)

        tasks = [asyncio.create_task(note(number)) for number in range(3)]
        tasks.append(asyncio.create_task(listen()))
        await asyncio.sleep(0.01)
        threading.Thread(target=hand_over).start()
        await asyncio.gather(*tasks)

    for run in (captured, replayed):
        found.clear()
        run(tmp_path / "run", agent)
        assert found == [2, 0, 1, "bell"]


@pytest.mark.parametrize("is_quicker", [True, False])
def test_an_answer_with_a_timer_keeps_its_place_behind_a_callback_of_a_thread(
    is_quicker: bool, tmp_path: Path
) -> None:
    """Its task goes on before the one that the timer wakes, also where the thread *is_quicker* now."""
    found: list[str] = []

    async def agent(_: reenact.Run) -> None:
        loop = asyncio.get_running_loop()
        gate = loop.create_future()

        @reenact.tool
        async def ask() -> str:
            await gate
            return "answer"

        async def note() -> None:
            found.append(await ask())

        async def nap() -> None:
            await asyncio.sleep(0.02)
            found.append("nap")

        def hand_over() -> None:
            thread = threading.Thread(target=loop.call_soon_threadsafe, args=[found.append, "handed"])
            thread.start()
            thread.join()

        def end_the_nap() -> None:
            """In the round in which the nap is over."""
            if not is_replay or not is_quicker:
                hand_over()
            if not gate.done():
                gate.set_result(None)

        tasks = [asyncio.create_task(note()), asyncio.create_task(nap())]
        if is_replay and is_quicker:
            loop.call_soon(hand_over)
        await asyncio.sleep(0)
        select.select([], [], [], 0.03)
        loop.call_soon(end_the_nap)
        await asyncio.gather(*tasks)

    is_replay = False
    captured(tmp_path / "run", agent)
    assert found == (recorded := ["handed", "answer", "nap"])
    is_replay = True
    found = []
    replayed(tmp_path / "run", agent)
    assert [each for each in found if is_quicker or each != "handed"] == recorded[not is_quicker :]


def test_answers_between_timers_of_one_round_keep_their_place(tmp_path: Path) -> None:
    """A loop that was blocked finds several of both due at once, and handles them by their times."""

    @reenact.tool
    async def ask(number: int) -> int:
        await asyncio.sleep(number / 1000)
        return number

    async def agent(_: reenact.Run) -> list[object]:
        found: list[object] = []

        async def note(number: int) -> None:
            found.append(await ask(number))

        async def nap(number: int) -> None:
            await asyncio.sleep(number / 1000)
            found.append(f"nap {number}")

        tasks = [
            asyncio.create_task((nap if number % 3 else note)(number)) for number in (8, 3, 1, 9, 6, 4, 2)
        ]
        await asyncio.sleep(0)
        select.select([], [], [], 0.03)
        await asyncio.gather(*tasks)
        return found

    for run in range(3):
        first = captured(tmp_path / f"run{run}", agent)
        assert replayed(tmp_path / f"run{run}", agent) == first


def test_a_wait_for_some_jobs_finds_as_many_as_then(tmp_path: Path) -> None:
    """Also where the waiting thread, or some of the jobs, are quicker or slower now."""

    @reenact.tool
    def ask(number: int) -> int:
        return number

    def agent(_: reenact.Run) -> list[list[int]]:
        found = []
        with ThreadPoolExecutor(4) as pool:
            left = {pool.submit(ask, number) for number in range(4)}
            while left:
                if not is_replay:
                    select.select([], [], [], 0.02)
                done, left = concurrent.futures.wait(left, None, "FIRST_COMPLETED")
                found.append(sorted(job.result() for job in done))
        return found

    is_replay = False
    first = captured(tmp_path / "run", agent)
    is_replay = True
    for _ in range(3):
        assert replayed(tmp_path / "run", agent) == first


def test_what_a_thread_of_anyio_reports_keeps_its_place(tmp_path: Path) -> None:
    """Its task goes on before that of an answer which came in with it."""

    @reenact.tool
    async def ask() -> str:
        await asyncio.sleep(0.01)
        return "answer"

    async def agent(_: reenact.Run) -> list[str]:
        found: list[str] = []

        async def note() -> None:
            found.append(await ask())

        async def report() -> None:
            await anyio.to_thread.run_sync(int)
            found.append("thread")

        tasks = [asyncio.create_task(note()), asyncio.create_task(report())]
        for _round in range(3):  # the thread is started
            await asyncio.sleep(0)
        select.select([], [], [], 0.03)
        await asyncio.gather(*tasks)
        return found

    first = captured(tmp_path / "run", agent)
    assert first == ["thread", "answer"]
    assert replayed(tmp_path / "run", agent) == first


def test_a_loop_that_is_watched_runs_as_its_class_does_now() -> None:
    """nest_asyncio changes the class of a running loop, so that it can run inside itself."""

    class Loop(asyncio.SelectorEventLoop):
        pass

    def run_once(loop: Any) -> None:
        rounds.append("changed")
        asyncio.SelectorEventLoop._run_once(loop)  # type: ignore[attr-defined]

    rounds: list[str] = []
    loop = Loop()
    stop = watch_rounds(loop, lambda: rounds.append("watched"))
    assert stop is not None
    Loop._run_once = run_once  # type: ignore[attr-defined]
    loop.run_until_complete(asyncio.sleep(0))
    assert rounds[:2] == ["watched", "changed"]
    stop()
    rounds.clear()
    loop.run_until_complete(asyncio.sleep(0))
    loop.close()
    assert set(rounds) == {"changed"}

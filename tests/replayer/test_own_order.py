"""The order in which the agent's own tasks finish, and hand on what they have, is part of a recording."""

from __future__ import annotations

import _thread
import asyncio
import inspect
import itertools
import json
import os
import queue
import select
import threading
import time
from collections.abc import AsyncIterator, Callable
from concurrent.futures import Future, ThreadPoolExecutor, as_completed, wait
from multiprocessing.pool import ThreadPool
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pytest

import reenact
from reenact.replayer.waiters import EndingInTurn
from reenact.store.reader import CaptureReader
from tests.twice import captured, replayed


@reenact.tool
def ask(what: Any) -> str:
    return f"answer to {what}"


@reenact.tool
async def ask_async(what: Any) -> str:
    await asyncio.sleep(0)
    return f"answer to {what}"


class Pace:
    """How long each worker takes for its own work: of no use in replay, where it is another one."""

    def __init__(self, *delays_ms: int) -> None:
        self.delays_ms = delays_ms

    def work(self, worker: int) -> None:
        threading.Event().wait(self.delays_ms[worker] / 1000)  # replay does not sleep


SLOWING, HASTENING = Pace(0, 15, 30, 45), Pace(45, 30, 15, 0)


def threads_into_a_queue(pace: Pace) -> list[str]:
    done: queue.Queue[str] = queue.Queue()

    def work(worker: int) -> None:
        answer = ask(worker)
        pace.work(worker)
        done.put(answer)

    threads = [threading.Thread(target=work, args=(worker,)) for worker in range(4)]
    for thread in threads:
        thread.start()
    return [done.get() for _ in threads]


def silent_threads_into_a_queue(pace: Pace) -> list[int]:
    """Nothing that they do is a call."""
    done: queue.PriorityQueue[int] = queue.PriorityQueue()
    found = []

    def work(worker: int) -> None:
        pace.work(worker)
        done.put(worker)

    ask("first")
    threads = [threading.Thread(target=work, args=(worker,)) for worker in range(4)]
    for thread in threads:
        thread.start()
    for _ in threads:
        found.append(done.get())
        ask(f"got {found}")
    return found


def jobs_as_completed(pace: Pace) -> list[int]:
    def work(worker: int) -> int:
        ask(worker)
        pace.work(worker)
        return worker

    with ThreadPoolExecutor(4) as pool:
        return [job.result() for job in as_completed([pool.submit(work, worker) for worker in range(4)])]


def jobs_that_are_over(pace: Pace) -> list[int]:
    """All have ended before anybody looks."""
    ask("first")
    with ThreadPoolExecutor(4) as pool:
        jobs = [pool.submit(lambda worker=worker: [pace.work(worker), worker]) for worker in range(4)]
        wait(jobs)
        return [job.result()[1] for job in as_completed(jobs)]


def threads_into_a_list(pace: Pace) -> list[int]:
    """Nobody sees the list, but a thread that gets its answer later comes later."""
    found: list[int] = []

    def work(worker: int) -> None:
        pace.work(worker)
        ask(worker)
        found.append(worker)

    threads = [threading.Thread(target=work, args=(worker,)) for worker in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


def tasks_into_a_queue(pace: Pace) -> list[str]:
    async def main() -> list[str]:
        done: asyncio.Queue[str] = asyncio.Queue()

        async def work(worker: int) -> None:
            await asyncio.to_thread(pace.work, worker)
            await done.put(await ask_async(worker))

        tasks = [asyncio.create_task(work(worker)) for worker in range(4)]
        found = [await done.get() for _ in tasks]
        await asyncio.gather(*tasks)
        return found

    return asyncio.run(main())


def jobs_of_anyio_into_a_list(pace: Pace) -> list[int]:
    """As an endpoint of Starlette's runs that is not async."""
    found: list[int] = []

    def work(worker: int) -> None:
        ask(worker)
        pace.work(worker)
        found.append(worker)

    async def main() -> None:
        async with anyio.create_task_group() as group:
            for worker in range(4):
                group.start_soon(anyio.to_thread.run_sync, work, worker)

    anyio.run(main)
    return found


def threads_into_a_loop(pace: Pace) -> list[str]:
    async def main() -> list[str]:
        loop = asyncio.get_running_loop()
        done: asyncio.Queue[str] = asyncio.Queue()

        def work(worker: int) -> None:
            answer = ask(worker)
            pace.work(worker)
            loop.call_soon_threadsafe(done.put_nowait, answer)

        threads = [threading.Thread(target=work, args=(worker,)) for worker in range(4)]
        for thread in threads:
            thread.start()
        return [await done.get() for _ in threads]

    return asyncio.run(main())


def loops_into_a_loop(pace: Pace) -> list[int]:
    """Each thread has an event loop of its own, as LangChain runs callbacks in."""

    async def main() -> list[int]:
        loop = asyncio.get_running_loop()
        done: asyncio.Queue[int] = asyncio.Queue()

        async def hand_over(worker: int) -> None:
            loop.call_soon_threadsafe(done.put_nowait, worker)

        def work(worker: int) -> None:
            time.sleep(pace.delays_ms[worker] / 1000)  # unseen: the clock is not recorded here
            asyncio.run(hand_over(worker))
            asyncio.run(hand_over(worker + 10))

        await ask_async("first")
        threads = [threading.Thread(target=work, args=(worker,)) for worker in range(4)]
        for thread in threads:
            thread.start()
        return [await done.get() for _ in range(8)]

    return asyncio.run(main())


def tasks_in_a_set(pace: Pace) -> list[str]:
    """What is over when somebody looks is in a set, which has an order by chance."""

    async def work(worker: int) -> str:
        answer = await ask_async(worker)
        await asyncio.to_thread(pace.work, worker % 4)
        return answer

    async def main() -> list[str]:
        done, _ = await asyncio.wait([asyncio.create_task(work(worker)) for worker in range(12)])
        first = done.pop().result()
        return [first, *(task.result() for task in done)]

    return asyncio.run(main())


def jobs_in_a_set(pace: Pace) -> list[str]:
    def work(worker: int) -> str:
        answer = ask(worker)
        pace.work(worker % 4)
        return answer

    with ThreadPoolExecutor(12) as pool:
        done, _ = wait([pool.submit(work, worker) for worker in range(12)])
        return [job.result() for job in done]


def jobs_of_a_thread_pool_as_they_come(pace: Pace) -> list[int]:
    def work(worker: int) -> int:
        ask(worker)
        pace.work(worker)
        return worker

    with ThreadPool(4) as pool:
        return list(pool.imap_unordered(work, range(4)))


def jobs_of_a_thread_pool_call_back(pace: Pace) -> list[str]:
    """Each result has another one asked for, as joblib gives its jobs."""
    found: list[str] = []
    everything = threading.Event()

    def work(worker: int) -> str:
        answer = ask(worker)
        pace.work(worker % 4)
        return answer

    def took(answer: str) -> None:
        found.append(answer)
        if len(found) <= 4:
            pool.apply_async(work, (3 + len(found),), callback=took)
        elif len(found) == 8:
            everything.set()

    with ThreadPool(4) as pool:
        for worker in range(4):
            pool.apply_async(work, (worker,), callback=took)
        everything.wait(20)
    return found


def threads_into_a_simple_queue(pace: Pace) -> list[int]:
    """Nothing that they do is a call."""
    done: queue.SimpleQueue[int] = queue.SimpleQueue()

    def work(worker: int) -> None:
        pace.work(worker)
        done.put(worker)

    ask("first")
    threads = [threading.Thread(target=work, args=(worker,)) for worker in range(4)]
    for thread in threads:
        thread.start()
    return [done.get() for _ in threads]


def threads_woken_by_futures(pace: Pace) -> list[int]:
    """As threads that wait for tasks of an event loop in another thread."""
    found: list[int] = []
    futures: list[Future[int]] = [Future() for _ in pace.delays_ms]

    def work(worker: int) -> None:
        found.append(futures[worker].result())

    ask("first")
    threads = [threading.Thread(target=work, args=(worker,)) for worker in range(4)]
    for thread in threads:
        thread.start()
    for worker in sorted(range(4), key=pace.delays_ms.__getitem__):
        unseen = _thread.allocate_lock()  # waiting for it is no part of the recording
        unseen.acquire()
        unseen.acquire(timeout=0.02)
        futures[worker].set_result(worker)
    for thread in threads:
        thread.join()
    return found


def tasks_and_jobs_in_sets_of_the_program(pace: Pace) -> list[list[int]]:
    """As a workflow engine goes through its running tasks to find one that is done."""

    async def wait_for(event: asyncio.Event) -> None:
        await event.wait()

    async def main() -> list[list[int]]:
        loop, event = asyncio.get_running_loop(), asyncio.Event()
        tasks, jobs, waits = [], [], []
        with ThreadPoolExecutor(2) as pool:
            for worker in range(12):
                tasks.append(loop.create_task(wait_for(event)))
                jobs.append(pool.submit(ask, worker))
                waits.append(loop.run_in_executor(pool, ask, worker))
                elsewhere.append(bytearray(sum(pace.delays_ms[: worker % 4]) * 10))
            found = [[each.index(one) for one in {*each}] for each in (tasks, jobs, waits)]
            _, pending = await asyncio.wait(tasks, timeout=0.01)
            event.set()
            await asyncio.gather(*tasks, *waits)
            return [*found, [tasks.index(one) for one in pending]]

    elsewhere: list[bytearray] = []  # the objects of a replay have other addresses
    return asyncio.run(main())


AGENTS = [
    tasks_and_jobs_in_sets_of_the_program,
    threads_woken_by_futures,
    jobs_of_a_thread_pool_as_they_come,
    jobs_of_a_thread_pool_call_back,
    threads_into_a_simple_queue,
    tasks_in_a_set,
    jobs_in_a_set,
    threads_into_a_queue,
    silent_threads_into_a_queue,
    jobs_as_completed,
    jobs_that_are_over,
    threads_into_a_list,
    tasks_into_a_queue,
    jobs_of_anyio_into_a_list,
    threads_into_a_loop,
    loops_into_a_loop,
]


@pytest.mark.parametrize("agent", AGENTS)
def test_what_finished_first_finishes_first_again(agent: Callable[[Pace], list[Any]], tmp_path: Path) -> None:
    """However long everything takes this time."""
    with reenact.capture(tmp_path / "run", sources=()):
        recorded = agent(SLOWING)
        ask(recorded)
    with reenact.replay(tmp_path / "run") as run:
        replayed = agent(HASTENING)
        ask(replayed)
    assert replayed == recorded
    assert not run.divergences


@reenact.tool
async def stream(name: str, pauses_ms: list[int]) -> AsyncIterator[str]:
    for number, pause_ms in enumerate(pauses_ms):
        await asyncio.sleep(pause_ms / 1000)
        yield f"{name}{number}"


def test_pieces_of_several_streams_are_read_in_the_recorded_order(tmp_path: Path) -> None:
    """Not one of each in turn, nor one stream after the other."""

    async def agent() -> list[str]:
        found: list[str] = []

        async def read(name: str, *pauses_ms: int) -> None:
            async for piece in stream(name, list(pauses_ms)):
                found.append(piece)  # noqa: PERF401 — both tasks append to it

        await asyncio.gather(read("a", 0, 20, 140, 20), read("b", 60, 20, 20, 160))
        return found

    with reenact.capture(tmp_path / "run", sources=()):
        recorded = asyncio.run(agent())
        ask(recorded)
    assert recorded == ["a0", "a1", "b0", "b1", "b2", "a2", "a3", "b3"]
    with reenact.replay(tmp_path / "run") as run:
        assert asyncio.run(agent()) == recorded
        ask(recorded)
    assert not run.notes


@pytest.mark.parametrize("helpers", [(3, 1), (1, 3)])
def test_a_library_may_start_other_tasks_of_its_own(helpers: tuple[int, int], tmp_path: Path) -> None:
    """As those that wait for the next part of a stream: how many there are depends on time alone."""

    def agent(pace: Pace, helpers: int) -> list[int]:
        def work(worker: int) -> int:
            pace.work(worker)
            return worker

        with ThreadPoolExecutor(8) as pool:
            waits = [pool.submit(threading.Event().wait, 0.001) for _ in range(helpers)]
            jobs = [pool.submit(work, worker) for worker in range(4)]
            found = [job.result() for job in as_completed(jobs)]
            wait(waits)
        return found

    with reenact.capture(tmp_path / "run", sources=()):
        ask("first")
        recorded = agent(SLOWING, helpers[0])
        ask(recorded)
    with reenact.replay(tmp_path / "run"):
        ask("first")
        assert agent(HASTENING, helpers[1]) == recorded
        ask(recorded)


def test_threads_that_no_seam_saw_start_are_known_apart(tmp_path: Path) -> None:
    """As those of a C library, or gevent's: all are in one lane, in no known order."""

    def agent(pace: Pace, compute: int) -> list[int]:
        found: list[int] = []
        todo = list(range(12))
        are_over = [threading.Lock() for _ in range(3)]

        def work(is_over: Any) -> None:
            while todo:
                worker = todo.pop(0)
                pace.work(worker % 4)
                ask(worker)
                sum(range(compute * (worker % 3)))
                found.append(worker)
            is_over.release()

        for is_over in are_over:
            is_over.acquire()
            _thread.start_new_thread(work, (is_over,))
        for is_over in are_over:
            is_over.acquire()
        return found

    with reenact.capture(tmp_path / "run", sources=()):
        recorded = agent(SLOWING, compute=0)
        ask(recorded)
    with reenact.replay(tmp_path / "run"):
        # Who has its answer later would be done with it earlier.
        ask(agent(Pace(0, 0, 0, 0), compute=300_000))


def test_a_thread_pool_works_as_ever(tmp_path: Path) -> None:
    """In whichever way its jobs are given; one that fails says so."""

    def add(one: int, other: int = 1) -> str:
        return ask(one + other)

    def agent() -> list[Any]:
        with ThreadPool(2) as pool:
            found: list[Any] = [
                pool.apply(add, (1, 2)),
                pool.map(add, [1, 2, 3]),
                pool.starmap(add, [(1, 2)]),
            ]
            found += [pool.starmap(add, [(1, 2)]), list(pool.imap(add, [4]))]
            found += pool.imap(add, iter([1, 2]), chunksize=2)
            failing = pool.apply_async(divmod, (1, 0))
            failing.wait()
            return [*found, failing.successful()]

    with reenact.capture(tmp_path / "run"):
        recorded = agent()
    with reenact.replay(tmp_path / "run") as run:
        assert agent() == recorded
    assert recorded[1] == ["answer to 2", "answer to 3", "answer to 4"]
    assert recorded[-1] is False
    assert not run.divergences


def test_the_order_is_written_with_the_next_event(tmp_path: Path) -> None:
    """Beside its data, in the order of the keys; a row of puts is counted."""
    items: queue.Queue[int] = queue.Queue()
    with reenact.capture(tmp_path / "run"):
        ask("a")
        thread = threading.Thread(target=lambda: [items.put(number) for number in range(3)])
        thread.start()
        thread.join()
        ask("b")
    lines = [json.loads(line) for line in CaptureReader(tmp_path / "run").lines()]
    assert [line.get("order") for line in lines] == [
        None,
        None,
        None,
        ["0.0>3", "0.0! <lambda> ="],
        None,
        None,
    ]


def test_what_cannot_be_repeated_is_named(tmp_path: Path) -> None:
    """A list of results in another order is said to be one."""
    with reenact.capture(tmp_path / "run"):
        ask(["one result", "another result"])
    with (
        pytest.raises(reenact.Diverged, match="the same results in another order"),
        reenact.replay(tmp_path / "run"),
    ):
        ask(["another result", "one result"])


@pytest.mark.parametrize("seed", [None, "random", "0"])
def test_the_order_of_a_set_is_named_as_a_possible_cause(seed, tmp_path: Path, monkeypatch) -> None:
    """In this process sets of texts have an order of their own, unless the hash seed is fixed."""
    monkeypatch.delenv("PYTHONHASHSEED", raising=False)
    if seed is not None:
        monkeypatch.setenv("PYTHONHASHSEED", seed)
    with reenact.capture(tmp_path / "run"):
        ask(["one result", "another result"])
    with pytest.raises(reenact.Diverged) as raised, reenact.replay(tmp_path / "run"):
        ask(["another result", "one result"])
    assert ("PYTHONHASHSEED=0" in raised.value.divergence.explain()) == (seed != "0")


def test_another_text_is_not_blamed_on_the_order_of_a_set(tmp_path: Path, monkeypatch) -> None:
    """A hint that is always there helps nobody."""
    monkeypatch.delenv("PYTHONHASHSEED", raising=False)
    with reenact.capture(tmp_path / "run"):
        ask(["one result", "another result"])
    with pytest.raises(reenact.Diverged) as raised, reenact.replay(tmp_path / "run"):
        ask(["one result", "a third result"])
    assert "PYTHONHASHSEED" not in raised.value.divergence.explain()


def test_nobody_waits_for_ever_for_what_does_not_come(tmp_path: Path) -> None:
    """Threads that are not started again hold nobody up for long."""

    def agent(count: int) -> None:
        ask("a")
        threads = [threading.Thread(target=time.sleep, args=(0,)) for _ in range(count)]
        for thread in threads:
            thread.start()
            thread.join()
            ask("b")

    with reenact.capture(tmp_path / "run"):
        agent(30)
    began = time.monotonic()
    with reenact.replay(tmp_path / "run"):
        ask("a")
        for _ in range(30):
            ask("b")
    assert time.monotonic() - began < 5


def test_a_task_that_waits_to_end_is_seen_to_wait() -> None:
    """Libraries ask: anyio cancels who is neither done nor waiting in every round of the loop."""

    async def work() -> str:
        return "done"

    async def turn() -> None:
        await asyncio.sleep(0)

    body = EndingInTurn(work(), turn, lambda _answer, _error: None)
    body.send(None)
    assert inspect.getcoroutinestate(body) == inspect.CORO_SUSPENDED  # type: ignore[arg-type]
    assert body.__qualname__ == work.__qualname__
    with pytest.raises(StopIteration, match="done"):
        body.send(None)


def pass_on_through_pipes(later_s: float, *, is_recorded: bool) -> list[int]:
    """What two threads do with an answer is seen by other threads alone."""
    found: list[int] = []
    pipes = [os.pipe() for _ in range(3)]
    both = threading.Barrier(2)

    @reenact.tool
    def look_up(number: int) -> int:
        both.wait()
        select.select([], [], [], number * (later_s or 0.001))
        return number

    def work(number: int) -> None:
        look_up(number)
        is_first = is_recorded and not number
        if is_first and not later_s:
            select.select([], [], [], 0.03)  # the other one overtakes
        os.write(pipes[number][1], b"!")
        if is_first and later_s:
            os.read(pipes[2][0], 1)  # so that it ends last

    def pass_on(number: int) -> None:
        os.read(pipes[number][0], 1)
        found.append(number)

    passing = [threading.Thread(target=pass_on, args=(number,)) for number in range(2)]
    working = [threading.Thread(target=work, args=(number,)) for number in range(2)]
    for thread in (*passing, *working):
        thread.start()
    for thread in (working[1], *passing):
        thread.join()
    os.write(pipes[2][1], b"!")
    working[0].join()
    for end in itertools.chain(*pipes):
        os.close(end)
    return found


@pytest.mark.parametrize("later_s", [0.0, 0.03])
def test_threads_go_on_in_the_order_in_which_they_acted(later_s: float, tmp_path: Path) -> None:
    """Where the answers came close together; otherwise an end says nothing about what came long before it."""
    for run in itertools.count():
        path = tmp_path / f"run{run}"
        first = captured(path, lambda _: pass_on_through_pipes(later_s, is_recorded=True))
        times_ms = [event.ts for event in CaptureReader(path).events()][3:5]
        if (times_ms[1] - times_ms[0] <= 5) != bool(later_s):  # not so on a busy machine, at times
            break
    assert replayed(path, lambda _: pass_on_through_pipes(later_s, is_recorded=False)) == first

"""Whatever an agent starts beside itself makes its calls in a lane of its own, and nothing stays patched."""

from __future__ import annotations

import asyncio
import contextvars
import queue
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from multiprocessing.pool import ThreadPool
from pathlib import Path
from typing import Any

import pytest

import reenact
from tests.twice import captured, events, replayed, twice


@reenact.tool
def work(number: int) -> str:
    time.sleep(0.001 * (3 - number % 4))
    return f"done {number}"


@reenact.tool
async def work_async(number: int) -> str:
    await asyncio.sleep(0.001 * (3 - number % 4))
    return f"done {number}"


def lanes(path: Path) -> list[str]:
    return sorted(data["lane"] for kind, data in events(path) if kind == "tool_call")


# What is patched, and when


def patched() -> list[Any]:
    return [
        asyncio.BaseEventLoop.create_task,
        asyncio.as_completed,
        threading.Thread.start,
        ThreadPoolExecutor.submit,
    ]


ORIGINALS = patched()


def test_nothing_is_patched_before_or_after_a_run(tmp_path: Path) -> None:
    """Seams are attached while a run is open, and leave no trace."""
    assert patched() == ORIGINALS
    with reenact.capture(tmp_path / "run"):
        assert not set(map(id, patched())) & set(map(id, ORIGINALS))
    assert patched() == ORIGINALS
    with reenact.replay(tmp_path / "run"):
        assert patched() != ORIGINALS
    assert patched() == ORIGINALS


def test_a_run_that_fails_leaves_nothing_patched(tmp_path: Path) -> None:
    """Nor after an error, nor where a run could not even begin."""
    with pytest.raises(ZeroDivisionError), reenact.capture(tmp_path / "run"):
        raise ZeroDivisionError
    with pytest.raises(reenact.ReenactError), reenact.capture(tmp_path / "run"):
        raise AssertionError("a capture is never overwritten")
    with pytest.raises(reenact.ReenactError):
        reenact.replay(tmp_path / "none")
    assert patched() == ORIGINALS


def test_off_patches_nothing(tmp_path: Path) -> None:
    """A run that is switched off changes nothing at all."""
    with reenact.capture(tmp_path / "run", mode="off"):
        assert patched() == ORIGINALS
    assert not (tmp_path / "run").exists()


def test_patches_stay_while_another_run_is_open(tmp_path: Path) -> None:
    """Closing one run does not detach the seams under another that is still open."""
    opened, close = threading.Event(), threading.Event()

    def other() -> None:
        with reenact.capture(tmp_path / "other"):
            opened.set()
            close.wait()

    thread = threading.Thread(target=other)
    with reenact.capture(tmp_path / "run"):
        thread.start()
        opened.wait()
    assert patched() != ORIGINALS
    close.set()
    thread.join()
    assert patched() == ORIGINALS


# Lanes


def test_tasks_and_their_children(tmp_path: Path) -> None:
    """A lane's name is its parent's and the ordinal at which it was started."""

    async def parent(number: int) -> list[str]:
        return [
            await work_async(number),
            *await asyncio.gather(work_async(number + 1), work_async(number + 2)),
        ]

    async def agent(run: reenact.Run) -> Any:
        return await asyncio.gather(parent(10), parent(20))

    twice(tmp_path / "run", agent)
    # asyncio.run's own task is 0.0
    assert lanes(tmp_path / "run") == ["0.0.0", "0.0.0.0", "0.0.0.1", "0.0.1", "0.0.1.0", "0.0.1.1"]


def in_threads(run: reenact.Run) -> Any:
    results: dict[int, str] = {}
    threads = [threading.Thread(target=lambda n=n: results.update({n: work(n)})) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sorted(results.items())


def in_a_pool(run: reenact.Run) -> Any:
    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(work, range(6)))


async def in_to_thread(run: reenact.Run) -> Any:
    return await asyncio.gather(*(asyncio.to_thread(work, number) for number in range(4)))


async def in_an_executor(run: reenact.Run) -> Any:
    loop = asyncio.get_running_loop()
    with ThreadPoolExecutor(3) as pool:
        return await asyncio.gather(*(loop.run_in_executor(pool, work, number) for number in range(4)))


def in_a_timer(run: reenact.Run) -> Any:
    results: list[str] = []
    timers = [threading.Timer(0.001, lambda n=n: results.append(work(n))) for n in range(3)]
    for timer in timers:
        timer.start()
    for timer in timers:
        timer.join()
    return sorted(results)


def in_a_foreign_pool(run: reenact.Run) -> Any:
    with ThreadPool(3) as pool:
        return pool.map(work, range(6))


def in_loops_of_threads(run: reenact.Run) -> Any:
    async def inside(number: int) -> Any:
        return await asyncio.gather(work_async(number), asyncio.to_thread(work, number))

    with ThreadPoolExecutor(3) as pool:
        return list(pool.map(lambda number: asyncio.run(inside(number)), range(3)))


async def in_callbacks(run: reenact.Run) -> Any:
    loop = asyncio.get_running_loop()
    results: list[str] = []
    done = loop.create_future()
    loop.call_soon(lambda: results.append(work(1)))
    loop.call_later(0.002, lambda: (results.append(work(2)), done.set_result(None)))
    await done
    return results


async def in_a_shared_context(run: reenact.Run) -> Any:
    context = contextvars.copy_context()
    tasks = [asyncio.get_running_loop().create_task(work_async(n), context=context) for n in range(3)]
    return await asyncio.gather(*tasks)


def in_a_copied_context(run: reenact.Run) -> Any:
    with ThreadPoolExecutor(2) as pool:
        jobs = [pool.submit(contextvars.copy_context().run, work, number) for number in range(3)]
        return [job.result() for job in jobs]


def in_another_threads_loop(run: reenact.Run) -> Any:
    """A loop that runs in its own thread and is given coroutines from here, as sync wrappers do."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        jobs = [asyncio.run_coroutine_threadsafe(work_async(number), loop) for number in range(4)]
        return [job.result(10) for job in jobs]
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


def in_a_loop_filled_beforehand(run: reenact.Run) -> Any:
    """Tasks made before their loop runs, and in another thread than it will run in."""
    loop = asyncio.new_event_loop()
    tasks = [loop.create_task(work_async(number)) for number in range(3)]
    results: list[Any] = []
    thread = threading.Thread(target=lambda: results.append(loop.run_until_complete(asyncio.gather(*tasks))))
    thread.start()
    thread.join()
    loop.close()
    return results


async def as_completed(run: reenact.Run) -> Any:
    return [await done for done in asyncio.as_completed([work_async(number) for number in range(4)])]


async def in_a_group(run: reenact.Run) -> Any:
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(work_async(number)) for number in range(4)]
    return [task.result() for task in tasks]


class InlineExecutor(ThreadPoolExecutor):
    """Runs each job where it is submitted."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        future.set_result(fn(*args, **kwargs))
        return future


def in_line(run: reenact.Run) -> Any:
    with InlineExecutor() as pool:
        return [pool.submit(work, 1).result(), work(2)]


PROGRAMS = [
    in_threads,
    in_a_pool,
    in_to_thread,
    in_an_executor,
    in_a_timer,
    in_a_foreign_pool,
    in_loops_of_threads,
    in_callbacks,
    in_a_shared_context,
    in_a_copied_context,
    in_another_threads_loop,
    in_a_loop_filled_beforehand,
    as_completed,
    in_a_group,
    in_line,
]


@pytest.mark.parametrize("program", PROGRAMS)
def test_calls_from_everywhere_replay(tmp_path: Path, program: Callable[[reenact.Run], Any]) -> None:
    """However calls run beside each other, each gets its own answer again."""
    twice(tmp_path / "run", program)


@pytest.mark.parametrize("program", [in_threads, in_a_pool, in_to_thread, in_an_executor, in_a_timer])
def test_each_job_has_a_lane_of_its_own(tmp_path: Path, program: Callable[[reenact.Run], Any]) -> None:
    """No two share one, and none is loose."""
    captured(tmp_path / "run", program)
    names = lanes(tmp_path / "run")
    assert len(set(names)) == len(names)
    assert not any("~" in name for name in names)


def test_waiting_for_a_call_is_no_task_of_its_own(tmp_path: Path) -> None:
    """``wait_for`` makes a task in Python 3.11 and none later; a recording must not depend on that."""

    async def agent(run: reenact.Run) -> Any:
        first = await asyncio.wait_for(work_async(1), 5)
        second, third = await asyncio.gather(asyncio.wait_for(work_async(2), 5), work_async(3))
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(asyncio.sleep(60), 0.001)
        task = asyncio.create_task(work_async(4))
        return [first, second, third, await asyncio.wait_for(task, 5), await work_async(5)]

    twice(tmp_path / "run", agent)
    assert lanes(tmp_path / "run") == ["0.0", "0.0", "0.0.0", "0.0.1", "0.0.2"]


@pytest.mark.skipif(sys.version_info < (3, 12), reason="tasks are never eager before Python 3.12")
def test_eager_tasks(tmp_path: Path) -> None:
    """A task that runs before it is handed to its creator has its own lane all the same."""

    async def agent(run: reenact.Run) -> Any:
        asyncio.get_running_loop().set_task_factory(asyncio.eager_task_factory)  # type: ignore[attr-defined]
        return await asyncio.gather(*(work_async(number) for number in range(4)))

    twice(tmp_path / "run", agent)
    assert lanes(tmp_path / "run") == ["0.0.0", "0.0.1", "0.0.2", "0.0.3"]


def test_a_job_run_in_line_gives_its_lane_back(tmp_path: Path) -> None:
    """Nested jobs on one thread do not take the outer one's lane away."""

    def outer() -> list[str]:
        with ThreadPoolExecutor(1) as pool:
            inner = pool.submit(work, 1).result()
        return [inner, contextvars.Context().run(work, 2)]

    def agent(run: reenact.Run) -> Any:
        with ThreadPoolExecutor(1) as pool:
            return pool.submit(outer).result()

    twice(tmp_path / "run", agent)
    assert lanes(tmp_path / "run") == ["0.0", "0.0.0"]


# What existed before the run, and what outlives it


def test_threads_started_before_the_run(tmp_path: Path) -> None:
    """A worker that was there before belongs to the one open run, in no known order."""
    jobs: queue.Queue[Any] = queue.Queue()
    answers: queue.Queue[Any] = queue.Queue()

    def worker() -> None:
        for number in iter(jobs.get, None):
            answers.put(work(number))

    threads = [threading.Thread(target=worker) for _ in range(2)]
    for thread in threads:
        thread.start()

    def agent(run: reenact.Run) -> Any:
        for number in range(6):
            jobs.put(number)
        return sorted(answers.get() for _ in range(6))

    twice(tmp_path / "run", agent)
    assert set(lanes(tmp_path / "run")) == {"0~"}
    for _ in threads:
        jobs.put(None)
    for thread in threads:
        thread.join()


def test_a_pool_from_before_the_run(tmp_path: Path) -> None:
    """Jobs given to an older pool have lanes of their own."""
    with ThreadPoolExecutor(2) as pool:
        twice(tmp_path / "run", lambda run: list(pool.map(work, range(4))))
    assert lanes(tmp_path / "run") == ["0.0", "0.1", "0.2", "0.3"]


def test_a_task_from_before_the_run(tmp_path: Path) -> None:
    """A task that was started before the run and works for it is recorded and replayed."""

    async def both() -> None:
        jobs: asyncio.Queue[Any] = asyncio.Queue()
        answers: asyncio.Queue[Any] = asyncio.Queue()

        async def worker() -> None:
            while (number := await jobs.get()) is not None:
                await answers.put(await work_async(number))

        task = asyncio.create_task(worker())
        results = []
        async with reenact.capture(tmp_path / "run"):
            jobs.put_nowait(1)
            results.append(await answers.get())
        async with reenact.replay(tmp_path / "run"):
            jobs.put_nowait(1)
            results.append(await answers.get())
        jobs.put_nowait(None)
        await task
        assert results == ["done 1", "done 1"]

    asyncio.run(both())


def test_a_task_that_outlives_its_run_joins_the_next(tmp_path: Path) -> None:
    """A worker started in one run does not answer, or record, in its name for ever."""

    async def both() -> None:
        jobs: asyncio.Queue[Any] = asyncio.Queue()
        answers: asyncio.Queue[Any] = asyncio.Queue()

        async def worker() -> None:
            while (number := await jobs.get()) is not None:
                await answers.put(await work_async(number))

        async def agent(first: int) -> list[str]:
            for number in (first, first + 1):
                jobs.put_nowait(number)
            return [await answers.get() for _ in range(2)]

        async with reenact.capture(tmp_path / "first"):
            task = asyncio.create_task(worker())
            await agent(1)
        assert work(9) == "done 9"
        async with reenact.capture(tmp_path / "second"):
            recorded = await agent(3)
        async with reenact.replay(tmp_path / "second") as run:
            assert await agent(3) == recorded
        assert run.divergences == []
        jobs.put_nowait(None)
        await task

    asyncio.run(both())
    assert lanes(tmp_path / "second") == ["0~", "0~"]


def left_behind(run: reenact.Run, go: threading.Event, results: list[Any]) -> threading.Thread:
    """A thread of *run* that makes its call when the run is over."""

    def late() -> None:
        go.wait()
        try:
            results.append(work(1))
        except reenact.Diverged as error:
            results.append(str(error))

    thread = threading.Thread(target=late)
    thread.start()
    return thread


def test_what_a_recorded_run_leaves_behind_works_as_without_us(tmp_path: Path) -> None:
    """Its calls are real, and not recorded where nothing is recorded any more."""
    go, results = threading.Event(), []
    with reenact.capture(tmp_path / "run") as run:
        thread = left_behind(run, go, results)
    go.set()
    thread.join()
    assert results == ["done 1"]
    assert run.warnings == []


def test_what_a_replay_leaves_behind_does_not_go_live(tmp_path: Path) -> None:
    """A worker that outlives its replay must not send the mail that the replay only played."""
    captured(tmp_path / "run", lambda run: None)
    go, results = threading.Event(), []
    with reenact.replay(tmp_path / "run") as run:
        thread = left_behind(run, go, results)
    go.set()
    thread.join()
    assert results == ["tool work: the replay in which its caller was started is over"]
    assert run.divergences == []


# Two runs at once


def agent_of(name: str, rounds: int = 20) -> Callable[[], list[str]]:
    @reenact.tool(name="say")
    def say(number: int) -> str:
        time.sleep(0.0005)
        return f"{name} {number}"

    def agent() -> list[str]:
        with ThreadPoolExecutor(2) as pool:
            return list(pool.map(say, range(rounds)))

    return agent


def side_by_side(*programs: Callable[[], Any]) -> list[Any]:
    """All at once, each in a thread of its own that was started outside any run."""
    barrier = threading.Barrier(len(programs))

    def at_once(program: Callable[[], Any]) -> Any:
        barrier.wait()
        return program()

    with ThreadPoolExecutor(len(programs)) as pool:
        return [job.result() for job in [pool.submit(at_once, program) for program in programs]]


def capturing(path: Path, name: str) -> Callable[[], Any]:
    def program() -> Any:
        with reenact.capture(path):
            return agent_of(name)()

    return program


def replaying(path: Path, name: str) -> Callable[[], Any]:
    def program() -> Any:
        with reenact.replay(path) as run:
            result = agent_of(name)()
        assert run.divergences == []
        return result

    return program


def test_two_captures_at_once(tmp_path: Path) -> None:
    """Each has its own calls and no other's."""
    side_by_side(capturing(tmp_path / "a", "a"), capturing(tmp_path / "b", "b"))
    for name in ("a", "b"):
        results = [data["result"] for kind, data in events(tmp_path / name) if kind == "tool_result"]
        assert sorted(results) == sorted(f"{name} {number}" for number in range(20))


def test_two_replays_at_once(tmp_path: Path) -> None:
    """Each is answered from its own recording."""
    for name in ("a", "b"):
        capturing(tmp_path / name, name)()
    found = side_by_side(replaying(tmp_path / "a", "live"), replaying(tmp_path / "b", "live"))
    assert [results[0] for results in found] == ["a 0", "b 0"]


def test_a_capture_beside_a_replay(tmp_path: Path) -> None:
    """One goes live and the other does not, at the same time."""
    capturing(tmp_path / "a", "a")()
    found = side_by_side(replaying(tmp_path / "a", "live"), capturing(tmp_path / "b", "b"))
    assert [results[0] for results in found] == ["a 0", "b 0"]


def test_tasks_of_one_loop_with_runs_of_their_own(tmp_path: Path) -> None:
    """Concurrent tasks may each open a run; the runs do not see each other's calls."""

    async def session(name: str) -> list[str]:
        async with reenact.capture(tmp_path / name):
            return await asyncio.gather(*(work_async(ord(name) + number) for number in range(3)))

    async def again(name: str) -> list[str]:
        async with reenact.replay(tmp_path / name) as run:
            result = await asyncio.gather(*(work_async(ord(name) + number) for number in range(3)))
        assert run.divergences == []
        return result

    async def both(session: Callable[[str], Any]) -> Any:
        return await asyncio.gather(session("a"), session("b"))

    recorded = asyncio.run(both(session))
    assert asyncio.run(both(again)) == recorded


def test_a_run_inside_a_run(tmp_path: Path) -> None:
    """The inner run has the calls made in it; the outer goes on after it."""

    def agent(open_inner: Callable[[], Any]) -> Callable[[reenact.Run], Any]:
        def both(run: reenact.Run) -> Any:
            before = work(1)
            with open_inner():
                inner = work(2)
            return [before, inner, work(3)]

        return both

    captured(tmp_path / "outer", agent(lambda: reenact.capture(tmp_path / "inner")))
    replayed(tmp_path / "outer", agent(lambda: reenact.replay(tmp_path / "inner")))
    calls = [data["args"] for kind, data in events(tmp_path / "outer") if kind == "tool_call"]
    assert calls == [{"number": 1}, {"number": 3}]


@pytest.fixture
def stray() -> Iterator[Callable[[Callable[[], Any]], Any]]:
    """Have something done by a thread that belongs to no run."""
    jobs: queue.Queue[Any] = queue.Queue()
    results: queue.Queue[Any] = queue.Queue()

    def worker() -> None:
        for job in iter(jobs.get, None):
            try:
                results.put((job(), None))
            except BaseException as error:
                results.put((None, error))

    thread = threading.Thread(target=worker)
    thread.start()

    def do(job: Callable[[], Any]) -> Any:
        jobs.put(job)
        result, error = results.get(timeout=10)
        if error is not None:
            raise error
        return result

    yield do
    jobs.put(None)
    thread.join()


def test_a_stray_thread_between_two_captures(tmp_path: Path, stray: Callable[..., Any]) -> None:
    """Nobody can say whose call it is: it is made, recorded by neither, and both runs say so."""
    with reenact.capture(tmp_path / "a") as outer, reenact.capture(tmp_path / "b") as inner:
        assert stray(lambda: work(1)) == "done 1"
        assert stray(lambda: work(2)) == "done 2"
    for run in (outer, inner):
        assert len(run.warnings) == 1
        assert "work" in run.warnings[0]
        assert "belongs to no run" in run.warnings[0]


def test_a_stray_thread_between_two_replays(tmp_path: Path, stray: Callable[..., Any]) -> None:
    """Nothing goes live in replay: a call that nobody can place is refused, and both runs fail."""
    for name in ("a", "b"):
        captured(tmp_path / name, lambda run: None)
    live: list[int] = []

    @reenact.tool
    def go_live() -> None:
        live.append(1)

    with pytest.raises(reenact.Diverged), reenact.replay(tmp_path / "a") as outer:  # noqa: SIM117
        with pytest.raises(reenact.Diverged), reenact.replay(tmp_path / "b") as inner:
            with pytest.raises(reenact.Diverged, match="belongs to no run"):
                stray(go_live)
    assert live == []
    for run in (outer, inner):
        assert [found.code for found in run.divergences] == ["event_unexpected"]

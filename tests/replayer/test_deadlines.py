"""A deadline that passed in the recording passes at the same place in replay; one that did not, does not."""

from __future__ import annotations

import asyncio
import concurrent.futures
import queue
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import anyio
import pytest

import reenact
from reenact.boundary import Lane


class Pace:
    """How long everything takes: *tool_s* the tool, *own_s* the agent's own work, which no seam sees."""

    def __init__(self, tool_s: float = 0.0, own_s: float = 0.0) -> None:
        self.own_s = own_s

        @reenact.tool
        def ask(what: Any) -> str:
            threading.Event().wait(tool_s)
            return f"answer to {what}"

        @reenact.tool
        async def ask_async(what: Any) -> str:
            await asyncio.sleep(tool_s)
            return f"answer to {what}"

        self.ask, self.ask_async = ask, ask_async

    def work(self) -> None:
        _really_wait(self.own_s)


def _really_wait(seconds: float) -> None:
    """As a C library would: nobody sees it."""
    lock = threading.Lock()
    lock.acquire()
    lock.acquire(timeout=seconds)


async def timeout(pace: Pace) -> str:
    try:
        async with asyncio.timeout(0.1):
            first = await pace.ask_async(1)
            await asyncio.to_thread(pace.work)
            return first
    except TimeoutError:
        return "gave up"


async def timeout_in_sleep(pace: Pace) -> str:
    """The sleep after the answer is what the deadline ends, or not."""
    try:
        async with asyncio.timeout(0.1):
            first = await pace.ask_async(1)
            await asyncio.sleep(pace.own_s)
            return first
    except TimeoutError:
        return "gave up"


async def wait_for(pace: Pace) -> str:
    async def both() -> str:
        first = await pace.ask_async(1)
        await asyncio.to_thread(pace.work)
        return first

    try:
        return await asyncio.wait_for(both(), 0.1)
    except TimeoutError:
        return "gave up"


async def wait_with_timeout(pace: Pace) -> list[Any]:
    job = asyncio.create_task(asyncio.to_thread(pace.work))
    done, pending = await asyncio.wait([job], timeout=0.1)
    await pace.ask_async([len(done), len(pending)])
    await job
    return [len(done), len(pending)]


async def as_completed_with_timeout(pace: Pace) -> list[Any]:
    async def slow() -> str:
        await asyncio.to_thread(pace.work)
        return "slow"

    found = []
    tasks = [asyncio.create_task(pace.ask_async(1)), asyncio.create_task(slow())]
    try:
        for each in asyncio.as_completed(tasks, timeout=0.1):
            found.append(await each)  # noqa: PERF401
    except TimeoutError:
        found.append("gave up")
    await asyncio.wait(tasks)
    return found


async def call_later(pace: Pace) -> str:
    loop = asyncio.get_running_loop()
    found: asyncio.Future[str] = loop.create_future()

    def settle(how: str) -> None:
        if not found.done():
            found.set_result(how)

    loop.call_later(0.1, settle, "timer")
    job = asyncio.create_task(asyncio.to_thread(pace.work))
    job.add_done_callback(lambda _: settle("work"))
    first = await found
    await job
    return first


async def chained_timers(pace: Pace) -> list[str]:
    """A timer that sets the next one, as heartbeats do."""
    loop, beats = asyncio.get_running_loop(), []

    def beat() -> None:
        beats.append("beat")
        loop.call_later(0.03, beat)

    loop.call_later(0.03, beat)
    await asyncio.to_thread(pace.work)
    return [*beats, "work"]


async def polling(pace: Pace) -> int:
    job, rounds = asyncio.create_task(asyncio.to_thread(pace.work)), 0
    while not job.done():
        rounds += 1
        await asyncio.sleep(0.02)
    return rounds


async def two_sleepers(pace: Pace) -> list[str]:
    woken: list[str] = []

    async def sleeper(name: str, seconds: float) -> None:
        await asyncio.sleep(seconds)
        woken.append(name)

    delays = (0.05, 0.01, 0.03) if pace.own_s else (0.0, 0.02, 0.01)
    await asyncio.gather(*(sleeper(str(each), seconds) for each, seconds in enumerate(delays)))
    return woken


async def race_of_sleep_and_work(pace: Pace) -> str:
    sleep = asyncio.create_task(asyncio.sleep(0.1, "sleep"))
    work = asyncio.create_task(asyncio.to_thread(pace.work))
    done, pending = await asyncio.wait({sleep, work}, return_when=asyncio.FIRST_COMPLETED)
    for each in pending:
        each.cancel()
    return "sleep" if sleep in done else "work"


async def job_and_timer_of_one_round(pace: Pace) -> list[str]:
    """The loop is held up until both are there; the task that waits for the job sees the timer's doing."""
    loop, rang = asyncio.get_running_loop(), []
    job = asyncio.ensure_future(asyncio.to_thread(pace.work))
    await asyncio.sleep(0)
    handle = loop.call_later(0.05, rang.append, "rang")
    if pace.own_s < 0.1:
        _really_wait(0.1)
    await job
    handle.cancel()
    return rang


async def overdue_timeout(pace: Pace) -> str:
    """The deadline has passed, or not, when the time-out begins."""
    limit = asyncio.timeout(0.1)
    pace.work()
    try:
        async with limit:
            return await pace.ask_async(1)
    except TimeoutError:
        return "gave up"


async def move_on_after(pace: Pace) -> str:
    with anyio.move_on_after(0.1):
        first = await pace.ask_async(1)
        await anyio.to_thread.run_sync(pace.work, abandon_on_cancel=True)
        return first
    return "gave up"


async def fail_after(pace: Pace) -> str:
    try:
        with anyio.fail_after(0.1):
            first = await pace.ask_async(1)
            await anyio.sleep(pace.own_s)
            return first
    except TimeoutError:
        return "gave up"


def event(pace: Pace) -> bool:
    done = threading.Event()
    thread = threading.Thread(target=lambda: [pace.ask(1), pace.work(), done.set()])
    thread.start()
    came = done.wait(0.1)
    thread.join()
    return came


def condition(pace: Pace) -> bool:
    changed, there = threading.Condition(), []

    def work() -> None:
        pace.work()
        with changed:
            there.append(1)
            changed.notify_all()

    thread = threading.Thread(target=work)
    with changed:
        thread.start()
        came = changed.wait_for(lambda: bool(there), 0.1)
    thread.join()
    return came


def _get_from(items: queue.Queue[str] | queue.SimpleQueue[str], pace: Pace) -> str:
    thread = threading.Thread(target=lambda: [pace.work(), items.put("item")])
    thread.start()
    try:
        found = items.get(timeout=0.1)
    except queue.Empty:
        found = "nothing"
    thread.join()
    return found


def get(pace: Pace) -> str:
    return _get_from(queue.Queue(), pace)


def get_from_simple_queue(pace: Pace) -> str:
    return _get_from(queue.SimpleQueue(), pace)


def put(pace: Pace) -> str:
    """Into a queue that is full until somebody takes its item."""
    items: queue.Queue[str] = queue.Queue(maxsize=1)
    items.put("first")
    thread = threading.Thread(target=lambda: [pace.work(), items.get()])
    thread.start()
    try:
        items.put("second", timeout=0.1)
        came = "put"
    except queue.Full:
        came = "full"
    thread.join()
    return came


def join(pace: Pace) -> bool:
    thread = threading.Thread(target=pace.work)
    thread.start()
    thread.join(0.1)
    is_alive = thread.is_alive()
    pace.ask(is_alive)
    thread.join()
    return is_alive


def future(pace: Pace) -> str:
    with ThreadPoolExecutor(1) as pool:
        job = pool.submit(lambda: [pace.work(), "done"][1])
        try:
            return job.result(timeout=0.1)
        except TimeoutError:
            return "gave up"


def sleeping_job(pace: Pace) -> str:
    """In replay the sleep takes no time."""
    with ThreadPoolExecutor(1) as pool:
        job = pool.submit(lambda: [time.sleep(pace.own_s), "done"][1])
        try:
            return job.result(timeout=0.1)
        except TimeoutError:
            return "gave up"


def wait(pace: Pace) -> list[int]:
    with ThreadPoolExecutor(2) as pool:
        jobs = [pool.submit(pace.work), pool.submit(pace.ask, 1)]
        done, waiting = concurrent.futures.wait(jobs, timeout=0.1)
        pace.ask([len(done), len(waiting)])
    return [len(done), len(waiting)]


def jobs_as_completed(pace: Pace) -> list[Any]:
    found: list[Any] = []
    with ThreadPoolExecutor(2) as pool:
        jobs = [pool.submit(pace.work), pool.submit(pace.ask, 1)]
        try:
            found.extend(job.result() for job in concurrent.futures.as_completed(jobs, timeout=0.1))
        except TimeoutError:
            found.append("gave up")
    return found


def timer(pace: Pace) -> list[str]:
    came: list[str] = []
    late = threading.Timer(0.1, came.append, ["timer"])
    late.start()
    pace.work()
    late.cancel()
    late.join()
    return came


AGENTS: list[Callable[[Pace], Any]] = [
    timeout,
    timeout_in_sleep,
    wait_for,
    wait_with_timeout,
    as_completed_with_timeout,
    call_later,
    chained_timers,
    polling,
    two_sleepers,
    race_of_sleep_and_work,
    job_and_timer_of_one_round,
    overdue_timeout,
    move_on_after,
    fail_after,
    event,
    condition,
    get,
    get_from_simple_queue,
    put,
    join,
    future,
    sleeping_job,
    wait,
    jobs_as_completed,
    timer,
]
SLOW, QUICK = {"own_s": 0.3}, {"own_s": 0.02}


def run(agent: Callable[[Pace], Any], pace: Pace) -> Any:
    if asyncio.iscoroutinefunction(agent):
        return asyncio.run(agent(pace))
    return agent(pace)


@pytest.mark.parametrize(("then", "now"), [(SLOW, QUICK), (QUICK, SLOW)], ids=["passed", "did_not_pass"])
@pytest.mark.parametrize("agent", AGENTS, ids=lambda agent: agent.__name__)
def test_a_deadline_passes_where_it_passed(
    agent: Callable[[Pace], Any], then: dict[str, float], now: dict[str, float], tmp_path: Path
) -> None:
    """However long everything takes this time."""
    with reenact.capture(tmp_path / "run"):
        recorded = run(agent, Pace(**then))
    with reenact.replay(tmp_path / "run") as replayed_run:
        replayed = run(agent, Pace(**now))
    assert replayed == recorded
    assert not replayed_run.divergences


def test_answers_of_one_round_come_in_one_round(tmp_path: Path) -> None:
    """Who is woken by the first sees the second too."""

    async def agent() -> list[int]:
        both = asyncio.Event()

        @reenact.tool
        async def ask(what: int) -> int:
            await both.wait()
            return what

        tasks = [asyncio.create_task(ask(number)) for number in range(3)]
        await asyncio.sleep(0.01)
        asyncio.get_running_loop().call_soon(both.set)
        done, pending = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        await asyncio.gather(*pending)
        return [task.result() for task in done]

    with reenact.capture(tmp_path / "run"):
        recorded = asyncio.run(agent())
    with reenact.replay(tmp_path / "run") as run:
        assert asyncio.run(agent()) == recorded == [0, 1, 2]
    assert not run.divergences


def test_the_time_out_of_the_issue(tmp_path: Path) -> None:
    """Two answers together took too long, each of them alone did not."""

    async def agent(pace: Pace) -> str:
        try:
            async with asyncio.timeout(0.1):
                await pace.ask_async(1)
                await asyncio.sleep(0.05)
                return "all is well"
        except TimeoutError:
            return "gave up"

    with reenact.capture(tmp_path / "run"):
        assert asyncio.run(agent(Pace(tool_s=0.08))) == "gave up"
    with reenact.replay(tmp_path / "run") as run:
        assert asyncio.run(agent(Pace())) == "gave up"
    assert not run.divergences


def test_sleeping_takes_no_time(tmp_path: Path) -> None:
    """On a loop as in a thread, in the order in which they woke up; the loop's clock has gone on."""

    async def agent(pace: Pace) -> list[str]:
        woken: list[str] = []

        async def sleeper(name: str, seconds: float) -> None:
            await asyncio.sleep(seconds)
            woken.append(name)

        loop = asyncio.get_running_loop()
        loop.call_later(0.3, woken.append, "timer")
        began = loop.time()
        async with asyncio.timeout(20):
            await asyncio.gather(sleeper("a", 0.6), sleeper("b", 0.2), sleeper("c", 0.4))
        woken.append(await pace.ask_async(woken))
        assert loop.time() - began >= 0.6
        return woken

    with reenact.capture(tmp_path / "run"):
        recorded = asyncio.run(agent(Pace()))
    took_s = []
    for _ in range(5):
        began = time.monotonic()
        with reenact.replay(tmp_path / "run"):
            assert asyncio.run(agent(Pace())) == recorded
        took_s.append(time.monotonic() - began)
    assert recorded[:4] == ["b", "timer", "c", "a"]
    assert min(took_s) < 0.5


async def _wake_in_order(looks: int) -> list[str]:
    """Looks so many times whether something is there, which is chance; then two tasks race."""
    woken: list[str] = []

    async def sleeper(name: str, seconds: float) -> None:
        await asyncio.sleep(seconds)
        woken.append(name)

    for _ in range(looks):
        await asyncio.sleep(0.05)
    tasks = [asyncio.create_task(sleeper("first", 0.01)), asyncio.create_task(sleeper("last", 0.2))]
    await asyncio.sleep(0.1)
    woken.append("main")
    await asyncio.gather(*tasks)
    return woken


def _wake_threads_in_order(looks: int) -> list[str]:
    woken: list[str] = []

    def sleeper(name: str, seconds: float) -> None:
        time.sleep(seconds)
        woken.append(name)

    for _ in range(looks):
        time.sleep(0.05)
    threads = [threading.Thread(target=sleeper, args=("first", 0.01))]
    threads.append(threading.Thread(target=sleeper, args=("last", 0.2)))
    for thread in threads:
        thread.start()
    time.sleep(0.1)
    woken.append("main")
    for thread in threads:
        thread.join()
    return woken


def _count_from_start(lane: Any, kind: str) -> str:
    """As timers were called once."""
    lane.timers = lane.timers or {}
    lane.timers[kind] = lane.timers.get(kind, -1) + 1
    return f"{kind}{lane.timers[kind]}"


@pytest.mark.parametrize("agent", [_wake_in_order, _wake_threads_in_order])
@pytest.mark.parametrize(("then", "now"), [(20, 0), (3, 5)])
def test_how_often_an_agent_looks_changes_nothing_behind_it(
    tmp_path: Path, agent: Callable[[int], Any], then: int, now: int
) -> None:
    """Nobody waits for sleeps that do not come, and those behind keep their order."""

    def run_agent(looks: int) -> list[str]:
        woken: list[str] = asyncio.run(agent(looks)) if asyncio.iscoroutinefunction(agent) else agent(looks)
        return Pace().ask(woken)

    with reenact.capture(tmp_path / "run"):
        recorded = run_agent(then)
    took_s = []
    for _ in range(3):
        began = time.monotonic()
        with reenact.replay(tmp_path / "run") as run:
            assert run_agent(now) == recorded == "answer to ['first', 'main', 'last']"
        took_s.append(time.monotonic() - began)
        assert not run.divergences
    assert min(took_s) < 0.5


def test_sleeps_of_a_capture_that_counts_them_all_are_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Captures of earlier versions count them from the start of a task."""

    async def agent(order: dict[str, float]) -> str:
        woken = []

        async def sleeper(name: str) -> None:
            await asyncio.sleep(0.01)
            Pace().ask(name)
            await asyncio.sleep(order[name])
            woken.append(name)

        await asyncio.gather(*map(sleeper, order))
        return Pace().ask(woken)

    with monkeypatch.context() as patched, reenact.capture(tmp_path / "run"):
        patched.setattr(Lane, "next_timer", _count_from_start)
        recorded = asyncio.run(agent({"a": 0.2, "b": 0.1}))
    with reenact.replay(tmp_path / "run") as run:
        assert asyncio.run(agent({"a": 0.1, "b": 0.2})) == recorded == "answer to ['b', 'a']"
    assert not run.divergences

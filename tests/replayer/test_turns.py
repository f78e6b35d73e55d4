"""Outcomes come in recorded order where that is possible, and nothing ever hangs."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import queue
import selectors
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, as_completed
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import reenact
from reenact.boundary import Context, Lane, outside
from reenact.replayer.source import Act, ReplaySource
from reenact.replayer.turns import Turns
from tests.twice import captured, replayed, twice


@reenact.tool
async def fetch(name: str, delay_ms: float = 1) -> str:
    await asyncio.sleep(delay_ms / 1000)
    return f"page {name}"


@reenact.tool
def work(name: str, delay_ms: float = 1) -> str:
    time.sleep(delay_ms / 1000)
    return f"done {name}"


def timed(function: Callable[[], Any]) -> tuple[Any, float]:
    began = time.perf_counter()
    return function(), time.perf_counter() - began


# Order


def test_the_winner_of_a_race_wins_again(tmp_path: Path) -> None:
    """The slow one of two takes no time in replay, and still comes second."""

    async def agent(run: reenact.Run) -> Any:
        names = [await done for done in asyncio.as_completed([fetch("slow", 100), fetch("fast", 5)])]
        first, *_ = await asyncio.wait(
            [asyncio.create_task(fetch("late", 100)), asyncio.create_task(fetch("early", 5))],
            return_when=asyncio.FIRST_COMPLETED,
        )
        winners = [task.result() for task in first]
        return [names, winners]

    assert twice(tmp_path / "run", agent) == [["page fast", "page slow"], ["page early"]]


def test_the_order_of_threads_repeats(tmp_path: Path) -> None:
    """A list that several threads append to comes out as it did."""

    def agent(run: reenact.Run) -> list[str]:
        order: list[str] = []
        threads = [
            threading.Thread(target=lambda d=delay: order.append(work(str(d), d))) for delay in (40, 10, 25)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return order

    assert sorted(twice(tmp_path / "run", agent)) == ["done 10", "done 25", "done 40"]


@pytest.mark.parametrize("asks_again", [False, True])
def test_threads_that_overtake_each_other_after_their_answers(asks_again: bool, tmp_path: Path) -> None:
    """Answers go through an SDK before the agent sees them: who was first there is first again.

    So it is where the one that was overtaken does not end then, but goes on with a call.
    """
    asked = threading.Semaphore(0)
    answered = [threading.Event() for _ in range(5)]
    gone_on = [threading.Event() for _ in range(5)]

    def agent(run: reenact.Run, *, in_turn: bool) -> list[int]:
        order: list[int] = []

        @reenact.tool
        def ask(worker: int) -> int:
            asked.release()
            answered[worker].wait()  # for the one before
            return worker

        def run_worker(worker: int) -> None:
            ask(worker)
            if in_turn:  # answered from the first to the last, and going on from the last to the first
                answered[worker + 1].set()
                gone_on[worker].wait()
            order.append(worker)
            if asks_again and worker == 0:
                work("more")

        threads = [threading.Thread(target=run_worker, args=(worker,)) for worker in range(4)]
        for thread in threads:
            thread.start()
        if in_turn:
            for _ in threads:
                asked.acquire()
            answered[0].set()
            answered[4].wait()
        for worker in (3, 1, 2, 0):
            gone_on[worker].set()
            threads[worker].join()
        return order

    assert captured(tmp_path / "run", partial(agent, in_turn=True)) == [3, 1, 2, 0]
    assert replayed(tmp_path / "run", partial(agent, in_turn=False)) == [3, 1, 2, 0]


def test_what_came_in_one_round_waits_for_calls_that_are_not_made_yet(tmp_path: Path) -> None:
    """Two answers came together, after one that was asked for later than the first of the two."""

    async def agent(run: reenact.Run, *, is_recorded: bool) -> list[int]:
        loop = asyncio.get_running_loop()
        ready = [asyncio.Event() for _ in range(3)]
        asked: list[int] = []
        order: list[int] = []

        @reenact.tool
        async def ask(task: int) -> int:
            asked.append(task)
            await ready[task].wait()
            return task

        async def work(task: int) -> None:
            for _ in range(10 * task):
                await asyncio.sleep(0)
            order.append(await ask(task))

        def let_come() -> None:
            while len(asked) < 3:
                time.sleep(0.001)
            loop.call_soon_threadsafe(ready[1].set)
            while not order:
                time.sleep(0.001)
            loop.call_soon_threadsafe(lambda: [ready[task].set() for task in (2, 0)])

        if is_recorded:
            with outside():
                threading.Thread(target=let_come).start()
        await asyncio.gather(*map(work, range(3)))
        return order

    assert captured(tmp_path / "run", partial(agent, is_recorded=True)) == [1, 2, 0]
    assert replayed(tmp_path / "run", partial(agent, is_recorded=False)) == [1, 2, 0]


def test_another_program_gets_time_to_take_an_answer(tmp_path: Path) -> None:
    """Nobody sees when it has come to rest: what it waits for at the same time comes a little later."""

    async def agent(run: reenact.Run) -> list[str]:
        return list(await asyncio.gather(fetch("late", 60), fetch("early", 1)))

    captured(tmp_path / "run", agent)
    source = ReplaySource(tmp_path / "run")
    late, early = source.calls
    late.ended_ms = early.ended_ms + 60
    turns = Turns(source.by_seq, source.times_ms, stall_s=1.0, on_note=print, is_causal=True)
    turns._clock.pause = lambda wake, seconds: bool(wake.wait(seconds))  # type: ignore[method-assign,assignment]

    async def wait_for_both() -> None:
        lane = Lane(Context, "g~")  # type: ignore[arg-type]
        turns.note_happened([early.seq, late.seq])
        waiting = [asyncio.create_task(turns.async_wait(call, lane)) for call in (late, early)]
        await waiting[1]
        await asyncio.sleep(0.05)
        assert not waiting[0].done()  # the clock stands still
        turns._clock.now_s += 1
        await waiting[0]

    asyncio.run(wait_for_both())
    turns.close()


def test_two_threads_may_wait_for_a_deadline_of_one_name(tmp_path: Path) -> None:
    """A job that has asked nothing yet is taken for the one in its place, which another job may be."""
    captured(tmp_path / "run", lambda _: work("one"))
    source = ReplaySource(tmp_path / "run")
    turns = Turns(source.by_seq, source.times_ms, stall_s=1.0, on_note=print)
    turns.let_time_pass()
    passed = [threading.Event(), threading.Event()]
    for number, event in enumerate(passed):
        turns.hold_deadline("0.1@e0", Lane(Context, f"0.{number}"), 0, event.set)  # type: ignore[arg-type]
    assert [event.wait(10) for event in passed] == [True, True]
    turns.close()


def test_a_stream_and_a_call_keep_their_order(tmp_path: Path) -> None:
    """What was answered within a stream is answered there again, and what came after its end after it."""
    ended = asyncio.Event()  # of the recording: no tool runs in replay

    @reenact.tool
    async def trickle() -> Any:
        for number in range(3):
            await asyncio.sleep(0.01)
            yield number
        ended.set()

    @reenact.tool
    async def look_beside() -> str:
        await ended.wait()
        return "page beside"

    async def agent(run: reenact.Run) -> list[Any]:
        order: list[Any] = []

        async def read() -> None:
            async for item in trickle():
                order.append(item)
                if item == 0:
                    order.append(await fetch("from the stream", 1))

        async def call() -> None:
            order.append(await look_beside())

        await asyncio.gather(read(), call())
        return order

    assert twice(tmp_path / "run", agent) == [0, "page from the stream", 1, 2, "page beside"]


# A call that never comes, or is never answered


def gives_up(patience_s: float | None) -> Callable[[reenact.Run], Any]:
    async def agent(run: reenact.Run) -> str:
        try:
            async with asyncio.timeout(patience_s):
                return await fetch("slow", 60_000)
        except TimeoutError:
            return "gave up"

    return agent


def test_a_call_that_was_given_up_and_is_now_waited_for(tmp_path: Path) -> None:
    """It is reported when the stall limit has passed, with what was waited for."""
    captured(tmp_path / "run", gives_up(0.02))
    began = time.perf_counter()
    with pytest.raises(reenact.Diverged) as caught:
        replayed(tmp_path / "run", gives_up(None), stall_s=0.1)
    assert 0.1 < time.perf_counter() - began < 8
    found = caught.value.divergence
    assert found.code == "event_missing"
    assert "tool fetch was cancelled by its caller" in found.detail
    assert "kept waiting" in found.detail
    assert found.expected["data"]["cancelled"] is True


def test_a_thread_that_waits_for_what_was_given_up(tmp_path: Path) -> None:
    """The same where a thread blocks for it."""

    def agent(run: reenact.Run) -> Any:
        return asyncio.run(fetch("slow", 60_000))

    captured(tmp_path / "run", lambda run: asyncio.run(gives_up(0.02)(run)))
    with pytest.raises(reenact.Diverged):
        replayed(tmp_path / "run", agent, stall_s=0.05)


def test_a_sync_call_on_the_loop_is_refused_at_once(tmp_path: Path) -> None:
    """A call on the loop's own thread must not block it, not even for the stall limit."""

    @reenact.tool(name="stop")
    def stop() -> None:
        raise AssertionError("replayed")

    @reenact.tool(name="stop")
    async def never() -> None:
        await asyncio.sleep(60)

    async def recorded(run: reenact.Run) -> None:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(never(), 0.01)

    async def agent(run: reenact.Run) -> None:
        await asyncio.create_task(blocking())

    async def blocking() -> None:
        stop()

    captured(tmp_path / "run", recorded)
    began = time.perf_counter()
    with pytest.raises(reenact.Diverged):
        replayed(tmp_path / "run", agent, stall_s=30)
    assert time.perf_counter() - began < 8


def test_calls_that_never_come_are_reported_at_the_end(tmp_path: Path) -> None:
    """What is left over in the recording, in whichever lane, is missing."""

    def agent(names: list[str]) -> Callable[[reenact.Run], Any]:
        def run_it(run: reenact.Run) -> Any:
            with ThreadPoolExecutor(2) as pool:
                return list(pool.map(work, names))

        return run_it

    captured(tmp_path / "run", agent(["a", "b", "c"]))
    with reenact.replay(tmp_path / "run", policy="lenient") as run:
        agent(["a"])(run)
    assert [found.code for found in run.divergences] == ["event_missing"] * 2
    assert sorted(found.expected["data"]["args"]["name"] for found in run.divergences) == ["b", "c"]


def test_very_many_calls_that_never_come(tmp_path: Path) -> None:
    """Twenty are named, the rest are counted."""

    @reenact.tool
    def quick(number: int) -> int:
        return number

    captured(tmp_path / "run", lambda run: [quick(number) for number in range(100)] and None)
    with reenact.replay(tmp_path / "run", policy="lenient") as run:
        pass
    assert len(run.divergences) == 21
    assert "80 further recorded calls" in run.divergences[-1].detail


def test_a_call_left_running_at_the_end(tmp_path: Path) -> None:
    """A call that nobody waited for when the run ended is neither needed nor waited for in replay."""
    stop = threading.Event()

    @reenact.tool
    def for_ever() -> None:
        stop.wait(10)

    def left_waiting() -> None:
        with contextlib.suppress(reenact.Diverged):
            for_ever()

    def agent(run: reenact.Run) -> str:
        thread = threading.Thread(target=left_waiting)
        thread.start()
        time.sleep(0.02)
        return work("a")

    assert captured(tmp_path / "run", agent) == "done a"
    stop.set()
    result, took_s = timed(lambda: replayed(tmp_path / "run", agent, stall_s=30))
    assert result == "done a"
    assert took_s < 15
    replayed(tmp_path / "run", lambda run: threading.Thread(target=int).start() or work("a"))


# Nothing hangs


def lock_order_inverted(swap: bool) -> Callable[[reenact.Run], Any]:
    def agent(run: reenact.Run) -> Any:
        lock, first = threading.Lock(), threading.Event()

        def locked(name: str, goes_first: bool) -> str:
            if not goes_first:
                first.wait()
            with lock:
                first.set()
                return work(name, 5)

        with ThreadPoolExecutor(2) as pool:
            jobs = [pool.submit(locked, "a", not swap), pool.submit(locked, "b", swap)]
            return [job.result() for job in jobs]

    return agent


def test_locks_taken_in_another_order(tmp_path: Path) -> None:
    """Two threads that take a lock the other way round get their answers, and the order is noted."""
    recorded = captured(tmp_path / "run", lock_order_inverted(False))
    began = time.perf_counter()
    with reenact.replay(tmp_path / "run") as run:
        result = lock_order_inverted(True)(run)
    assert time.perf_counter() - began < 8
    assert result == recorded
    assert run.notes


def test_a_thread_that_blocks_on_another_lanes_work(tmp_path: Path) -> None:
    """A consumer that waits on a queue does not hold up the producer it waits for."""

    def agent(run: reenact.Run) -> Any:
        items: queue.Queue[Any] = queue.Queue()

        def produce() -> None:
            for number in range(5):
                items.put(work(f"made {number}"))
            items.put(None)

        def consume() -> list[str]:
            return [work(f"took {item}") for item in iter(items.get, None)]

        with ThreadPoolExecutor(2) as pool:
            consumer = pool.submit(consume)
            pool.submit(produce)
            return consumer.result()

    twice(tmp_path / "run", agent)
    assert timed(lambda: replayed(tmp_path / "run", agent))[1] < 3


def test_a_main_thread_that_polls(tmp_path: Path) -> None:
    """An agent that sleeps and looks, again and again, is not taken for one that is about to call."""

    def agent(run: reenact.Run) -> Any:
        work("first")
        with ThreadPoolExecutor(2) as pool:
            jobs = [pool.submit(work, str(number)) for number in range(6)]
            while not all(job.done() for job in jobs):
                time.sleep(0.001)
            return [job.result() for job in jobs]

    captured(tmp_path / "run", agent)
    assert timed(lambda: replayed(tmp_path / "run", agent))[1] < 3


def test_a_main_thread_that_computes(tmp_path: Path) -> None:
    """Nor is one that is busy by itself."""

    def agent(run: reenact.Run) -> Any:
        work("first")
        with ThreadPoolExecutor(2) as pool:
            jobs = [pool.submit(work, str(number)) for number in range(4)]
            while not all(job.done() for job in jobs):
                sum(range(1000))
            return [job.result() for job in jobs]

    captured(tmp_path / "run", agent)
    assert timed(lambda: replayed(tmp_path / "run", agent))[1] < 3


def test_a_loop_that_blocks_on_a_thread(tmp_path: Path) -> None:
    """An agent that waits for a thread without awaiting it blocks its loop, as it did before."""

    async def agent(run: reenact.Run) -> Any:
        with ThreadPoolExecutor(2) as pool:
            other = asyncio.create_task(fetch("beside"))
            await asyncio.sleep(0)
            blocking = [pool.submit(work, str(number)).result() for number in range(3)]
            return [blocking, await other]

    captured(tmp_path / "run", agent)
    assert timed(lambda: replayed(tmp_path / "run", agent))[1] < 3


def test_a_loop_that_blocks_on_a_thread_whose_turn_comes_later(tmp_path: Path) -> None:
    """The answer that is due cannot come in on a loop that stands still; it is not waited for for ever."""

    async def agent(run: reenact.Run, *, blocks: bool) -> list[str]:
        answers: list[str] = []
        task = asyncio.create_task(fetch("first", 20))
        for _ in range(20):
            await asyncio.sleep(0)
        thread = threading.Thread(target=lambda: answers.append(work("second", 60)))
        thread.start()
        if not blocks:
            await task
        thread.join()
        return [await task, *answers]

    expected = captured(tmp_path / "run", partial(agent, blocks=False))
    assert replayed(tmp_path / "run", partial(agent, blocks=True)) == expected


def test_a_loop_that_only_ever_blocks(tmp_path: Path) -> None:
    """A coroutine that does nothing but wait for threads is not waited for."""

    async def agent(run: reenact.Run) -> Any:
        results: list[str] = []
        threads = [threading.Thread(target=lambda n=n: results.append(work(str(n)))) for n in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return sorted(results)

    captured(tmp_path / "run", agent)
    assert timed(lambda: replayed(tmp_path / "run", agent))[1] < 3


def test_a_loop_that_never_runs_dry(tmp_path: Path) -> None:
    """A task that polls without end does not keep the others from being answered."""

    async def agent(run: reenact.Run) -> Any:
        stopped = False

        async def poll() -> int:
            rounds = 0
            while not stopped:
                await asyncio.sleep(0)
                rounds += 1
            return 0

        poller = asyncio.create_task(poll())
        results = [await fetch(str(number)) for number in range(5)]
        stopped = True
        return [results, await poller]

    captured(tmp_path / "run", agent)
    assert timed(lambda: replayed(tmp_path / "run", agent))[1] < 3


def test_loops_in_many_threads(tmp_path: Path) -> None:
    """``asyncio.run`` in every thread of a pool."""

    async def inside(name: str) -> Any:
        return await asyncio.gather(*(fetch(f"{name} {number}") for number in range(3)))

    def agent(run: reenact.Run) -> Any:
        with ThreadPoolExecutor(4) as pool:
            return list(pool.map(lambda name: asyncio.run(inside(name)), "abcdefgh"))

    captured(tmp_path / "run", agent)
    assert timed(lambda: replayed(tmp_path / "run", agent))[1] < 3


def test_many_tasks_quickly(tmp_path: Path) -> None:
    """Fifty tasks of twenty calls each replay without a pause for each."""

    @reenact.tool
    async def quick(task: int, call: int) -> list[int]:
        await asyncio.sleep(0)
        return [task, call]

    async def calls(task: int) -> list[Any]:
        return [await quick(task, call) for call in range(20)]

    async def agent(run: reenact.Run) -> Any:
        return await asyncio.gather(*(calls(task) for task in range(50)))

    recorded = captured(tmp_path / "run", agent)
    result, took_s = timed(lambda: replayed(tmp_path / "run", agent))
    assert result == recorded
    assert took_s < 3


def test_many_threads_quickly(tmp_path: Path) -> None:
    """So do a thousand calls of eight threads, within a few."""

    @reenact.tool
    def quick(number: int) -> int:
        return number

    def agent(run: reenact.Run) -> Any:
        with ThreadPoolExecutor(8) as pool:
            return list(pool.map(quick, range(1000)))

    recorded = captured(tmp_path / "run", agent)
    result, took_s = timed(lambda: replayed(tmp_path / "run", agent))
    assert result == recorded
    assert took_s < 4


def test_deeply_nested_gathers(tmp_path: Path) -> None:
    """Tasks that start tasks that start tasks, eight levels down."""

    async def nest(depth: int, name: str) -> Any:
        if depth == 0:
            return await fetch(name, 0)
        return await asyncio.gather(nest(depth - 1, name + "l"), nest(depth - 1, name + "r"))

    async def agent(run: reenact.Run) -> Any:
        return await nest(8, "")

    captured(tmp_path / "run", agent)
    assert timed(lambda: replayed(tmp_path / "run", agent))[1] < 3


class ForeignLoop(asyncio.SelectorEventLoop):
    """A loop that does not show what it has left to do, as loops written in C do not."""

    def __init__(self) -> None:
        super().__init__(selectors.DefaultSelector())

    def __getattribute__(self, name: str) -> Any:
        if name == "_ready" and _asks_from_reenact():
            raise AttributeError(name)
        return super().__getattribute__(name)


def _asks_from_reenact() -> bool:
    return "reenact" in str(sys._getframe(2).f_globals.get("__name__"))


def test_a_loop_that_hides_what_it_has_to_do(tmp_path: Path) -> None:
    """Answers come on any event loop; only their order is less certain."""

    async def agent(run: reenact.Run) -> Any:
        return await asyncio.gather(*(fetch(str(number)) for number in range(10)))

    recorded = captured(tmp_path / "run", agent)
    with reenact.replay(tmp_path / "run") as run, asyncio.Runner(loop_factory=ForeignLoop) as runner:
        assert runner.run(agent(run)) == recorded


def test_a_timeout_around_calls_that_came_in_time(tmp_path: Path) -> None:
    """What was answered in time then is answered in time now."""

    async def agent(run: reenact.Run) -> Any:
        results = []
        for number in range(20):
            async with asyncio.timeout(0.5):
                results.append(await asyncio.gather(fetch(f"{number} a", 3), fetch(f"{number} b", 1)))
        return results

    captured(tmp_path / "run", agent)
    assert timed(lambda: replayed(tmp_path / "run", agent))[1] < 2


def test_a_coroutine_driven_by_hand(tmp_path: Path) -> None:
    """An async tool that runs on no loop at all is recorded and replayed."""

    @reenact.tool
    async def at_once(number: int) -> int:
        return number * 2

    def agent(run: reenact.Run) -> Any:
        try:
            at_once(21).send(None)
        except StopIteration as end:
            return end.value

    assert twice(tmp_path / "run", agent) == 42


WAITS: dict[str, Callable[[threading.Event], Any]] = {
    "an event": lambda done: done.wait(0.3),
    "a thread": lambda done: _started(done.wait).join(0.3),
    "a job": lambda done: _waited_for_job(done, lambda job: job.result(timeout=0.3)),
    "jobs": lambda done: _waited_for_job(done, lambda job: list(as_completed([job], timeout=0.3))),
}


def _started(function: Callable[[], Any]) -> threading.Thread:
    thread = threading.Thread(target=function, daemon=True)
    thread.start()
    return thread


def _waited_for_job(done: threading.Event, wait: Callable[[Any], Any]) -> None:
    with ThreadPoolExecutor(1) as pool:
        job = pool.submit(done.wait)
        try:
            wait(job)
        except TimeoutError:
            pass
        finally:
            done.set()


@pytest.mark.parametrize("wait", WAITS)
def test_what_ended_a_wait_and_never_comes(wait: str, tmp_path: Path) -> None:
    """Its deadline passes, although it did not when it was recorded: nobody else would ever end it."""

    def agent(has_worker: bool) -> Callable[[reenact.Run], None]:
        def run(run: reenact.Run) -> None:
            done = threading.Event()
            if has_worker:
                _started(lambda: (work("in time"), done.set()))
            WAITS[wait](done)
            work("afterwards")

        return run

    captured(tmp_path / "run", agent(has_worker=True))
    with pytest.raises(reenact.Diverged, match="never called"):
        replayed(tmp_path / "run", agent(has_worker=False))


def test_a_wait_beside_a_thread_that_never_rests(tmp_path: Path) -> None:
    """Who computes for ever keeps nobody waiting for longer than the stall limit."""

    def agent(has_worker: bool) -> Callable[[reenact.Run], None]:
        def run(run: reenact.Run) -> None:
            done, is_over = threading.Event(), threading.Event()
            _started(lambda: [hashlib.sha256(bytes(1 << 22)).digest() for _ in iter(is_over.is_set, True)])
            if has_worker:
                _started(lambda: (work("in time"), done.set()))
            done.wait(0.3)
            is_over.set()
            work("afterwards")

        return run

    captured(tmp_path / "run", agent(has_worker=True))
    with pytest.raises(reenact.Diverged, match="never called"):
        replayed(tmp_path / "run", agent(has_worker=False))


def test_a_deadlocked_agent_is_its_own_fault_but_told(tmp_path: Path) -> None:
    """A run that ends while its threads still wait lets them go."""
    released: list[str] = []

    @reenact.tool
    async def never() -> None:
        await asyncio.sleep(60)

    def thread(run: reenact.Run) -> threading.Thread:
        def body() -> None:
            try:
                asyncio.run(asyncio.wait_for(never(), timeout))
            except (reenact.Diverged, TimeoutError) as error:
                released.append(type(error).__name__)

        started = threading.Thread(target=body)
        started.start()
        return started

    timeout = 0.02
    with reenact.capture(tmp_path / "run") as run:
        thread(run).join()
    timeout = 30
    with reenact.replay(tmp_path / "run", stall_s=30) as run:
        waiting = thread(run)
        threading.Event().wait(0.1)
    waiting.join(5)
    assert not waiting.is_alive()
    assert released[0] == "TimeoutError"
    assert run.divergences == []


def test_two_threads_that_wait_for_one_deadline_both_go_on(tmp_path: Path) -> None:
    """Two threads have the same name while it is not known yet which recorded one each is."""
    with reenact.capture(tmp_path / "run"):
        work("a")
    source = ReplaySource(tmp_path / "run")
    acts = {3: [Act(3, "0.1@e0", 1)]}
    turns = Turns(source.by_seq, source.times_ms, stall_s=1, on_note=print, acts=acts)
    context: Any = None
    passed = [threading.Event(), threading.Event()]
    for number, event in enumerate(passed):
        assert turns.choose_wait("0.1@e0") == "nothing"
        turns.hold_deadline("0.1@e0", Lane(context, f"0.{number}"), 0.01, event.set)
    turns.note_happened([2])
    try:
        assert all(event.wait(5) for event in passed)
    finally:
        turns.close()

"""Random programs whose result hangs on who is first: tasks, threads, jobs and tools against deadlines.

A program is a tree drawn from a seed. How long tools and the agent's own work take is drawn for each run
anew; deadlines and sleeps are the program's own, and stay.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import json
import queue
import random
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import anyio

import reenact

ASYNC_LEAVES = ("ask", "ask", "ask", "sleep", "work", "ask_in_thread")
SYNC_LEAVES = ("ask", "ask", "sleep", "work")
ASYNC_KINDS = (
    "steps",
    "gather",
    "timeout",
    "wait_for",
    "move_on",
    "first",
    "wait_some",
    "as_completed",
    "cancel",
    "queue",
    "timer",
    "poll",
    "in_thread",
    "in_thread",
)
SYNC_KINDS = ("steps", "event", "join", "result", "wait_jobs", "jobs_as_completed", "get", "condition")
TIMES_S = (0.001, 0.003, 0.006, 0.012, 0.02)


@dataclass(frozen=True)
class Node:
    """One part of a program: what it does, how long or until when, and with what below it."""

    kind: str
    name: int
    seconds: float
    children: tuple[Node, ...] = ()


def draw_program(rng: random.Random) -> Node:
    names = iter(range(1, 10_000))

    def draw(depth: int, *, is_async: bool) -> Node:
        seconds = rng.choice(TIMES_S)
        if not depth or rng.random() < 0.2:
            return Node(rng.choice(ASYNC_LEAVES if is_async else SYNC_LEAVES), next(names), seconds)
        kind = rng.choice(ASYNC_KINDS if is_async else SYNC_KINDS)
        is_below = is_async and kind != "in_thread"
        children = tuple(draw(depth - 1, is_async=is_below) for _ in range(rng.randint(1, 3)))
        return Node(kind, next(names), seconds, children)

    return Node("steps", 0, 0, tuple(draw(3, is_async=True) for _ in range(rng.randint(1, 2))))


def really_wait(seconds: float) -> None:
    """As a C library would: nobody sees it."""
    lock = threading.Lock()
    lock.acquire()
    lock.acquire(timeout=seconds)


class Machine:
    """Runs a program once, at its own pace."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._lock = threading.Lock()

        @reenact.tool
        async def ask(what: Any, seconds: float) -> str:
            await asyncio.sleep(self._took(seconds))
            return f"answer to {what}"

        @reenact.tool
        def ask_blocking(what: Any, seconds: float) -> str:
            really_wait(self._took(seconds))
            return f"answer to {what}"

        self.ask, self.ask_blocking = ask, ask_blocking

    def _took(self, seconds: float) -> float:
        with self._lock:
            return seconds * self._rng.choice((0.1, 0.5, 1, 1, 2, 3))

    def work(self, seconds: float) -> None:
        really_wait(self._took(seconds))

    # On the event loop

    async def do(self, node: Node) -> Any:
        return await getattr(self, f"_{node.kind}")(node)

    async def _ask(self, node: Node) -> Any:
        return await self.ask(node.name, node.seconds)

    async def _sleep(self, node: Node) -> Any:
        await asyncio.sleep(node.seconds)
        return node.name

    async def _work(self, node: Node) -> Any:
        await asyncio.to_thread(self.work, node.seconds)
        return node.name

    async def _ask_in_thread(self, node: Node) -> Any:
        return await asyncio.to_thread(self.ask_blocking, node.name, node.seconds)

    async def _steps(self, node: Node) -> Any:
        return [await self.do(child) for child in node.children]

    async def _gather(self, node: Node) -> Any:
        return await asyncio.gather(*map(self.do, node.children))

    async def _timeout(self, node: Node) -> Any:
        found: list[Any] = []
        try:
            async with asyncio.timeout(node.seconds):
                for child in node.children:
                    found.append(await self.do(child))  # noqa: PERF401 - it may be cut short
        except TimeoutError:
            found.append("timed out")
        return found

    async def _wait_for(self, node: Node) -> Any:
        try:
            return await asyncio.wait_for(self._steps(node), node.seconds)
        except TimeoutError:
            return "timed out"

    async def _move_on(self, node: Node) -> Any:
        found: list[Any] = []
        with anyio.move_on_after(node.seconds) as scope:
            for child in node.children:
                found.append(await self.do(child))  # noqa: PERF401 - it may be cut short
        return [found, scope.cancelled_caught]

    async def _first(self, node: Node) -> Any:
        tasks = [asyncio.create_task(self.do(child)) for child in node.children]
        done, pending = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in pending:
            task.cancel()
        await asyncio.gather(*pending, return_exceptions=True)
        return [place for place, task in enumerate(tasks) if task in done]

    async def _wait_some(self, node: Node) -> Any:
        tasks = [asyncio.create_task(self.do(child)) for child in node.children]
        done, _ = await asyncio.wait(tasks, timeout=node.seconds)
        came = [place for place, task in enumerate(tasks) if task in done]
        return [came, await asyncio.gather(*tasks)]

    async def _as_completed(self, node: Node) -> Any:
        tasks = [asyncio.create_task(self.do(child)) for child in node.children]
        found: list[Any] = []
        try:
            for task in asyncio.as_completed(tasks, timeout=node.seconds):
                found.append(await task)  # noqa: PERF401
        except TimeoutError:
            found.append("timed out")
        await asyncio.wait(tasks)
        return found

    async def _cancel(self, node: Node) -> Any:
        task = asyncio.create_task(self._steps(node))
        await asyncio.sleep(node.seconds)
        was_cancelled = task.cancel()
        try:
            return [was_cancelled, await task]
        except asyncio.CancelledError:
            return [was_cancelled, "cancelled"]

    async def _queue(self, node: Node) -> Any:
        items: asyncio.Queue[Any] = asyncio.Queue()

        async def produce(child: Node) -> None:
            await items.put(await self.do(child))

        tasks = [asyncio.create_task(produce(child)) for child in node.children]
        found: list[Any] = []
        for _ in tasks:
            try:
                found.append(await asyncio.wait_for(items.get(), node.seconds))
            except TimeoutError:
                found.append("nothing")
        await asyncio.gather(*tasks)
        return found

    async def _timer(self, node: Node) -> Any:
        loop, rang = asyncio.get_running_loop(), []
        handle = loop.call_later(node.seconds, rang.append, "rang")
        found = await self._steps(node)
        seen = list(rang)
        handle.cancel()
        return [found, seen]

    async def _poll(self, node: Node) -> Any:
        task, rounds = asyncio.create_task(self._steps(node)), 0
        while not task.done():
            rounds += 1
            await asyncio.sleep(node.seconds)
        return [rounds, await task]

    async def _in_thread(self, node: Node) -> Any:
        return await asyncio.to_thread(self.do_in_thread, Node("steps", node.name, 0, node.children))

    # In threads

    def do_in_thread(self, node: Node) -> Any:
        return getattr(self, f"_thread_{node.kind}", self._thread_leaf)(node)

    def _thread_leaf(self, node: Node) -> Any:
        if node.kind == "sleep":
            time.sleep(node.seconds)
        elif node.kind == "work":
            self.work(node.seconds)
        else:
            return self.ask_blocking(node.name, node.seconds)
        return node.name

    def _thread_steps(self, node: Node) -> Any:
        return [self.do_in_thread(child) for child in node.children]

    def _thread_event(self, node: Node) -> Any:
        done, found = threading.Event(), []
        thread = threading.Thread(target=lambda: [found.append(self._thread_steps(node)), done.set()])
        thread.start()
        came = done.wait(node.seconds)
        thread.join()
        return [came, found]

    def _thread_join(self, node: Node) -> Any:
        thread = threading.Thread(target=self._thread_steps, args=(node,))
        thread.start()
        thread.join(node.seconds)
        is_alive = thread.is_alive()
        thread.join()
        return is_alive

    def _thread_result(self, node: Node) -> Any:
        with ThreadPoolExecutor(1) as pool:
            job = pool.submit(self._thread_steps, node)
            try:
                return job.result(timeout=node.seconds)
            except TimeoutError:
                return "timed out"

    def _thread_wait_jobs(self, node: Node) -> Any:
        with ThreadPoolExecutor(3) as pool:
            jobs = [pool.submit(self.do_in_thread, child) for child in node.children]
            done, _ = concurrent.futures.wait(jobs, timeout=node.seconds)
        return [place for place, job in enumerate(jobs) if job in done]

    def _thread_jobs_as_completed(self, node: Node) -> Any:
        found: list[Any] = []
        with ThreadPoolExecutor(3) as pool:
            jobs = [pool.submit(self.do_in_thread, child) for child in node.children]
            try:
                for job in concurrent.futures.as_completed(jobs, timeout=node.seconds):
                    found.append(job.result())  # noqa: PERF401
            except TimeoutError:
                found.append("timed out")
        return found

    def _thread_get(self, node: Node) -> Any:
        items: queue.Queue[Any] = queue.Queue()
        threads = [
            threading.Thread(target=lambda child=child: items.put(self.do_in_thread(child)))
            for child in node.children
        ]
        for thread in threads:
            thread.start()
        found: list[Any] = []
        for _ in threads:
            try:
                found.append(items.get(timeout=node.seconds))
            except queue.Empty:
                found.append("nothing")
        for thread in threads:
            thread.join()
        return found

    def _thread_condition(self, node: Node) -> Any:
        changed, found = threading.Condition(), []

        def work() -> None:
            item = self._thread_steps(node)
            with changed:
                found.append(item)
                changed.notify_all()

        thread = threading.Thread(target=work)
        with changed:
            thread.start()
            came = changed.wait_for(lambda: bool(found), node.seconds)
        thread.join()
        return [bool(came), found]

    def main(self, program: Node) -> Any:
        try:
            return asyncio.run(self.do(program))
        except asyncio.CancelledError:  # scopes of anyio's and of asyncio's that end at once leave one over
            return "cancelled"


@contextmanager
def busy_machine(rng: random.Random) -> Iterator[None]:
    """Threads of nobody's that take the interpreter away now and then, in some of the runs."""
    is_over = threading.Event()

    def burn() -> None:
        while not is_over.is_set():
            sum(range(rng.randint(1, 20_000)))
            really_wait(rng.random() / 500)

    threads = [threading.Thread(target=burn) for _ in range(rng.choice((0, 0, 0, 1, 2)))]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        is_over.set()
        for thread in threads:
            thread.join()


@dataclass
class Outcome:
    """What came of recording a program and replaying it."""

    recorded: Any
    replayed: Any
    divergence: str
    notes: list[str]

    @property
    def is_false(self) -> bool:
        """Whether it is called the same although it is not."""
        return not self.divergence and self.recorded != self.replayed


def asked(path: Path) -> list[int]:
    """The names of the parts that asked a tool when the program was recorded."""
    calls = (json.loads(line) for line in (path / "events.jsonl").read_text().splitlines())
    return [call["data"]["args"]["what"] for call in calls if call["type"] == "tool_call"]


def with_other_question(node: Node, name: int) -> Node:
    """The program, but the part of that *name* asks something else."""
    other = node.name + 100_000 if node.name == name else node.name
    return replace(
        node, name=other, children=tuple(with_other_question(each, name) for each in node.children)
    )


def record_and_replay(seed: int, path: Path, *, is_planted: bool = False) -> Outcome | None:
    """With *is_planted*, one of the calls that were made asks something else in replay.

    ``None`` where the program made none.
    """
    rng = random.Random(f"race {seed}")
    program = draw_program(rng)
    with busy_machine(rng), reenact.capture(path):
        recorded = Machine(random.Random(rng.random())).main(program)
    if is_planted:
        questions = asked(path)
        if not questions:
            return None
        program = with_other_question(program, rng.choice(questions))
    divergence, replayed, run = "", None, None
    try:
        with busy_machine(rng), reenact.replay(path, stall_s=5) as run:
            replayed = Machine(random.Random(rng.random())).main(program)
    except reenact.Diverged as error:
        divergence = str(error)
    return Outcome(recorded, replayed, divergence, run.notes if run is not None else [])

"""Random programs whose requests depend on which of their own tasks finished first.

A program is a tree of nodes, drawn from a seed. It runs once while it is recorded, and again in replay at
another pace, on another schedule, with tasks put around its tasks or taken away and with pools of another
size: no difference may be found. Then one real difference is planted, which must be.
``make test-hard`` runs many of each kind, ``REENACT_PROGRAMS=5000`` so many; ``REENACT_SEED`` says which.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import itertools
import os
import queue
import random
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

import pytest

import reenact
from tests.hard import SEED, rounds
from tests.replayer.programs import ShufflingLoop

PROGRAMS = int(os.environ.get("REENACT_PROGRAMS") or rounds(40, 600))
FIRST = (SEED - 1) * 100_000
SHARDS = 4
ASYNC_KINDS = ("gather", "as_completed", "task_queue", "locked", "in_thread", "in_executor")
SYNC_KINDS = ("threads", "thread_queue", "pool", "job_groups", "job_queue", "thread_locked")
COLLECTING = ("as_completed", "task_queue", "thread_queue", "pool", "job_groups")
LEAVES = ("ask", "ask", "ask", "when", "draw", "remember")


@dataclass(frozen=True)
class Node:
    """One part of a program: what it does, under which name, and with what below it."""

    kind: str
    name: str
    children: tuple[Node, ...] = ()


@dataclass
class Schedule:
    """All that may differ between two runs of one program."""

    rng: random.Random
    around_each: int = 0
    around_all: int = 0
    workers: int = 3

    def pause(self) -> None:
        threading.Event().wait(self.rng.choice((0, 0, 0.001, 0.003)))

    async def pause_on_loop(self) -> None:
        await asyncio.sleep(self.rng.choice((0, 0, 0.001, 0.003)))


@dataclass
class Machine:
    """Runs a program, once."""

    run: Any
    schedule: Schedule
    answers: Iterator[int] = field(default_factory=lambda: itertools.count(1))
    backwards: str = ""
    """The node that hands on what it collected in another order than it came."""
    sync_kinds: ClassVar[tuple[str, ...]] = SYNC_KINDS

    def __post_init__(self) -> None:
        @reenact.tool
        def ask(what: Any) -> str:
            self.schedule.pause()
            return f"answer {next(self.answers)}"

        @reenact.tool
        async def ask_on_loop(what: Any) -> str:
            await self.schedule.pause_on_loop()
            return f"answer {next(self.answers)}"

        self.ask, self.ask_on_loop = ask, ask_on_loop

    def leaf(self, node: Node) -> Any:
        if node.kind == "when":
            return self.ask([node.name, self.run.clock.now()])
        if node.kind == "draw":
            return self.ask([node.name, self.run.rng.random()])
        if node.kind == "remember":
            self.run.memory_write("notes", node.name)
            return node.name
        return self.ask(node.name)

    async def leaf_on_loop(self, node: Node) -> Any:
        if node.kind == "when":
            return await self.ask_on_loop([node.name, self.run.clock.now()])
        if node.kind == "draw":
            return await self.ask_on_loop([node.name, self.run.rng.random()])
        if node.kind == "remember":
            self.run.memory_write("notes", node.name)
            return node.name
        return await self.ask_on_loop(node.name)

    def collected(self, node: Node, found: list[Any]) -> list[Any]:
        return [node.name, found[::-1] if self.backwards == node.name else found]

    # In threads

    def do(self, node: Node) -> Any:
        if not node.children:
            return self.leaf(node)
        return getattr(self, f"_{node.kind}")(node)

    def _around(self, work: Callable[[], Any], count: int) -> Any:
        """Do *work* in so many threads around each other."""
        if not count:
            return work()
        found: list[Any] = []
        thread = threading.Thread(target=lambda: found.append(self._around(work, count - 1)))
        thread.start()
        thread.join()
        return found[0]

    def _sequence(self, node: Node) -> Any:
        return [self.do(child) for child in node.children]

    def _threads(self, node: Node) -> Any:
        found: dict[int, Any] = {}

        def work(place: int, child: Node) -> None:
            found[place] = self._around(lambda: self.do(child), self.schedule.around_each)

        def all_of_them() -> None:
            threads = [threading.Thread(target=work, args=pair) for pair in enumerate(node.children)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()

        self._around(all_of_them, self.schedule.around_all)
        return self.ask([node.name, [found[place] for place in sorted(found)]])

    def _thread_queue(self, node: Node) -> Any:
        done: queue.Queue[Any] = queue.Queue()

        def work(child: Node) -> None:
            try:
                found = self.do(child)
            except Exception as error:
                found = error  # nobody may wait for it in vain
            self.schedule.pause()
            done.put(found)

        threads = [threading.Thread(target=work, args=(child,)) for child in node.children]
        for thread in threads:
            thread.start()
        found = [done.get() for _ in threads]
        for thread in threads:
            thread.join()
        return self.ask(self.collected(node, found))

    def _job_queue(self, node: Node) -> Any:
        """As many workers as there are this time take what is next."""
        todo: queue.Queue[tuple[int, Node]] = queue.Queue()
        found: dict[int, Any] = {}
        for job in enumerate(node.children):
            todo.put(job)

        def work() -> None:
            while True:
                try:
                    place, child = todo.get_nowait()
                except queue.Empty:
                    return
                found[place] = self.ask([child.name, "as a job"])

        threads = [threading.Thread(target=work) for _ in range(self.schedule.workers)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return self.ask([node.name, [found[place] for place in sorted(found)]])

    def _pool(self, node: Node) -> Any:
        def work(child: Node) -> Any:
            found = self.do(child)
            self.schedule.pause()
            return found

        with ThreadPoolExecutor(len(node.children)) as pool:
            jobs = [pool.submit(work, child) for child in node.children]
            return self.ask(self.collected(node, [job.result() for job in as_completed(jobs)]))

    def _job_groups(self, node: Node) -> Any:
        """Those that had ended whenever it looked."""
        found = []
        with ThreadPoolExecutor(len(node.children)) as pool:
            left = {pool.submit(self.do, child): place for place, child in enumerate(node.children)}
            while left:
                self.schedule.pause()
                done, _ = concurrent.futures.wait(left, None, "FIRST_COMPLETED")
                ended = sorted(done, key=left.__getitem__)
                found += [*([left.pop(job), job.result()] for job in ended), "next"]
        return self.ask(self.collected(node, found))

    def _thread_locked(self, node: Node) -> Any:
        lock, found = threading.Lock(), dict[int, Any]()

        def work(place: int, child: Node) -> None:
            with lock:
                found[place] = self.ask([child.name, "locked"])

        threads = [threading.Thread(target=work, args=pair) for pair in enumerate(node.children)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return [found[place] for place in sorted(found)]

    # On an event loop

    async def do_on_loop(self, node: Node) -> Any:
        if not node.children:
            return await self.leaf_on_loop(node)
        if node.kind in self.sync_kinds:
            return await asyncio.to_thread(self.do, node)
        return await getattr(self, f"_{node.kind}")(node)

    # Two functions, as a program would have them: tasks of one function are expected to come to the same.

    async def _around_each_on_loop(self, work: Callable[[], Any], count: int) -> Any:
        return await (asyncio.create_task(self._around_each_on_loop(work, count - 1)) if count else work())

    async def _around_all_on_loop(self, work: Callable[[], Any], count: int) -> Any:
        return await (asyncio.create_task(self._around_all_on_loop(work, count - 1)) if count else work())

    async def _steps(self, node: Node) -> Any:
        return [await self.do_on_loop(child) for child in node.children]

    async def _gather(self, node: Node) -> Any:
        async def each(child: Node) -> Any:
            return await self._around_each_on_loop(lambda: self.do_on_loop(child), self.schedule.around_each)

        async def all_of_them() -> Any:
            return await asyncio.gather(*map(each, node.children))

        found = await self._around_all_on_loop(all_of_them, self.schedule.around_all)
        return await self.ask_on_loop([node.name, found])

    async def _as_completed(self, node: Node) -> Any:
        done = asyncio.as_completed([self.do_on_loop(child) for child in node.children])
        return await self.ask_on_loop(self.collected(node, [await found for found in done]))

    async def _task_queue(self, node: Node) -> Any:
        done: asyncio.Queue[Any] = asyncio.Queue()

        async def work(child: Node) -> None:
            try:
                found = await self.do_on_loop(child)
            except Exception as error:
                found = error
            await self.schedule.pause_on_loop()
            await done.put(found)

        tasks = [asyncio.create_task(work(child)) for child in node.children]
        found = [await done.get() for _ in tasks]
        await asyncio.gather(*tasks)
        return await self.ask_on_loop(self.collected(node, found))

    async def _locked(self, node: Node) -> Any:
        lock = asyncio.Lock()

        async def work(child: Node) -> Any:
            async with lock:
                return await self.ask_on_loop([child.name, "locked"])

        return await asyncio.gather(*map(work, node.children))

    async def _in_thread(self, node: Node) -> Any:
        return await asyncio.to_thread(self._sequence, node)

    async def _in_executor(self, node: Node) -> Any:
        with ThreadPoolExecutor(self.schedule.workers) as pool:
            loop = asyncio.get_running_loop()
            return await asyncio.gather(
                *(loop.run_in_executor(pool, self.do, child) for child in node.children)
            )

    def main(self, program: Node, loop_factory: Any = None) -> Any:
        with asyncio.Runner(loop_factory=loop_factory) as runner:
            return runner.run(self.do_on_loop(program))


def draw_program(
    rng: random.Random,
    *,
    is_plain: bool = False,
    more_leaves: tuple[str, ...] = (),
    more_sync: tuple[str, ...] = (),
    more_async: tuple[str, ...] = (),
) -> Node:
    """With *is_plain* all that tasks ask is their own, and none depends on which of them came first."""
    leaves = (*(("ask", "remember") if is_plain else LEAVES), *more_leaves)
    sync_kinds = tuple(kind for kind in SYNC_KINDS + more_sync if not is_plain or kind not in COLLECTING)
    async_kinds = tuple(kind for kind in ASYNC_KINDS + more_async if not is_plain or kind not in COLLECTING)
    names = (f"node {number}" for number in itertools.count(1))

    def draw(depth: int, kinds: tuple[str, ...], order: str) -> Node:
        if not depth or rng.random() < 0.25:
            return Node(rng.choice(leaves), next(names))
        kind = rng.choice((*kinds, order))
        is_sync = kind in sync_kinds or kind in ("in_thread", "in_executor") or order == "sequence"
        below = (sync_kinds, "sequence") if is_sync else (async_kinds + sync_kinds, "steps")
        left = 0 if kind in ("locked", "thread_locked", "job_queue") else depth - 1
        children = tuple(draw(left, *below) for _ in range(rng.randint(1, 4)))
        return Node(kind, next(names), children)

    return Node("steps", "program", tuple(draw(3, async_kinds + sync_kinds, "steps") for _ in range(2)))


def draw_schedules(rng: random.Random, *, is_same_shape: bool) -> tuple[Schedule, Schedule]:
    """Those of a recording and of its replay; the shape is tasks around tasks and the number of workers."""
    shapes = [(rng.randint(0, 1), rng.randint(0, 1), rng.randint(1, 4)) for _ in range(2)]
    then, now = [shapes[0], shapes[0]] if is_same_shape else shapes
    return Schedule(random.Random(rng.random()), *then), Schedule(random.Random(rng.random()), *now)


def record(program: Node, schedule: Schedule, path: Path) -> Any:
    with reenact.capture(path) as run:
        return Machine(run, schedule).main(program)


def replay(program: Node, schedule: Schedule, path: Path, *, is_plain: bool = False, **changes: Any) -> Any:
    """What *is_plain* depends on nobody's order, so even a loop may run it that calls back in any order."""
    ShufflingLoop.rng = random.Random(schedule.rng.random())
    interval = sys.getswitchinterval()
    sys.setswitchinterval(schedule.rng.choice((1e-5, 1e-3, interval)))
    try:
        with reenact.replay(path, stall_s=5) as run:
            machine = Machine(run, schedule, iter(()), **changes)
            return machine.main(program, schedule.rng.choice((None, ShufflingLoop)) if is_plain else None)
    finally:
        sys.setswitchinterval(interval)


@pytest.mark.parametrize("shard", range(SHARDS))
def test_an_unchanged_program_is_the_same(shard: int) -> None:
    """Whatever its schedule: every call gets its own outcome, and no difference is found."""
    for seed in range(FIRST + shard, FIRST + PROGRAMS, SHARDS):
        rng = random.Random(seed)
        program = draw_program(rng, is_plain=seed % 3 == 0)
        then, now = draw_schedules(rng, is_same_shape=seed % 3 != 0)
        with tempfile.TemporaryDirectory() as folder:
            recorded = record(program, then, Path(folder) / "run")
            try:
                replayed = replay(program, now, Path(folder) / "run", is_plain=seed % 3 == 0)
            except reenact.Diverged as error:
                raise AssertionError(f"program {seed}: {error}\n{error.divergence}") from error
        assert replayed == recorded, f"program {seed}"


def walk(node: Node) -> Iterator[Node]:
    yield node
    for child in node.children:
        yield from walk(child)


def change(node: Node, name: str, how: Callable[[Node], tuple[Node, ...]]) -> tuple[Node, ...]:
    """*node* with the one of that *name* replaced by what *how* makes of it."""
    if node.name == name:
        return how(node)
    return (
        replace(node, children=tuple(new for child in node.children for new in change(child, name, how))),
    )


CHANGES: dict[str, Callable[[Node], tuple[Node, ...]]] = {
    "another argument": lambda node: (replace(node, name=f"{node.name}!"),),
    "a call missing": lambda node: (),
    "a call twice": lambda node: (node, node),
}


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
@pytest.mark.parametrize("shard", range(SHARDS))
def test_a_planted_difference_is_always_found(shard: int) -> None:
    """Another argument, a call missing, a call twice, results that another order brought."""
    for seed in range(FIRST + shard, FIRST + PROGRAMS, SHARDS):
        rng = random.Random(-1 - seed)
        program = draw_program(rng)
        leaves = [node for node in walk(program) if not node.children]
        rows = [node for node in walk(program) if node.kind in COLLECTING and len(node.children) > 1]
        planted, changes = program, {}
        if rows and rng.random() < 0.3:
            changes = {"backwards": rng.choice(rows).name}
        else:
            how = rng.choice(list(CHANGES))
            planted = change(program, rng.choice(leaves).name, CHANGES[how])[0]
        # Tasks around others hide whose result came first; turned round, it may be as it was recorded.
        then, now = draw_schedules(rng, is_same_shape=bool(changes) or seed % 2 == 0)
        with tempfile.TemporaryDirectory() as folder:
            record(program, then, Path(folder) / "run")
            with pytest.raises(reenact.Diverged):
                replay(planted, now, Path(folder) / "run", **changes)
                pytest.fail(f"program {seed} was accepted")

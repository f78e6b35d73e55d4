"""Tasks and jobs with numbered hashes are tasks and jobs like any other."""

from __future__ import annotations

import asyncio
import concurrent.futures
import re
import sys
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest

import reenact


async def own_name() -> tuple[asyncio.Task[object] | None, str]:
    await asyncio.sleep(0)
    task = asyncio.current_task()
    return task, task.get_name() if task else ""


def test_a_task_is_what_asyncio_promises(tmp_path: Path) -> None:
    """Its type, name, repr, equality and place among all tasks."""

    async def main() -> None:
        task, named = asyncio.create_task(own_name()), asyncio.create_task(own_name(), name="mine")
        assert isinstance(task, asyncio.Task)
        assert asyncio.isfuture(task)
        assert repr(task).startswith("<Task pending name='Task-")
        assert task in asyncio.all_tasks()
        assert task != named
        found, name = await task
        assert found is task
        assert re.fullmatch(r"Task-\d+", name)
        assert await named == (named, "mine")
        assert asyncio.get_running_loop().get_task_factory() is None
        weak = asyncio.create_task(own_name())
        weak.cancel()
        with pytest.raises(asyncio.CancelledError):
            await weak

    with reenact.capture(tmp_path / "run", sources=()):
        asyncio.run(main())


def test_a_job_is_what_executors_promise(tmp_path: Path) -> None:
    """Its type, repr and result, and the future in which an event loop waits for it."""

    async def wait_for(pool: ThreadPoolExecutor) -> None:
        job = asyncio.get_running_loop().run_in_executor(pool, abs, -2)
        assert isinstance(job, asyncio.Future)
        assert await job == 2
        assert await asyncio.wrap_future(pool.submit(abs, -3)) == 3

    with reenact.capture(tmp_path / "run", sources=()), ThreadPoolExecutor(1) as pool:
        job = pool.submit(abs, -1)
        assert isinstance(job, Future)
        assert concurrent.futures.wait([job]).done == {job}
        assert job.result() == 1
        assert repr(job).startswith("<Future at 0x")
        asyncio.run(wait_for(pool))


def test_tasks_keep_their_hash_after_the_run(tmp_path: Path) -> None:
    """A set that outlives the run still finds them."""
    kept: set[object] = set()

    async def main() -> None:
        with reenact.capture(tmp_path / "run", sources=()), ThreadPoolExecutor(1) as pool:
            kept.update([asyncio.create_task(own_name()), pool.submit(abs, -1)])
            await asyncio.sleep(0.01)

    asyncio.run(main())
    assert all(each in kept for each in list(kept))


def test_a_task_factory_of_the_program_makes_its_tasks(tmp_path: Path) -> None:
    """They are what it makes, and stay where they are in sets."""

    class Own(asyncio.Task[object]):
        pass

    async def main() -> None:
        loop = asyncio.get_running_loop()
        loop.set_task_factory(lambda loop, coro, **options: Own(coro, loop=loop, **options))  # type: ignore[arg-type]
        assert type(asyncio.create_task(own_name())) is Own

    with reenact.capture(tmp_path / "run", sources=()):
        asyncio.run(main())


@pytest.mark.skipif(sys.version_info < (3, 12), reason="eager tasks are new in Python 3.12")
def test_eager_tasks_start_at_once_and_start_others(tmp_path: Path) -> None:
    """asyncio's own eager factory stays in force, also for the tasks that an eager task starts."""
    ran = []

    async def inner() -> None:
        ran.append("inner")

    async def outer() -> None:
        inside = asyncio.create_task(inner())
        ran.append("outer")
        await inside

    async def main() -> None:
        loop = asyncio.get_running_loop()
        loop.set_task_factory(asyncio.eager_task_factory)  # type: ignore[attr-defined]
        task = asyncio.create_task(outer(), name="eager")
        assert ran == ["inner", "outer"]
        assert loop.get_task_factory() is asyncio.eager_task_factory  # type: ignore[attr-defined]
        await task
        assert task.get_name() == "eager"

    with reenact.capture(tmp_path / "run", sources=()):
        asyncio.run(main())


def test_a_task_is_of_the_class_that_asyncio_has_now(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """nest_asyncio puts those in Python there; a task of another class could not run inside one of them."""
    in_python = asyncio.tasks._PyTask, asyncio.futures._PyFuture  # type: ignore[attr-defined]

    async def main() -> None:
        monkeypatch.setattr(asyncio.tasks, "Task", in_python[0])
        monkeypatch.setattr(asyncio.futures, "Future", in_python[1])
        assert isinstance(asyncio.create_task(own_name()), in_python[0])
        with ThreadPoolExecutor(1) as pool:
            assert isinstance(asyncio.get_running_loop().run_in_executor(pool, abs, -2), in_python[1])

    with reenact.capture(tmp_path / "run", sources=()):
        asyncio.run(main())
    monkeypatch.undo()

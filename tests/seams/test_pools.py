"""Jobs for pools of processes, with real processes."""

from __future__ import annotations

import asyncio
import gc
import multiprocessing
import os
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import joblib
import pytest

import reenact
from reenact.errors import Diverged

SPAWNED = multiprocessing.get_context("spawn")


def twice(number: int, *, by: int = 2) -> tuple[int, int]:
    """The result, and who made it."""
    return number * by, os.getpid()


def fail(text: str) -> None:
    raise ValueError(text)


def recorded_and_replayed(path: Path, work: Any) -> Any:
    with reenact.capture(path) as run:
        recorded = work()
    assert run.warnings == []
    with reenact.replay(path) as again:
        assert work() == recorded
    assert (again.divergences, again.blocked) == ([], [])
    return recorded


def submitted() -> list[Any]:
    with ProcessPoolExecutor(2, mp_context=SPAWNED) as pool:
        futures = [pool.submit(twice, number, by=3) for number in range(4)]
        return [future.result() for future in futures]


def mapped() -> list[Any]:
    with ProcessPoolExecutor(2, mp_context=SPAWNED) as pool:
        return list(pool.map(twice, range(5), chunksize=2))


def awaited() -> list[Any]:
    async def ask() -> list[Any]:
        loop = asyncio.get_running_loop()
        with ProcessPoolExecutor(2, mp_context=SPAWNED) as pool:
            return await asyncio.gather(*(loop.run_in_executor(pool, twice, number) for number in range(4)))

    return asyncio.run(ask())


def of_joblib() -> list[Any]:
    """More calls than are given to it at first; the others follow from within."""
    found = joblib.Parallel(n_jobs=2, pre_dispatch=2)(joblib.delayed(twice)(n, by=3) for n in range(6))
    gc.collect()  # its semaphores, when nobody is making others: Python's count of them is not reentrant
    return list(found)


@pytest.mark.parametrize("work", [submitted, mapped, awaited, of_joblib])
def test_the_outcome_is_the_recorded_one(tmp_path: Path, work: Any) -> None:
    """The same processes are named again, though none was started."""
    found = recorded_and_replayed(tmp_path / "run", work)
    assert os.getpid() not in {pid for _, pid in found}


def test_a_replay_says_that_jobs_did_not_run(tmp_path: Path) -> None:
    """Their code may have changed, which nobody would see."""
    with reenact.capture(tmp_path / "run"):
        submitted()
    with reenact.replay(tmp_path / "run") as run:
        submitted()
    said = [note for note in run.notes if "was answered, not run" in note]
    assert [note.split()[0] for note in said] == [f"{__name__}.twice"]


def test_what_a_job_raises_is_raised_again(tmp_path: Path) -> None:
    def work() -> str:
        with ProcessPoolExecutor(1, mp_context=SPAWNED) as pool:
            error = pool.submit(fail, "no").exception()
        return f"{type(error).__name__}: {error}"

    assert recorded_and_replayed(tmp_path / "run", work) == "ValueError: no"


def in_an_argument(number: int) -> Any:
    with ProcessPoolExecutor(1, mp_context=SPAWNED) as pool:
        return pool.submit(twice, number).result()


def in_a_partial(number: int) -> Any:
    with ProcessPoolExecutor(1, mp_context=SPAWNED) as pool:
        return pool.submit(partial(twice, number)).result()


class Twice:
    def __init__(self, number: int) -> None:
        self.number = number

    def __call__(self) -> int:
        return 2 * self.number


def in_an_object(number: int) -> Any:
    with SPAWNED.Pool(1) as pool:
        return pool.apply(Twice(number))


def in_a_batch(number: int) -> Any:
    return joblib.Parallel(n_jobs=2)([joblib.delayed(twice)(number)])


@pytest.mark.parametrize("work", [in_an_argument, in_a_partial, in_an_object, in_a_batch])
def test_another_job_is_a_divergence(tmp_path: Path, work: Callable[[int], Any]) -> None:
    """It is refused where it is submitted, wherever it has its argument."""
    with reenact.capture(tmp_path / "run"):
        work(1)
    with pytest.raises(Diverged, match=r"(?i)twice|BatchedCalls"), reenact.replay(tmp_path / "run"):
        work(2)


def test_outside_a_run_nothing_is_changed() -> None:
    with ProcessPoolExecutor(1, mp_context=SPAWNED) as pool:
        assert pool.submit(twice, 2).result()[0] == 4

"""Who takes a lock of the agent's own after whom is part of a recording."""

from __future__ import annotations

import copy
import json
import logging
import logging.handlers
import pickle
import queue
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import reenact
from reenact.seams.stdlib.locks import LockInTurn
from reenact.store.reader import CaptureReader

_REAL_LOCK = type(queue.Queue().mutex)


@reenact.tool
def ask(what: Any) -> str:
    return f"answer to {what}"


WORKERS = range(4)
SLOWING, HASTENING = (0, 20, 40, 60), (60, 40, 20, 0)
"""How many milliseconds each worker takes before it comes to the lock: others in the replay."""


def run_all(work: Callable[[int], None]) -> None:
    threads = [threading.Thread(target=work, args=(worker,)) for worker in WORKERS]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def under(make: Callable[[], Any], delays_ms: tuple[int, ...]) -> list[int]:
    """Each does something else afterwards, so its end says nothing about when it came."""
    lock, found = make(), []

    def work(worker: int) -> None:
        time.sleep(delays_ms[worker] / 1000)
        with lock:
            found.append(worker)
        time.sleep((60 - delays_ms[worker]) / 1000)

    run_all(work)
    return found


def under_a_lock(delays_ms: tuple[int, ...]) -> list[int]:
    return under(threading.Lock, delays_ms)


def under_a_lock_taken_twice(delays_ms: tuple[int, ...]) -> list[int]:
    class Twice:
        def __init__(self) -> None:
            self.lock = threading.RLock()

        def __enter__(self) -> None:
            self.lock.acquire()
            self.lock.acquire()

        def __exit__(self, *_: object) -> None:
            self.lock.release()
            self.lock.release()

    return under(Twice, delays_ms)


def under_a_condition(delays_ms: tuple[int, ...]) -> list[int]:
    return under(threading.Condition, delays_ms)


def in_a_semaphore(delays_ms: tuple[int, ...]) -> list[int]:
    return under(lambda: threading.Semaphore(3), delays_ms)


def in_a_bounded_semaphore(delays_ms: tuple[int, ...]) -> list[int]:
    return under(lambda: threading.BoundedSemaphore(3), delays_ms)


def at_a_barrier(delays_ms: tuple[int, ...]) -> list[int]:
    barrier, found = threading.Barrier(len(WORKERS)), [-1] * len(WORKERS)

    def work(worker: int) -> None:
        time.sleep(delays_ms[worker] / 1000)
        found[worker] = barrier.wait()

    run_all(work)
    return found


def woken_all_at_once(delays_ms: tuple[int, ...]) -> list[int]:
    """Each waits without end for a condition that the last one makes true."""
    condition, came, found = threading.Condition(), [], []

    def work(worker: int) -> None:
        time.sleep(delays_ms[worker] / 1000)
        with condition:
            came.append(worker)
            condition.notify_all()
            condition.wait_for(lambda: len(came) == len(WORKERS))
            found.append(worker)

    run_all(work)
    return came + found


def who_finds_it_free(delays_ms: tuple[int, ...]) -> list[int]:
    """One that is not free is left alone."""
    lock, found = threading.Lock(), []

    def work(worker: int) -> None:
        time.sleep(delays_ms[worker] / 1000)
        if lock.acquire(blocking=False):
            found.append(worker)
        elif lock.acquire(timeout=0.001):
            found.append(-worker)

    run_all(work)
    return found


def into_a_log(delays_ms: tuple[int, ...]) -> list[int]:
    """The handler has a lock around its queue."""
    records: queue.Queue[logging.LogRecord] = queue.Queue()
    log = logging.Logger("agent")
    log.addHandler(logging.handlers.QueueHandler(records))

    def work(worker: int) -> None:
        time.sleep(delays_ms[worker] / 1000)
        log.warning("%s", worker)

    run_all(work)
    return [int(records.get().message) for _ in WORKERS]


AGENTS = [
    into_a_log,
    under_a_lock,
    under_a_lock_taken_twice,
    under_a_condition,
    in_a_semaphore,
    in_a_bounded_semaphore,
    at_a_barrier,
    woken_all_at_once,
    who_finds_it_free,
]


@pytest.mark.parametrize("agent", AGENTS)
def test_who_came_first_comes_first_again(agent: Callable[..., list[int]], tmp_path: Path) -> None:
    """However long everything takes this time; the clock is real here."""
    with reenact.capture(tmp_path / "run", sources=["random"]):
        ask("first")
        recorded = agent(SLOWING)
        ask(recorded)
    with reenact.replay(tmp_path / "run") as run:
        ask("first")
        replayed = agent(HASTENING)
        ask(replayed)
    assert replayed == recorded
    assert not run.divergences


def test_a_result_of_another_thread_is_a_difference(tmp_path: Path) -> None:
    """The order is repeated; what is done in it is compared as ever."""
    with reenact.capture(tmp_path / "run", sources=["random"]):
        ask(under_a_lock(SLOWING))
    with pytest.raises(reenact.Diverged), reenact.replay(tmp_path / "run"):
        ask([worker + 10 for worker in under_a_lock(HASTENING)])


def test_taking_a_lock_often_is_told_in_one_word(tmp_path: Path) -> None:
    """And takes no room that the order of other things needs."""
    with reenact.capture(tmp_path / "run"):
        lock = threading.Lock()
        for _ in range(20_000):
            with lock:
                pass
        thread = threading.Thread(target=lambda: ask("a"))
        thread.start()
        thread.join()
        ask("b")
    lines = [json.loads(line) for line in CaptureReader(tmp_path / "run").lines()]
    assert [line["order"] for line in lines if "order" in line] == [["0<20000"], ["0.0! <lambda> ="]]


def test_a_lock_is_a_lock(tmp_path: Path) -> None:
    """It does what a real one does, during a run and after it."""
    with reenact.capture(tmp_path / "run"):
        ask("a")
        lock, again = threading.Lock(), threading.RLock()
    for _ in range(2):
        assert lock.acquire()
        assert lock.locked()
        assert not lock.acquire(blocking=False)
        assert not lock.acquire(timeout=0.001)
        with pytest.raises(ValueError, match="timeout"):
            lock.acquire(False, 1)
        lock.release()
        with again, again:
            assert not lock.locked()
        with pytest.raises(RuntimeError):
            lock.release()
        with pytest.raises(RuntimeError):
            again.release()
        for copied in (pickle.dumps, copy.copy, copy.deepcopy):
            with pytest.raises(TypeError):
                copied(lock)
        assert repr(lock).startswith("<unlocked _thread.lock")
    assert type(threading.Lock()) is _REAL_LOCK
    assert isinstance(threading.Condition(lock), threading.Condition)


def test_a_library_keeps_its_own(tmp_path: Path) -> None:
    """What it locks for itself is not part of the run."""
    with reenact.capture(tmp_path / "run"):
        assert not isinstance(queue.Queue().mutex, LockInTurn)
        condition = threading.Condition()
        assert isinstance(condition, threading.Condition)
        assert isinstance(queue.Queue().not_empty, threading.Condition)
        assert not isinstance(condition, threading.Barrier)
        ask("a")


def test_a_server_from_before_the_run_takes_no_turns(tmp_path: Path) -> None:
    """Nor do the threads that it starts for what it is asked: in replay nobody asks it."""
    asked: queue.Queue[Any] = queue.Queue()
    done: queue.Queue[None] = queue.Queue()

    def serve() -> None:
        for lock in iter(asked.get, None):
            thread = threading.Thread(target=lambda lock=lock: [lock.acquire(), lock.release()])
            thread.start()
            thread.join()
            done.put(None)

    server = threading.Thread(target=serve)
    server.start()
    with reenact.capture(tmp_path / "run"):
        lock = threading.Lock()
        asked.put(lock)
        done.get()
        with lock:
            ask("a")
    asked.put(None)
    server.join()
    lines = [json.loads(line) for line in CaptureReader(tmp_path / "run").lines()]
    acts = [act for line in lines for act in line.get("order", ())]
    assert [act for act in acts if "!" not in act] == ["0>", "0<"]

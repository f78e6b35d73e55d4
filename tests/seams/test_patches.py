"""Patches of ours beside those of others, whoever came first."""

from __future__ import annotations

import _queue
import queue
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import reenact


class Wrapped:
    """Instrumentation as wrapt makes it: it learns from being got whose method it is."""

    def __init__(self, function: Any, seen: list[str], instance: Any = None) -> None:
        self.__wrapped__ = function
        self._seen = seen
        self._instance = instance

    def __get__(self, instance: Any, owner: type) -> Any:
        bound = self.__wrapped__.__get__(instance, owner)
        return Wrapped(bound, self._seen, instance)

    def __call__(self, *args: Any, **options: Any) -> Any:
        instance = self._instance or args[0]
        self._seen.append(instance.name)
        return self.__wrapped__(*args, **options)


@reenact.tool
def double(number: int) -> int:
    return 2 * number


def work() -> list[int]:
    found: list[int] = []
    threads = [threading.Thread(target=lambda n=n: found.append(double(n))) for n in range(3)]
    for thread in threads:
        thread.start()
        thread.join()
    return found


@pytest.mark.parametrize("moment", ["before", "in the first run", "between the runs"])
def test_instrumentation_of_threads_changes_no_lane(tmp_path: Path, moment: str) -> None:
    """It is called in every run from then on, and the runs are the same."""
    seen: list[str] = []
    original = threading.Thread.start

    def instrument(now: str) -> None:
        if now == moment:
            threading.Thread.start = Wrapped(threading.Thread.__dict__["start"], seen)  # type: ignore[method-assign]

    try:
        instrument("before")
        with reenact.capture(tmp_path / "run"):
            instrument("in the first run")
            recorded = work()
        instrument("between the runs")
        for _ in range(2):
            with reenact.replay(tmp_path / "run") as run:
                assert work() == recorded
            assert (run.divergences, run.notes) == ([], [])
        assert len(seen) == (6 if moment == "between the runs" else 9)
        work()
        assert len(seen) == (9 if moment == "between the runs" else 12)
    finally:
        threading.Thread.start = original  # type: ignore[method-assign]


def test_what_others_took_back_is_gone(tmp_path: Path) -> None:
    """A wrapper put around ours in a run and taken away after it leaves nothing in the next."""
    before = threading.Thread.start
    undo: list[Callable[..., Any]] = []
    with reenact.capture(tmp_path / "one"):
        undo.append(threading.Thread.start)
        threading.Thread.start = Wrapped(threading.Thread.start, [])  # type: ignore[method-assign]
    threading.Thread.start = undo[0]  # type: ignore[method-assign]
    with reenact.capture(tmp_path / "two"):
        assert work() == [0, 2, 4]
    assert threading.Thread.start is before


def test_a_class_that_cannot_be_patched_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """gevent puts compiled classes in the place of Python's."""
    monkeypatch.setattr(queue, "Queue", _queue.SimpleQueue)
    with reenact.capture(tmp_path / "run"):
        assert work() == [0, 2, 4]
    with reenact.replay(tmp_path / "run") as run:
        assert work() == [0, 2, 4]
    assert not run.divergences

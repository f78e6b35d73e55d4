"""A thread that was there before the run: its calls have no known order, as those at the gateway."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from typing import Any


class StrayThread:
    """Does what it is given, one after the other; to be started outside any run."""

    def __init__(self) -> None:
        self._jobs: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._work, daemon=True)

    def __enter__(self) -> StrayThread:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._jobs.put(None)
        self._thread.join()

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            job()

    def apply(self, function: Callable[..., Any], args: tuple[Any, ...] = ()) -> Any:
        done: Future[Any] = Future()

        def job() -> None:
            try:
                done.set_result(function(*args))
            except BaseException as error:
                done.set_exception(error)

        self._jobs.put(job)
        return done.result()

    def map(self, function: Callable[..., Any], items: Iterable[Any]) -> list[Any]:
        return self.starmap(function, ((item,) for item in items))

    def starmap(self, function: Callable[..., Any], items: Iterable[tuple[Any, ...]]) -> list[Any]:
        found: list[Any] = self.apply(lambda: [function(*args) for args in items])
        return found

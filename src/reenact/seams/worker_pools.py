"""``multiprocessing.Pool``: its jobs are calls, as those of an executor of processes are.

``imap`` reads all it is given at once. ``ThreadPool`` works in threads of this process and is left alone.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from queue import Empty, SimpleQueue
from types import ModuleType
from typing import Any, Final, TypeAlias

from reenact.boundary import Call, Lane, current_lane
from reenact.seams.imports import Libraries
from reenact.seams.patches import Patch
from reenact.seams.pools import Job, job_name

_Told: TypeAlias = Callable[[Any], Any] | None


def _patches(pool: ModuleType) -> list[Patch]:
    seam = _Seam(pool)
    return [
        Patch(pool.Pool, "_repopulate_pool", seam.repopulate),
        Patch(pool.Pool, "apply_async", seam.apply_async),
        Patch(pool.Pool, "_map_async", seam.map_async),
        Patch(pool.Pool, "imap", seam.imap),
        Patch(pool.Pool, "imap_unordered", seam.imap_unordered),
    ]


class _Seam:
    def __init__(self, module: ModuleType) -> None:
        self._module = module

    def _lane(self, pool: Any) -> Lane | None:
        return None if isinstance(pool, self._module.ThreadPool) else current_lane()

    def repopulate(self, original: Callable[[Any], None]) -> Callable[[Any], None]:
        def repopulate(pool: Any) -> None:
            """Workers are of use only where jobs are really done."""
            lane = self._lane(pool)
            if lane is None or lane.context.time_passes(lane):
                original(pool)

        return repopulate

    def apply_async(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def apply_async(
            pool: Any, func: Any, args: Any = (), kwds: Any = None, *told: _Told, **options: _Told
        ) -> Any:
            lane, kwargs = self._lane(pool), kwds or {}
            if lane is None:
                return original(pool, func, args, kwargs, *told, **options)
            call = Call("process", job_name(func), {"args": list(args), "kwargs": kwargs})
            return self._done(
                pool,
                Job(lane.child(), call),
                lambda *now: original(pool, func, args, kwargs, *now),
                *told,
                **options,
            )

        return apply_async

    def map_async(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def map_async(
            pool: Any,
            func: Any,
            iterable: Iterable[Any],
            mapper: Any,
            chunksize: int | None = None,
            *told: _Told,
            **options: _Told,
        ) -> Any:
            lane = self._lane(pool)
            if lane is None:
                return original(pool, func, iterable, mapper, chunksize, *told, **options)
            items = list(iterable)
            how = "map" if mapper is self._module.mapstar else "starmap"
            call = Call("process", job_name(func), {how: items})
            return self._done(
                pool,
                Job(lane.child(), call),
                lambda *now: original(pool, func, items, mapper, chunksize, *now),
                *told,
                **options,
            )

        return map_async

    def _done(
        self,
        pool: Any,
        job: Job,
        start: Callable[..., Any],
        callback: _Told = None,
        error_callback: _Told = None,
    ) -> Any:
        """What stands for the outcome: it is recorded before anybody hears of it, or recalled."""
        if job.step.live:
            return start(_after(job.answered, callback), _after(job.failed, error_callback))
        result = self._module.ApplyResult(pool, callback, error_callback)

        def deliver(promised: Future[Any]) -> None:
            error = promised.exception()
            result._set(0, (True, promised.result()) if error is None else (False, error))  # noqa: SLF001

        job.promised.add_done_callback(deliver)
        job.recall()
        return result

    def imap(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def imap(pool: Any, func: Any, iterable: Iterable[Any], chunksize: int = 1) -> Any:
            if self._lane(pool) is None:
                return original(pool, func, iterable, chunksize)
            return _InOrder([pool.apply_async(func, (item,)) for item in iterable])

        return imap

    def imap_unordered(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def imap_unordered(pool: Any, func: Any, iterable: Iterable[Any], chunksize: int = 1) -> Any:
            if self._lane(pool) is None:
                return original(pool, func, iterable, chunksize)
            return _AsTheyCome(pool, func, iterable, self._module.TimeoutError)

        return imap_unordered


class _InOrder(Iterator[Any]):
    def __init__(self, results: Iterable[Any]) -> None:
        self._results = deque(results)

    def __next__(self) -> Any:
        return self.next()

    def next(self, timeout: float | None = None) -> Any:
        if not self._results:
            raise StopIteration
        answer = self._results[0].get(timeout)
        self._results.popleft()
        return answer


class _AsTheyCome(Iterator[Any]):
    def __init__(self, pool: Any, func: Any, iterable: Iterable[Any], timeout_error: type[Exception]) -> None:
        self._timeout_error = timeout_error
        self._came: SimpleQueue[tuple[Any, Exception | None]] = SimpleQueue()
        results = [pool.apply_async(func, (item,), None, self._answered, self._failed) for item in iterable]
        self._left = len(results)

    def _answered(self, answer: Any) -> None:
        self._came.put((answer, None))

    def _failed(self, error: Exception) -> None:
        self._came.put((None, error))

    def __next__(self) -> Any:
        return self.next()

    def next(self, timeout: float | None = None) -> Any:
        if not self._left:
            raise StopIteration
        try:
            answer, error = self._came.get(timeout=timeout)
        except Empty:
            raise self._timeout_error from None
        self._left -= 1
        if error is not None:
            raise error
        return answer


def _after(record: Callable[[Any], None], told: _Told) -> Callable[[Any], None]:
    def both(outcome: Any) -> None:
        record(outcome)
        if told is not None:
            told(outcome)

    return both


LIBRARIES: Final[Libraries] = {"multiprocessing.pool": _patches}

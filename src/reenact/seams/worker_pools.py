"""The pools of ``multiprocessing``: jobs for processes are calls, jobs for threads have lanes.

Both work as for executors. In a run, ``imap`` of a pool of processes reads its whole iterable at once.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from queue import Empty, SimpleQueue
from types import ModuleType
from typing import Any, Final, TypeAlias

from reenact.boundary import SPAWNED_CHILD, Lane, current_lane
from reenact.library import POOLS
from reenact.seams.deadlines import set_lane_of_callbacks
from reenact.seams.imports import Libraries
from reenact.seams.patches import Patch
from reenact.seams.pools import Job, job_call
from reenact.seams.spawn import name_function, run_in_thread, run_job

_Callback: TypeAlias = Callable[[object], object] | None


def _patches(pool: ModuleType) -> list[Patch]:
    seam = _Seam(pool)
    return [
        Patch(pool.Pool, "_repopulate_pool", seam.repopulate),
        Patch(pool.Pool, "apply_async", seam.apply_async),
        Patch(pool.Pool, "_map_async", seam.map_async),
        Patch(pool.Pool, "imap", seam.imap),
        Patch(pool.Pool, "imap_unordered", seam.imap_unordered),
        *(
            Patch(kind, "_set", _hand_over)
            for kind in (pool.ApplyResult, pool.IMapIterator, pool.IMapUnorderedIterator)
        ),
    ]


class _Seam:
    def __init__(self, module: ModuleType) -> None:
        self._module = module

    def _lane(self, pool: object) -> Lane | None:
        """The current lane if *pool* has processes, else ``None``."""
        return None if isinstance(pool, self._module.ThreadPool) else current_lane()

    def _lane_of_threads(self, pool: object) -> Lane | None:
        """The current lane if *pool* has threads, else ``None``."""
        return current_lane() if isinstance(pool, self._module.ThreadPool) else None

    def repopulate(self, original: Callable[[object], None]) -> Callable[[object], None]:
        def repopulate(pool: object) -> None:
            """Start worker processes only if jobs really run, which they do not in replay."""
            lane = self._lane(pool)
            if lane is None or lane.context.time_passes(lane):
                original(pool)

        return repopulate

    def apply_async(self, original: Callable[..., object]) -> Callable[..., object]:
        def apply_async(
            pool: object,
            func: Any,
            args: Any = (),
            kwds: object = None,
            *callbacks: _Callback,
            **options: _Callback,
        ) -> object:
            lane, kwargs = self._lane(pool), kwds or {}
            if (giver := self._lane_of_threads(pool)) is not None:
                func = _ThreadJobs(func, giver).bind_to_lane(giver.child())
            if lane is None:
                return original(pool, func, args, kwargs, *callbacks, **options)
            return self._result_of(
                pool,
                Job(lane.child(), job_call(func, args=list(args), kwargs=kwargs)),
                lambda *now: original(pool, func, args, kwargs, *now),
                *callbacks,
                **options,
            )

        return apply_async

    def map_async(self, original: Callable[..., object]) -> Callable[..., object]:
        def map_async(
            pool: object,
            func: Any,
            iterable: Iterable[object],
            mapper: object,
            chunksize: int | None = None,
            *callbacks: _Callback,
            **options: _Callback,
        ) -> object:
            lane = self._lane(pool)
            if (giver := self._lane_of_threads(pool)) is not None:
                # All items have one result, so the agent cannot see which of them ended first.
                jobs = _ThreadJobs(func, giver, is_mapped=True)
                iterable = jobs.number_items(iterable, is_starred=mapper is self._module.starmapstar)
                func, mapper = jobs.run_numbered, self._module.mapstar
            if lane is None:
                return original(pool, func, iterable, mapper, chunksize, *callbacks, **options)
            items = list(iterable)
            how = "map" if mapper is self._module.mapstar else "starmap"
            call = job_call(func, **{how: items})
            return self._result_of(
                pool,
                Job(lane.child(), call),
                lambda *now: original(pool, func, items, mapper, chunksize, *now),
                *callbacks,
                **options,
            )

        return map_async

    def _result_of(
        self,
        pool: object,
        job: Job,
        start: Callable[..., object],
        callback: _Callback = None,
        error_callback: _Callback = None,
    ) -> object:
        """The result object for *job*, whose outcome is recorded before any callback, or replayed."""
        if job.step.live:
            return start(
                _record_before(job.note_answer, callback), _record_before(job.note_error, error_callback)
            )
        result = self._module.ApplyResult(pool, callback, error_callback)

        def deliver(promised: Future[object]) -> None:
            error = promised.exception()
            result._set(0, (True, promised.result()) if error is None else (False, error))  # noqa: SLF001

        job.promised.add_done_callback(deliver)
        job.deliver_recorded()
        return result

    def imap(self, original: Callable[..., object]) -> Callable[..., object]:
        def imap(pool: Any, func: Any, iterable: Iterable[object], chunksize: int = 1) -> object:
            if (giver := self._lane_of_threads(pool)) is not None:
                jobs = _ThreadJobs(func, giver, is_mapped=chunksize != 1)
                return original(pool, jobs.run_numbered, jobs.number_items(iterable), chunksize)
            if self._lane(pool) is None:
                return original(pool, func, iterable, chunksize)
            return _InOrder([pool.apply_async(func, (item,)) for item in iterable])

        return imap

    def imap_unordered(self, original: Callable[..., object]) -> Callable[..., object]:
        def imap_unordered(pool: object, func: Any, iterable: Iterable[object], chunksize: int = 1) -> object:
            if (giver := self._lane_of_threads(pool)) is not None:
                jobs = _ThreadJobs(func, giver, is_mapped=chunksize != 1)
                return original(pool, jobs.run_numbered, jobs.number_items(iterable), chunksize)
            if self._lane(pool) is None:
                return original(pool, func, iterable, chunksize)
            return _AsTheyCome(pool, func, iterable, self._module.TimeoutError)

        return imap_unordered


class _ThreadJobs:
    """Jobs for threads of this process; each gets its lane when it is submitted."""

    def __init__(self, func: Callable[..., object], giver: Lane, *, is_mapped: bool = False) -> None:
        self._func = func
        self._function = name_function(func)
        self._giver = giver
        self._is_mapped = is_mapped
        """Whether a thread does several jobs before it hands over their results."""

    def bind_to_lane(self, lane: Lane) -> Callable[..., object]:
        """The function, for one call in *lane*."""
        lane.context.lane_starting(lane)
        return lambda *args, **kwargs: self._run_job(lane, lambda: self._func(*args, **kwargs))

    def number_items(
        self, items: Iterable[object], *, is_starred: bool = False
    ) -> Iterable[tuple[Lane, object]]:
        """The arguments for :meth:`run_numbered`, one per item; a thread of the pool may iterate over it."""
        giver = self._giver.child()
        pairs = ((giver.child(), item if is_starred else (item,)) for item in items)
        return list(pairs) if hasattr(items, "__len__") else pairs

    def run_numbered(self, job: tuple[Lane, Any]) -> object:
        lane, args = job
        return self._run_job(lane, lambda: self._func(*args))

    def _run_job(self, lane: Lane, work: Callable[[], object]) -> object:
        if self._is_mapped:
            return run_in_thread(lane, work, self._function)
        try:
            return _AnswerInTransit(run_job(lane, work, self._function), lane)
        except BaseException:
            _end(lane)
            raise


class _AnswerInTransit:
    """The answer of a thread's job on its way to the agent; its lane ends when it has arrived."""

    def __init__(self, answer: object, lane: Lane) -> None:
        self.answer = answer
        self.lane = lane
        self.told_in = lane.child()
        """The lane in which callbacks with the answer run."""


def _hand_over(original: Callable[[object, int, object], None]) -> Callable[[object, int, Any], None]:
    def _set(self: object, i: int, obj: tuple[bool, object]) -> None:
        is_good, came = obj
        if type(came) is not _AnswerInTransit:
            original(self, i, obj)
            return
        lane = came.lane
        set_lane_of_callbacks(lane)
        if getattr(self, "_callback", None) is not None:
            _end(lane)
            run_in_thread(came.told_in, lambda: original(self, i, (is_good, came.answer)))
        else:
            original(self, i, (is_good, came.answer))
            _end(lane)
        set_lane_of_callbacks(None)

    return _set


def _end(lane: Lane) -> None:
    lane.context.lane_end_seen(lane)
    lane.context.lane_ended(lane)


class _InOrder(Iterator[object]):
    def __init__(self, results: Iterable[Any]) -> None:
        self._results = deque(results)

    def __next__(self) -> object:
        return self.next()

    def next(self, timeout: float | None = None) -> Any:
        if not self._results:
            raise StopIteration
        answer = self._results[0].get(timeout)
        self._results.popleft()
        return answer


class _AsTheyCome(Iterator[object]):
    def __init__(
        self, pool: Any, func: object, iterable: Iterable[object], timeout_error: type[Exception]
    ) -> None:
        self._timeout_error = timeout_error
        self._outcomes: SimpleQueue[tuple[object, Exception | None]] = SimpleQueue()
        results = [pool.apply_async(func, (item,), None, self._put, self._put_error) for item in iterable]
        self._remaining = len(results)

    def _put(self, answer: object) -> None:
        self._outcomes.put((answer, None))

    def _put_error(self, error: Exception) -> None:
        self._outcomes.put((None, error))

    def __next__(self) -> object:
        return self.next()

    def next(self, timeout: float | None = None) -> object:
        if not self._remaining:
            raise StopIteration
        try:
            answer, error = self._outcomes.get(timeout=timeout)
        except Empty:
            raise self._timeout_error from None
        self._remaining -= 1
        if error is not None:
            raise error
        return answer


def _record_before(record: Callable[[Any], None], callback: _Callback) -> Callable[[object], None]:
    def record_and_call(outcome: object) -> None:
        record(outcome)
        if callback is not None:
            callback(outcome)

    return record_and_call


def _announce_child(launch: Callable[[Any, Any], None]) -> Callable[[Any, Any], None]:
    def launch_child(self: Any, process: Any) -> None:
        """Say that a new Python starts, which is not recorded; a worker of a pool is no part of the run."""
        target = getattr(process, "_target", None) or type(process).run
        if getattr(target, "__module__", "") not in POOLS:
            sys.audit(SPAWNED_CHILD, name_function(target))
        launch(self, process)

    return launch_child


def _launch_patches(popen: ModuleType) -> list[Patch]:
    return [Patch(popen.Popen, "_launch", _announce_child)]


LIBRARIES: Final[Libraries] = {
    "multiprocessing.pool": _patches,
    "multiprocessing.popen_forkserver": _launch_patches,
    "multiprocessing.popen_spawn_posix": _launch_patches,
}

"""Work in batches: in this process, in others on this machine, or as tasks of Ray.

Results come in the order of the batches, and each batch counts once: a worker that is killed is replaced, and
its unfinished batches are done again.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import socket
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from itertools import islice
from typing import Any, Final, Generic, TypeVar

from reenact.errors import StoreError, UsageError

B = TypeVar("B")
R = TypeVar("R")

IN_FLIGHT: Final = 3
"""Batches per worker: one in progress, the others waiting."""
_PATIENCE_S: Final = 10
MAX_TRIES: Final = 4
"""The number of tries of a batch whose workers die."""


def worker_count(jobs: int | None, *, is_much: bool) -> int:
    """The number of workers: as given, 0 for all cores, ``None`` for all cores if there is much to do."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if jobs is None:
        return cores if is_much else 1
    return jobs or cores


def map_batches(
    work: Callable[[B], R],
    batches: Iterable[B],
    *,
    jobs: int = 1,
    on: str | None = None,
    works_here: bool = False,
) -> Generator[R]:
    """Yield what *work* returns for each of *batches*, in order; closing the iterator stops all workers.

    *jobs* processes share the work, or with *on* tasks of Ray: ``ray`` for this machine,
    ``ray=ADDRESS`` for a cluster. *work* is a function of a module, and what it takes and returns can be
    pickled. With *works_here* this process is one of the *jobs*, for work that cannot kill it. Raises
    :class:`StoreError` if workers die repeatedly in one batch.
    """
    if on is not None:
        yield from _run_on_ray(work, batches, _ray_address(on), jobs)
    elif jobs <= 1:
        yield from map(work, batches)
    else:
        yield from _Pool(work, jobs, works_here=works_here).map(batches)


class _BatchTry(Generic[B, R]):
    """A batch, and its current try."""

    def __init__(self, batch: B) -> None:
        self.batch = batch
        self.tries = 0
        self.future: Future[R]


class _Pool(Generic[B, R]):
    """Processes of this machine; if one dies, the whole pool is replaced."""

    def __init__(self, work: Callable[[B], R], jobs: int, *, works_here: bool) -> None:
        self._work = work
        self._works_here = works_here
        self._jobs = jobs - works_here
        self._executor = self._start()

    def _start(self) -> ProcessPoolExecutor:
        # Spawned, not forked: the caller may have threads.
        context = multiprocessing.get_context("spawn")
        return ProcessPoolExecutor(self._jobs, mp_context=context, initializer=_ignore_ctrl_c)

    def map(self, batches: Iterable[B]) -> Iterator[R]:
        waiting: deque[_BatchTry[B, R]] = deque()
        rest = iter(batches)
        most = self._jobs * IN_FLIGHT
        most_kept = 2 * most if self._works_here else most
        try:
            while True:
                unfinished = sum(not piece.future.done() for piece in waiting)
                for batch in islice(rest, min(most - unfinished, most_kept - len(waiting))):
                    piece: _BatchTry[B, R] = _BatchTry(batch)
                    waiting.append(piece)
                    self._submit([piece])
                if not waiting:
                    return
                if self._works_here and len(waiting) < most_kept and not waiting[0].future.done():
                    here = [self._run_here(batch) for batch in islice(rest, 1)]
                    waiting += here
                    if here:
                        continue
                try:
                    result = waiting[0].future.result()
                except BrokenProcessPool:
                    self._replace(waiting)
                    continue
                waiting.popleft()
                yield result
        finally:
            self._executor.shutdown(wait=True, cancel_futures=True)

    def _run_here(self, batch: B) -> _BatchTry[B, R]:
        piece: _BatchTry[B, R] = _BatchTry(batch)
        piece.future = Future()
        try:
            piece.future.set_result(self._work(batch))
        except Exception as error:
            piece.future.set_exception(error)
        return piece

    def _submit(self, pieces: Iterable[_BatchTry[B, R]]) -> None:
        for piece in pieces:
            piece.tries += 1
            if piece.tries > MAX_TRIES:
                raise _lost_error(MAX_TRIES)
            try:
                piece.future = self._executor.submit(self._work, piece.batch)
            except BrokenProcessPool as error:
                piece.future = Future()
                piece.future.set_exception(error)

    def _replace(self, waiting: Iterable[_BatchTry[B, R]]) -> None:
        self._executor.shutdown(wait=True, cancel_futures=True)
        self._executor = self._start()
        # Finished results are kept and not computed again.
        self._submit(piece for piece in waiting if not _has_answer(piece.future))


def _has_answer(future: Future[Any]) -> bool:
    return future.done() and not future.cancelled() and not isinstance(future.exception(), BrokenProcessPool)


def _ignore_ctrl_c() -> None:
    """The parent process stops the workers."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _lost_error(tries: int) -> StoreError:
    return StoreError(
        f"workers: one was ended {tries} times over the same runs; is there enough memory? try --jobs 1"
    )


def _ray_address(on: str) -> str | None:
    engine, _, address = on.partition("=")
    if engine != "ray" or (on != "ray" and not address):
        raise UsageError(f"--on {on!r} is unknown; write ray, or ray=ADDRESS for a cluster")
    return address or None


def _run_on_ray(work: Callable[[B], R], batches: Iterable[B], address: str | None, jobs: int) -> Iterator[R]:
    ray = _import_ray()
    is_ours = not ray.is_initialized()
    if is_ours:
        _connect(ray, address, jobs)
    waiting: deque[object] = deque()
    try:
        task = ray.remote(max_retries=MAX_TRIES - 1, num_cpus=1)(_work_in)
        folder = os.getcwd()
        limit = max(2, int(ray.cluster_resources().get("CPU", 1)) * IN_FLIGHT)
        for batch in batches:
            waiting.append(task.remote(folder, work, batch))
            if len(waiting) >= limit:
                yield _result(ray, waiting)
        while waiting:
            yield _result(ray, waiting)
    finally:
        # Also after Ctrl-C, so that nothing of ours stays in the cluster.
        for reference in waiting:
            ray.cancel(reference, force=True)
        if is_ours:
            ray.shutdown()


def _work_in(folder: str, work: Callable[[B], R], batch: B) -> R:
    """Change to the folder of the caller, if this machine has it: paths may be relative."""
    with suppress(OSError):
        os.chdir(folder)
    return work(batch)


def _result(ray: Any, waiting: deque[object]) -> Any:
    try:
        result = ray.get(waiting[0])
    except ray.exceptions.RayTaskError as error:
        raise error.cause from None
    except (ray.exceptions.WorkerCrashedError, ray.exceptions.OutOfMemoryError):
        raise _lost_error(MAX_TRIES) from None
    except ray.exceptions.RayError as error:
        raise StoreError(f"ray: {' '.join(str(error).split())[:300]}") from None
    waiting.popleft()
    return result


def _import_ray() -> Any:
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # no telemetry
    # Hides a warning about variables that our tasks do not use.
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    # It says on the standard output that a worker died, and results may be there; we say it if it matters.
    os.environ.setdefault(
        "RAY_DEDUP_LOGS_SKIP_REGEX", f"^A worker died|^Task {_work_in.__name__} failed|memory pressure"
    )
    try:
        import ray
    except ImportError:
        raise UsageError("ray is not installed; --on ray takes: pip install 'reenact[ray]'") from None
    return ray


def _refuse_silence(address: str) -> None:
    """Fail fast if nothing listens: Ray would wait for minutes."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if not host or not port.isdecimal():
        return  # "auto", or another name of Ray
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=_PATIENCE_S).close()
    except (OSError, OverflowError) as error:
        raise StoreError(f"ray={address}: cannot be reached: {error}; is it running?") from None


def _connect(ray: Any, address: str | None, jobs: int) -> None:
    if address is not None:
        _refuse_silence(address)
    local = {} if address else {"num_cpus": jobs if jobs > 1 else None, "include_dashboard": False}
    try:
        ray.init(address=address or "local", log_to_driver=False, logging_level="ERROR", **local)
    except (ConnectionError, RuntimeError, ValueError, TimeoutError) as error:
        reason = " ".join(str(error).split())[:200]
        remedy = "is it running, and is its token in RAY_AUTH_TOKEN?" if address else "see Ray's own logs"
        raise StoreError(f"ray={address or 'local'}: cannot be used: {reason}; {remedy}") from None

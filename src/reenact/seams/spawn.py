"""Tasks, threads and executor jobs that an agent starts: their lanes, their ends, and their queues.

Each gets its lane when it is started, not when it first runs, so that its name does not depend on scheduling.
The worker threads of a pool get no lane, because they come and go with the load; each job that they run has
one.
"""

from __future__ import annotations

import asyncio
import asyncio.base_events
import asyncio.tasks
import concurrent.futures._base
import queue
import re
import sys
import threading
import weakref
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import Context, copy_context
from functools import partial
from hashlib import sha256
from itertools import islice
from types import CodeType, FrameType, ModuleType
from typing import Any, Final

from reenact.boundary import (
    UNCLAIMED,
    Lane,
    current_lane,
    forget_lane,
    is_cancellation,
    lend_lane,
    register_lane,
    set_lane,
)
from reenact.formats.capture import CANCELLED, HIDDEN, PUT
from reenact.library import is_library
from reenact.process_state import ended_at, endings, lane_of_job, lane_var
from reenact.seams import entered
from reenact.seams.deadlines import get_in_turn, put_in_turn, set_lane_of_callbacks
from reenact.seams.imports import Libraries
from reenact.seams.numbered import create_task, number_job, wrap_future
from reenact.seams.patches import Patch

_FRAMES_TO_WAIT_FOR: Final = 2
"""``ensure_future`` and its inner function."""
_WAIT_FOR: Final = asyncio.wait_for.__code__
_ENDS_GENERATOR: Final = "async_generator_athrow"
"""The type of the coroutine that closes an async generator."""
_POOLS: Final = (
    "concurrent.futures.",
    "anyio.",
    "multiprocessing.pool",
    "loky.process_executor",
    "joblib.externals.loky.process_executor",
)


def patches() -> list[Patch]:
    """The patches to apply while a run is open."""
    return [
        Patch(asyncio.base_events.BaseEventLoop, "create_task", bind_to_lanes),
        Patch(asyncio, "as_completed", _as_completed),
        Patch(asyncio.tasks, "_wait", _order_tasks),
        Patch(concurrent.futures._base, "DoneAndNotDoneFutures", _order_jobs),  # noqa: SLF001
        Patch(threading.Thread, "start", _start),
        Patch(ThreadPoolExecutor, "submit", _submit),
        Patch(concurrent.futures._base, "_yield_finished_futures", _yield_as_they_ended),  # noqa: SLF001
        Patch(asyncio.Queue, "put", _put_by_task),
        Patch(asyncio.Queue, "put_nowait", _put_at_once),
        Patch(queue.Queue, "put", put_in_turn),
        *(Patch(kind, "_put", _store) for kind in (queue.Queue, queue.LifoQueue, queue.PriorityQueue)),
        Patch(queue, "SimpleQueue", lambda _: _SimpleQueue),
        *(Patch(module, "wrap_future", wrap_future) for module in (asyncio, asyncio.futures)),
    ]


def bind_to_lanes(original: Callable[..., Any]) -> Callable[..., object]:
    """``create_task`` of an event loop, but each task gets a lane when it is created."""

    def create(self: object, coro: object, *, context: object = None, **options: object) -> object:
        lane = current_lane()
        if lane is None:
            return original(self, coro, context=context, **options)
        lane.context.notice_loop(self)
        entered.listen()
        # Which generators are left to the collector depends on libraries below the seams: they have no order.
        is_left = lane.is_loose and type(coro).__name__ == _ENDS_GENERATOR
        if is_left or _is_waited_for(sys._getframe(1)):  # noqa: SLF001 — the caller decides whose lane it gets
            task = original(self, coro, context=context, **options)
            lend_lane(id(task), lane)
            weakref.finalize(task, forget_lane, id(task))
            return task
        function = name_function(coro)
        child = lane.child(function)
        coro = lane.context.task_body(child, coro, partial(describe_end, function))
        if context is not None:
            # The caller may share this context between tasks, so its variables do not say which one runs.
            task = create_task(original, self, coro, child, {"context": context, **options})
            register_lane(id(task), child)
            weakref.finalize(task, forget_lane, id(task))
            task.add_done_callback(partial(_task_ended, child, function))
            return task
        child.owner = UNCLAIMED
        context = copy_context()
        context.run(lane_var.set, child)
        task = create_task(original, self, coro, child, {"context": context, **options})
        child.owner = id(task)
        task.add_done_callback(partial(_task_ended, child, function))
        return task

    return create


def _task_ended(lane: Lane, function: str, task: Any) -> None:
    ended_at[task] = next(endings)
    # Not by task.exception(), which marks the error as retrieved and so suppresses asyncio's warning.
    error = asyncio.CancelledError() if task.cancelled() else task._exception  # noqa: SLF001
    lane.context.task_ended(lane, describe_end(function, None if error else task._result, error))  # noqa: SLF001


def _is_waited_for(frame: FrameType | None) -> bool:
    """Whether ``wait_for`` creates the task, as before Python 3.12; the task then uses its caller's lane."""
    for _ in range(_FRAMES_TO_WAIT_FOR):
        frame = frame.f_back if frame is not None else None
    return frame is not None and frame.f_code is _WAIT_FOR


def _as_completed(original: Callable[..., Any]) -> Callable[..., object]:
    def as_completed(fs: Any, **options: object) -> Iterator[object]:
        """Start bare coroutines in the order given; the original starts them in the order of a set."""
        if current_lane() is not None and not asyncio.iscoroutine(fs) and not asyncio.isfuture(fs):
            fs = [asyncio.ensure_future(item) for item in fs]
        result: Iterator[object] = original(fs, **options)
        return result

    return as_completed


def _start(original: Callable[..., object]) -> Callable[..., object]:
    def start(self: threading.Thread) -> None:
        lane = current_lane()
        if lane is None or _is_pool_worker(self):
            original(self)
            return
        run = self.run
        function = name_function(getattr(self, "_target", None) or run)
        child = lane.child(function)
        self.run = lambda: run_in_thread(child, run, function)  # type: ignore[method-assign]
        child.context.lane_starting(child)
        original(self)

    return start


def _is_pool_worker(thread: threading.Thread) -> bool:
    target = getattr(thread, "_target", None)
    return any(
        str(getattr(part, "__module__", "")).startswith(_POOLS) for part in (target, type(thread)) if part
    )


def _submit(original: Callable[..., Any]) -> Callable[..., object]:
    def submit(self: object, fn: Callable[..., object], /, *args: object, **kwargs: Any) -> Future[object]:
        lane = current_lane()
        if lane is None:
            future: Future[object] = original(self, fn, *args, **kwargs)
            return future
        function = name_function(partial(fn, *args) if _runs_in_context(fn) else fn)
        ending = _JobEnding(lane.child(function))

        def job() -> object:
            try:
                return run_job(ending.lane, lambda: fn(*args, **kwargs), function)
            finally:
                ending.note_return()

        ending.lane.context.lane_starting(ending.lane)
        future = original(self, job)
        number_job(future, ending.lane)
        ending.has(future)
        return future

    return submit


class _JobEnding:
    """Ends a job's lane after all done callbacks of its future have run.

    Done callbacks run in the order in which they were added. Ours must be the last, so it is added when the
    job returns, not when it is submitted.
    """

    def __init__(self, lane: Lane) -> None:
        self.lane = lane
        self._lock = threading.Lock()
        self._future: Future[object] | None = None
        self._has_returned = False

    def has(self, future: Future[object]) -> None:
        lane_of_job[future] = self.lane
        future.add_done_callback(self._mark_ended)
        with self._lock:
            self._future = future
            is_over = self._has_returned
        if is_over:
            self._add_last_callback(future)

    def note_return(self) -> None:
        with self._lock:
            self._has_returned = True
            future = self._future
        if future is not None:
            self._add_last_callback(future)

    def _mark_ended(self, _: Future[object]) -> None:
        self.lane.context.lane_end_seen(self.lane)
        set_lane_of_callbacks(self.lane)

    def _add_last_callback(self, future: Future[object]) -> None:
        ended_at[future] = next(endings)
        future.add_done_callback(self._end)

    def _end(self, _: Future[object]) -> None:
        set_lane_of_callbacks(None)
        self.lane.context.lane_ended(self.lane)


class _AsTheyEnded(set[object]):
    """Ended tasks or jobs, in the order in which they ended; a plain set orders them by address."""

    def __iter__(self) -> Iterator[object]:
        return iter(sorted(super().__iter__(), key=lambda each: ended_at.get(each, sys.maxsize)))

    def pop(self) -> object:
        first = next(iter(self), None)
        if first is None:
            return super().pop()
        self.discard(first)
        return first


def _order_tasks(original: Callable[..., Any]) -> Callable[..., object]:
    async def wait(*args: object, **options: object) -> tuple[set[object], set[object]]:
        done, pending = await original(*args, **options)
        return _AsTheyEnded(done) if current_lane() is not None else done, pending

    return wait


def _order_jobs(original: Callable[..., object]) -> Callable[..., object]:
    def make_done_and_not_done(done: set[object], not_done: set[object]) -> object:
        return original(_AsTheyEnded(done) if current_lane() is not None else done, not_done)

    return make_done_and_not_done


def _yield_as_they_ended(original: Callable[..., Iterator[object]]) -> Callable[..., Iterator[object]]:
    def yield_finished_futures(
        fs: list[Future[object]], *rest: object, **options: object
    ) -> Iterator[object]:
        """Sort the futures that ended before ``as_completed`` was called; it yields from the list's end."""
        fs.sort(key=lambda future: -ended_at.get(future, sys.maxsize))
        return original(fs, *rest, **options)

    return yield_finished_futures


def _anyio_patches(module: ModuleType) -> list[Patch]:
    backend = getattr(module, "AsyncIOBackend", None)  # anyio 4
    return [Patch(backend, "run_sync_in_worker_thread", _run_as_job)] if backend is not None else []


def _run_as_job(original: Callable[..., Any]) -> Callable[..., object]:
    """``anyio.to_thread``, with which Starlette and Pydantic AI run sync functions, but in a lane."""

    async def run_sync_in_worker_thread(
        func: Callable[..., object], args: tuple[Any, ...], *rest: Any, **options: Any
    ) -> object:
        lane = current_lane()
        if lane is None:
            return await original(func, args, *rest, **options)
        function = name_function(func)
        child = lane.child(function)
        lane.context.lane_starting(child)

        def run() -> object:
            set_lane_of_callbacks(None)
            try:
                return run_in_thread(child, partial(func, *args), function)
            finally:
                set_lane_of_callbacks(child)  # the thread hands the result to the loop now

        return await original(run, (), *rest, **options)

    return run_sync_in_worker_thread


LIBRARIES: Final[Libraries] = {"anyio._backends._asyncio": _anyio_patches}


def _put_by_task(
    original: Callable[[object, object], Awaitable[None]],
) -> Callable[[object, object], Awaitable[None]]:
    async def put(self: object, item: object) -> None:
        lane = current_lane()
        if lane is not None:
            await lane.context.async_wait_to_act(lane, PUT)
        await original(self, item)

    return put


def _put_at_once(original: Callable[[object, object], None]) -> Callable[[object, object], None]:
    store = _store(original)

    def put_nowait(self: object, item: object) -> None:
        lane = current_lane()
        if lane is not None:
            lane.context.wait_to_act(lane, PUT)
        store(self, item)

    return put_nowait


def _store(original: Callable[[object, object], None]) -> Callable[[object, object], None]:
    def put(self: object, item: object) -> None:
        """Note the put here, where the queue's lock keeps other threads from putting or getting."""
        original(self, item)
        lane = current_lane()
        if lane is not None:
            lane.context.has_acted(lane, PUT)

    return put


class _SimpleQueue(queue.SimpleQueue[Any]):
    """A replacement for the only queue class that is written in C, so that its methods cannot be patched."""

    def __new__(cls) -> Any:
        """Return a plain queue to Python's own modules: their pools use them to give jobs to workers."""
        user = str(sys._getframe(1).f_globals.get("__name__"))  # noqa: SLF001
        return _PLAIN_QUEUE() if user.startswith(_OF_PYTHON) else super().__new__(cls)

    def __init__(self) -> None:
        self._putting = threading.RLock()

    def put(self, item: object, block: bool = True, timeout: float | None = None) -> None:
        lane = current_lane()
        if lane is None:
            super().put(item, block, timeout)
            return
        lane.context.wait_to_act(lane, PUT)
        with self._putting:
            super().put(item, block, timeout)
            lane.context.has_acted(lane, PUT)

    def put_nowait(self, item: object) -> None:
        self.put(item)

    def get(self, block: bool = True, timeout: float | None = None) -> Any:
        return _get(self, block, timeout)


_PLAIN_QUEUE: Final = queue.SimpleQueue
_get: Final = get_in_turn(_PLAIN_QUEUE.get)
_OF_PYTHON: Final = ("asyncio.", "concurrent.", "logging.", "multiprocessing.", "reenact.")


def run_in_thread(lane: Lane, run: Callable[[], object], function: str = "") -> Any:
    """Run all that a thread does in *lane*, and end the lane; *function* as ``name_function`` returns it."""
    try:
        return run_job(lane, run, function)
    finally:
        lane.context.lane_end_seen(lane)
        lane.context.lane_ended(lane)


def run_job(lane: Lane, run: Callable[[], object], function: str) -> object:
    """Run a job in *lane*; in replay it returns only when its turn to end has come."""
    how = ""
    try:
        answer = run_in_lane(lane, run)
        how = describe_end(function, answer, None)
        return answer
    except BaseException as error:
        how = describe_end(function, None, error)
        raise
    finally:
        lane.context.lane_ending(lane, how)


# How a task ended


def name_function(work: object) -> str:
    """The name of the function that *work* runs, in parentheses if it is a library's."""
    while isinstance(work, partial):
        given = (each for each in work.args if callable(each) and not _runs_in_context(each))
        work = next(given, work.func)
    for attribute in ("cr_code", "gi_code", "ag_code", "__code__"):
        code = getattr(work, attribute, None)
        if isinstance(code, CodeType):
            name = code.co_qualname.rpartition("<locals>.")[2]
            return f"({name})" if is_library(code.co_filename) else name
    function = getattr(work, "__func__", None)
    if function is not None:
        return name_function(function)
    return f"({getattr(work, '__qualname__', type(work).__name__)})"


def _runs_in_context(work: object) -> bool:
    """Whether it is ``context.run``, which runs the function that it is given."""
    return isinstance(getattr(work, "__self__", None), Context)


def describe_end(function: str, answer: object, error: BaseException | None) -> str:
    """How a task of *function* ended, as a short text for the recorded order; for a library's no result."""
    if function.startswith("("):
        return function + CANCELLED * is_cancellation(error)
    if is_cancellation(error):
        return f"{function} {CANCELLED}"
    if error is not None:
        return f"{function} ^{type(error).__name__}"
    if answer is None:
        return f"{function} ="
    try:
        text = "".join(islice(_outline(answer, 0), _MOST_PARTS))
    except Exception:  # even inspecting the object fails
        return f"{function} ="
    if _PLACEHOLDER in text:  # in replay; the recorded answer had the secret there
        return f"{function} {HIDDEN}"
    return f"{function} ={sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()[:8]}"


_PLACEHOLDER: Final = "<secret:"
_MOST_PARTS: Final = 1_000
_MOST_CHARACTERS: Final = 10_000
_DEPTH: Final = 8
_LARGEST: Final = 10**8
"""A larger number may be a time or an id."""
_GENERATED: Final = re.compile(r"(?=[\w-]*\d)[\w-]{8,}|\d+\.\d+|/tmp/\S+")
"""What may differ in every run: an id, an address, a duration, a temporary file."""


def _outline(value: Any, depth: int) -> Iterator[str]:
    """*value* as text, without the parts that may differ from run to run; of an object only its type."""
    kind = type(value)
    if kind is str:
        yield f"'{_GENERATED.sub('#', value[:_MOST_CHARACTERS])}'"
    elif kind is bool or value is None or (kind is int and abs(value) < _LARGEST):
        yield f"{value},"
    elif kind in (list, tuple) and depth < _DEPTH:
        yield "["
        for item in value:
            yield from _outline(item, depth + 1)
        yield "]"
    elif kind is dict and depth < _DEPTH:
        items = ("".join(_outline(pair, depth)) for pair in islice(value.items(), _MOST_PARTS))
        yield "{" + "".join(sorted(items)) + "}"
    elif kind in (set, frozenset) and depth < _DEPTH:
        items = ("".join(_outline(item, depth + 1)) for item in islice(value, _MOST_PARTS))
        yield "(" + "".join(sorted(items)) + ")"
    else:
        yield f"<{kind.__qualname__}>"


def run_in_lane(lane: Lane, work: Callable[[], object]) -> object:
    """Do *work* in *lane*, even if it enters another context (``asyncio.to_thread`` does)."""
    me = threading.get_ident()
    before = lane_var.get()
    register_lane(me, lane)
    set_lane(lane)
    lane.context.lane_began(lane)
    entered.listen()
    try:
        return work()
    finally:
        set_lane(before)
        forget_lane(me)

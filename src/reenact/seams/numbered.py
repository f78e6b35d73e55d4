"""Tasks and jobs whose hash is numbered by lane, so that sets of them have the same order in every run.

The hash of an object is its address, and the order of a set follows from its hashes. A program that goes
through the set of its running tasks to find one that is done would find another one in each run.

They are subclasses that differ in their hash alone: each is equal only to itself. Only tasks, executor jobs
and the futures in which an event loop waits for such jobs are numbered, when a run starts them; they keep
their hash after the run. Other objects, and the tasks of a task factory that the program brings along, are
left as they are.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future
from functools import cache
from typing import Any, Final, TypeAlias
from zlib import crc32

from reenact.boundary import Lane
from reenact.lane_name import ROOT, LaneName

_SIBLINGS: Final = 1 << 20
"""Siblings are ordered among themselves, whatever their parent is called; so its hash is above this."""
_OWN_EAGER_FACTORY: Final = getattr(asyncio, "eager_task_factory", None)
"""asyncio's own, since Python 3.12."""

CreateTask: TypeAlias = Callable[..., asyncio.Task[object]]


def number_of(lane: Lane) -> int:
    """The hash of the task or job of *lane*."""
    name = LaneName(lane.name)
    return crc32((name.parent or ROOT).encode()) * _SIBLINGS + (name.ordinal or 0)


@cache
def _with_number(base: type[Any]) -> type[Any]:
    """A subclass of asyncio's *base* whose objects are made with their hash as the first argument."""

    def __init__(self: Any, number: int, *arguments: object, **options: object) -> None:  # noqa: N807
        self._number = number  # first: a new task is put into the set of all tasks
        base.__init__(self, *arguments, **options)

    def __hash__(self: Any) -> int:  # noqa: N807
        return self._number  # type: ignore[no-any-return]

    members = {"__slots__": ("_number",), "__init__": __init__, "__hash__": __hash__}
    return type(base.__name__, (base,), members)


class _Job(Future[object]):
    number: int

    def __hash__(self) -> int:
        return self.number


_Job.__name__ = _Job.__qualname__ = "Future"  # as its repr shows it


def create_task(original: CreateTask, loop: Any, coro: object, lane: Lane, options: dict[str, Any]) -> Any:
    """What *original*, ``create_task`` of *loop*, returns for *coro*, but numbered."""
    factory = loop.get_task_factory()
    if factory is not None and factory is not _OWN_EAGER_FACTORY:
        return original(loop, coro, **options)

    own_name = ""

    def make(loop: Any, coro: object, **options: Any) -> object:
        nonlocal own_name
        loop.set_task_factory(factory)  # an eager task runs, and may start others, while it is made
        if factory is not None:
            options = {"eager_start": True, **options}
        # Not asyncio's class as it was once: nest_asyncio puts another one in its place.
        task = _with_number(asyncio.tasks.Task)(number_of(lane), coro, loop=loop, **options)
        own_name = task.get_name()
        return task

    loop.set_task_factory(make)
    try:
        task = original(loop, coro, **options)
    finally:
        loop.set_task_factory(factory)
    if options.get("name") is None:
        task.set_name(own_name)  # Python 3.13 names the tasks of a factory "None"
    return task


def number_job(job: Future[object], lane: Lane) -> None:
    """Number *job*, which an executor has just made and nobody has seen."""
    if type(job) is Future:
        job.__class__ = _Job
        job.number = number_of(lane)  # type: ignore[attr-defined]  # it is one now


def wrap_future(original: Callable[..., object]) -> Callable[..., object]:
    """``asyncio.wrap_future``, with which a loop waits for a job, but the future has the job's number."""

    def wrap(future: object, *, loop: Any = None) -> object:
        if type(future) is not _Job:
            return original(future, loop=loop)
        return original(future, loop=_FutureMaker(future.number, loop or asyncio.get_event_loop()))

    return wrap


class _FutureMaker:
    """An event loop as far as ``wrap_future`` needs it: it makes a future."""

    def __init__(self, number: int, loop: asyncio.AbstractEventLoop) -> None:
        self._number = number
        self._loop = loop

    def create_future(self) -> asyncio.Future[object]:
        future: asyncio.Future[object] = _with_number(asyncio.futures.Future)(self._number, loop=self._loop)
        return future

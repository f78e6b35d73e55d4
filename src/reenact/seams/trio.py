"""trio: each task has a lane from its start, as on other loops.

In replay no task waits for its turn, because trio offers nobody to wait for: neither order nor deadlines are
repeated, but every task gets what was recorded for it, and not for its neighbour that asked the same. What
``trio.run`` comes to is compared, so that a run that ends in another way for that is not called the same.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from types import ModuleType
from typing import Any, Final

from reenact.boundary import UNCLAIMED, current_lane, running_in
from reenact.seams.imports import Libraries
from reenact.seams.patches import Patch
from reenact.seams.spawn import describe_end, own_function


def _patches(module: ModuleType) -> list[Patch]:
    return [
        Patch(module, "run", _run),
        Patch(module.Nursery, "start_soon", _in_new_lane),
        Patch(module.Nursery, "start", _awaited_in_new_lane),
    ]


def _run(original: Callable[..., Any]) -> Callable[..., Any]:
    def run(async_fn: Any, *args: Any, **options: Any) -> Any:
        lane = current_lane()
        if lane is None:
            return original(async_fn, *args, **options)
        child = lane.child()
        child.owner = UNCLAIMED
        function, how = own_function(async_fn), ""
        lane.context.lane_began(child)
        try:
            with running_in(child):
                answer = original(async_fn, *args, **options)
            how = describe_end(function, answer, None)
            return answer
        except BaseException as error:
            how = describe_end(function, None, error)
            raise
        finally:
            lane.context.lane_ending(child, how)
            lane.context.lane_told(child)
            lane.context.lane_ended(child)

    return run


def _in_new_lane(original: Callable[..., Any]) -> Callable[..., Any]:
    def start(*args: Any, **options: Any) -> Any:
        with _lane_of_next_task():
            return original(*args, **options)

    return start


def _awaited_in_new_lane(original: Callable[..., Any]) -> Callable[..., Any]:
    async def start(*args: Any, **options: Any) -> Any:
        with _lane_of_next_task():
            return await original(*args, **options)

    return start


def _lane_of_next_task() -> AbstractContextManager[None]:
    """A task inherits what is current where it is started, and the lane is its own from its first call on."""
    lane = current_lane()
    if lane is None:
        return nullcontext()
    child = lane.child()
    child.owner = UNCLAIMED
    return running_in(child)


LIBRARIES: Final[Libraries] = {"trio": _patches}

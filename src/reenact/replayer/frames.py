"""Finds the agent's own lines on the stack of a call."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from inspect import currentframe
from itertools import islice, takewhile
from os import sep
from os.path import abspath
from sysconfig import get_path
from types import FrameType
from typing import Final

from reenact.boundary import Lane
from reenact.library import is_library

DEPTH_LIMIT: Final = 200
"""How many frames to search, innermost first; stacks of SDKs stay under a hundred."""
_SHOWN_FRAMES: Final = 3
_STARTS_WITHIN: Final = 20
"""How many callers to search for the line that starts a task."""
_RUN_BY_LOOP: Final = asyncio.Handle._run.__code__  # noqa: SLF001 — it has no public name
_SCRIPTS: Final = get_path("scripts") + sep


def agent_frame(depth_limit: int = DEPTH_LIMIT) -> str | None:
    """``file:line in function`` of the innermost caller that is neither library nor reenact.

    ``None`` if the thread runs only library code, such as the event loop's name lookups.
    """
    return next(_agent_frames(_callers(), depth_limit), None)


def starting_frame() -> str | None:
    """The line of the agent's code that starts a task, if a task, thread or job is started now."""
    return next(_agent_frames(_callers_in_task(), _STARTS_WITHIN), None)


def calling_frames(lane: Lane | None) -> tuple[str, ...]:
    """Up to three lines of the agent's code that led to the call that *lane* makes, innermost first.

    Behind those of its own task are the lines that started this task, and the tasks around it. The script
    that started the program, such as ``bin/pytest``, is named only if there is no other.
    """
    found = [*islice(_agent_frames(_callers_in_task(), DEPTH_LIMIT), _SHOWN_FRAMES)]
    while lane is not None and len(found) < _SHOWN_FRAMES:
        if lane.started_from is not None and lane.started_from not in found:
            found.append(lane.started_from)
        lane = lane.parent
    found = found or [*islice(_agent_frames(_callers(), DEPTH_LIMIT), _SHOWN_FRAMES)]
    return tuple(frame for frame in found if not abspath(frame).startswith(_SCRIPTS)) or tuple(found)


def _agent_frames(callers: Iterator[FrameType], depth_limit: int) -> Iterator[str]:
    for frame in islice(callers, depth_limit):
        code = frame.f_code
        if not is_library(code.co_filename):
            yield f"{code.co_filename}:{frame.f_lineno} in {code.co_qualname}"


def _callers() -> Iterator[FrameType]:
    frame = currentframe()
    while frame is not None:
        yield frame
        frame = frame.f_back


def _callers_in_task() -> Iterator[FrameType]:
    """The callers up to the event loop: what called the loop has not started what it runs."""
    return takewhile(lambda frame: frame.f_code is not _RUN_BY_LOOP, _callers())

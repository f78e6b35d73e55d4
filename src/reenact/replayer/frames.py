"""Finds the agent's own lines on the stack of a call."""

from __future__ import annotations

from collections.abc import Iterator
from inspect import currentframe
from itertools import islice
from os import sep
from os.path import abspath
from sysconfig import get_path
from types import FrameType
from typing import Final

from reenact.library import is_library

DEPTH_LIMIT: Final = 200
"""How many frames to search, innermost first; stacks of SDKs stay under a hundred."""
_SHOWN_FRAMES: Final = 3
_SCRIPTS: Final = get_path("scripts") + sep


def agent_frame(depth_limit: int = DEPTH_LIMIT) -> str | None:
    """``file:line in function`` of the innermost caller that is neither library nor reenact.

    ``None`` if the thread runs only library code, such as the event loop's name lookups.
    """
    return next(_agent_frames(depth_limit), None)


def calling_frames() -> tuple[str, ...]:
    """Up to three such callers, innermost first.

    The script that started the program, such as ``bin/pytest``, is named only if there is no other.
    """
    found = tuple(islice(_agent_frames(DEPTH_LIMIT), _SHOWN_FRAMES))
    return tuple(frame for frame in found if not abspath(frame).startswith(_SCRIPTS)) or found


def _agent_frames(depth_limit: int) -> Iterator[str]:
    for frame in islice(_callers(), depth_limit):
        code = frame.f_code
        if not is_library(code.co_filename):
            yield f"{code.co_filename}:{frame.f_lineno} in {code.co_qualname}"


def _callers() -> Iterator[FrameType]:
    frame = currentframe()
    while frame is not None:
        yield frame
        frame = frame.f_back

"""Which files of the project had code that ran in a run.

A replay that answers the test's own client from the recording makes the same calls and runs none of the app.
Python 3.12 and newer tell of each function once, for next to nothing; older ones cannot, and nothing is said.
"""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from threading import Lock
from types import CodeType
from typing import Any, Final, Self

from reenact.boundary import Context, current_lane
from reenact.library import is_library
from reenact.seams.stdlib.places import recorded_path

_TOOL_IDS: Final = (4, 3)
"""Not those that debuggers, coverage and profilers are given."""
_IS_FUNCTION: Final = 0x1
_MOST_ASKED: Final = 1000
"""So often a function that runs inside calls alone is looked at."""

_monitoring: Any = getattr(sys, "monitoring", None)
_open: tuple[Entered, ...] = ()
_changing = Lock()
_tool_id: int | None = None
_asked: Counter[CodeType] = Counter()


class Entered:
    """The files of the run of *context*, below the working folder, while it is open and after."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._files: set[str] = set()
        self.is_known = False
        """Whether this Python can tell."""

    def __enter__(self) -> Self:
        global _open
        with _changing:
            self.is_known = _start()
            if self.is_known:
                _open = (*_open, self)
                _monitoring.restart_events()
        return self

    def __exit__(self, *_: object) -> None:
        global _open
        with _changing:
            _open = tuple(one for one in _open if one is not self)
            if not _open:
                _stop()

    @property
    def files(self) -> list[str]:
        """As a capture tells them."""
        shown = {recorded_path(file) for file in self._files}
        return sorted(file for file in shown if not Path(file).is_absolute() and not file.startswith("{"))

    def has(self, context: Context, file: str) -> bool:
        """Whether *file* is one of the run's, which is the run of *context*; if so, it is from now on."""
        if context is self._context:
            self._files.add(file)
            return True
        return False


def _start() -> bool:
    global _tool_id
    if _monitoring is None or _tool_id is not None:
        return _tool_id is not None
    _tool_id = next((one for one in _TOOL_IDS if _monitoring.get_tool(one) is None), None)
    if _tool_id is None:
        return False
    _monitoring.use_tool_id(_tool_id, "reenact")
    _monitoring.register_callback(_tool_id, _monitoring.events.PY_START, _began)
    _monitoring.set_events(_tool_id, _monitoring.events.PY_START)
    return True


def _stop() -> None:
    global _tool_id
    if _tool_id is not None:
        _monitoring.set_events(_tool_id, 0)
        _monitoring.register_callback(_tool_id, _monitoring.events.PY_START, None)
        _monitoring.free_tool_id(_tool_id)
        _tool_id = None
    _asked.clear()


def _began(code: CodeType, _offset: int) -> object:
    """A function has begun; told once where it is a library's, or known already."""
    if not code.co_flags & _IS_FUNCTION or code.co_filename.startswith("<") or is_library(code.co_filename):
        return _monitoring.DISABLE
    lane = current_lane()
    # What runs inside a call, as a tool's own body does, is answered in replay.
    if lane is not None and lane.within is None:
        for one in _open:
            if one.has(lane.context, code.co_filename) and len(_open) == 1:
                return _monitoring.DISABLE
    _asked[code] += 1
    return _monitoring.DISABLE if _asked[code] > _MOST_ASKED else None

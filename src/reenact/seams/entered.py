"""Which files of the project had code that ran in a run.

A replay that answers the test's own client from the recording makes the same calls and runs none of the app.
Python 3.12 and newer tell of each function once, for next to nothing. Python 3.11 tells of every call, to the
hook for profilers; so only tests are listened to there, and their replay until all recorded files have run.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from threading import Lock
from types import CodeType, FrameType
from typing import Any, Final, Self

from reenact.boundary import Context, current_lane
from reenact.library import is_library
from reenact.seams.stdlib.places import recorded_path

_IS_FUNCTION: Final = 0x1


class Entered:
    """The files of the run of *context*, below the working folder, while it is open and after."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._files: dict[str, str] = {}
        """As a capture tells them, by their full names."""
        self.missing: set[str] = set()
        """What was not entered of that which alone is looked for."""
        self._is_moot: Callable[[], bool] | None = None
        self.is_whole = False
        """Whether it is looked for as long as the run is open, whatever that costs."""
        self.is_known = False
        """Whether nothing was missed that was looked for."""

    def among(self, files: Iterable[str], is_moot: Callable[[], bool]) -> Self:
        """Look for these *files* alone, until each was entered or nobody wants to know any more."""
        self.missing.update(files)
        self._is_moot = is_moot
        return self

    def __enter__(self) -> Self:
        global _open
        if self.is_over or (listener.is_costly and not self.is_whole):
            return self
        with _changing:
            before, _open = _open, (*_open, self)
            if not listener.start():
                _open = before
        return self

    def __exit__(self, *_: object) -> None:
        global _open
        with _changing:
            if self not in _open:
                return
            self.is_known = self.is_over or listener.is_listening()
            _open = tuple(one for one in _open if one is not self)
            if not _open:
                listener.stop()

    @property
    def is_over(self) -> bool:
        """Whether all was entered that is looked for, or nobody wants to know."""
        return self._is_moot is not None and (not self.missing or self._is_moot())

    @property
    def files(self) -> list[str]:
        """As a capture tells them."""
        shown = set(self._files.values())
        return sorted(file for file in shown if not Path(file).is_absolute() and not file.startswith("{"))

    def has(self, context: Context, file: str) -> bool:
        """Whether *file* is one of the run's, which is the run of *context*; if so, it is from now on."""
        if context is not self._context:
            return False
        if file not in self._files:
            name = self._files[file] = recorded_path(file)
            self.missing.discard(name)
        return True


def listen() -> None:
    """Something of a run begins in this thread, of which nobody may be told yet."""
    if listener.is_wanted:
        listener.listen()


def _is_entered(code: CodeType) -> bool:
    """Whether every open run knows by now that *code* of the project was entered, outside of its calls."""
    lane = current_lane()
    # What runs inside a call, as a tool's own body does, is answered in replay.
    if lane is None or lane.within is not None:
        return False
    return any(one.has(lane.context, code.co_filename) for one in _open) and len(_open) == 1


def _is_of_project(code: CodeType) -> bool:
    return not code.co_filename.startswith("<") and not is_library(code.co_filename)


class _ByMonitoring:
    """Since Python 3.12: told once of each function, in every thread, until it is said to be known."""

    _TOOL_IDS: Final = (4, 3)
    """Not those that debuggers, coverage and profilers are given."""
    _MOST_ASKED: Final = 1000
    """So often a function that runs inside calls alone is looked at."""
    is_wanted = is_costly = False

    def __init__(self, monitoring: Any) -> None:
        self._monitoring = monitoring
        self._tool_id: int | None = None
        self._asked: Counter[CodeType] = Counter()

    def start(self) -> bool:
        monitoring = self._monitoring
        if self._tool_id is None:
            self._tool_id = next((one for one in self._TOOL_IDS if monitoring.get_tool(one) is None), None)
            if self._tool_id is not None:
                monitoring.use_tool_id(self._tool_id, "reenact")
                monitoring.register_callback(self._tool_id, monitoring.events.PY_START, self._began)
                monitoring.set_events(self._tool_id, monitoring.events.PY_START)
        monitoring.restart_events()
        return self.is_listening()

    def is_listening(self) -> bool:
        return self._tool_id is not None

    def listen(self) -> None:
        """All threads are."""

    def stop(self) -> None:
        if self._tool_id is not None:
            self._monitoring.set_events(self._tool_id, 0)
            self._monitoring.register_callback(self._tool_id, self._monitoring.events.PY_START, None)
            self._monitoring.free_tool_id(self._tool_id)
            self._tool_id = None
        self._asked.clear()

    def _began(self, code: CodeType, _offset: int) -> object:
        if not code.co_flags & _IS_FUNCTION or not _is_of_project(code) or _is_entered(code):
            return self._monitoring.DISABLE
        self._asked[code] += 1
        return self._monitoring.DISABLE if self._asked[code] > self._MOST_ASKED else None


class _ByProfiling:
    """Before Python 3.12: told of each call in the threads that listen, until nothing more is looked for."""

    _STRIDE: Final = 1_000
    """So often is looked whether there is still something to look for."""

    is_costly = True
    """Whether only those are listened to who ask for all."""

    def __init__(self) -> None:
        self.is_wanted = False
        """Whether some run still looks for files."""
        self._is_deaf = False
        """Whether a profiler has the hook, of this thread or another one."""
        self._known: set[str] = set()
        """Files: libraries, and those that every open run has entered; begun anew with each run."""
        self._calls = 0
        self._most_calls = 0

    def start(self) -> bool:
        if not self.is_wanted:
            self._calls, self._most_calls, self._is_deaf = 0, 0, False
        self.is_wanted = True
        self._known.clear()
        self.listen()
        return self.is_listening()

    def is_listening(self) -> bool:
        return not self._is_deaf and sys.getprofile() == self._called

    def stop(self) -> None:
        self.is_wanted = False
        self._leave()
        self._known.clear()

    def listen(self) -> None:
        hook = sys.getprofile()
        if hook is not None:
            self._is_deaf |= hook != self._called
        elif not self._has_had_enough():
            sys.setprofile(self._called)

    def _leave(self) -> None:
        if sys.getprofile() == self._called:
            sys.setprofile(None)

    def _called(self, frame: FrameType, event: str, _: object) -> None:
        if event != "call":
            return
        self._calls += 1
        code = frame.f_code
        if code.co_filename not in self._known and (
            not _is_of_project(code) or (code.co_flags & _IS_FUNCTION and _is_entered(code))
        ):
            self._known.add(code.co_filename)
            self._most_calls = 0
        if (self._calls > self._most_calls or not self.is_wanted) and self._has_had_enough():
            self._leave()

    def _has_had_enough(self) -> bool:
        self.is_wanted &= not all(one.is_over for one in _open)
        self._most_calls = self._calls + self._STRIDE
        return not self.is_wanted


_open: tuple[Entered, ...] = ()
_changing = Lock()
_monitoring: Final[Any] = getattr(sys, "monitoring", None)
listener: Final = _ByProfiling() if _monitoring is None else _ByMonitoring(_monitoring)

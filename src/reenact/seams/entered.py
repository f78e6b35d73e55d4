"""Records which of the project's files had code that ran in a run.

If replay answers a test's own client from the recording, all calls match although the app never runs; the
list of files shows that. Python 3.12 and newer report each function once, at almost no cost. Python 3.11
calls the profiler's hook for every call; so there only tests are watched, and their replay only until all
recorded files have run.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, Final, Self

from reenact.boundary import Context, current_lane
from reenact.library import is_library
from reenact.process_state import executed_files
from reenact.seams.stdlib.places import recorded_path

_IS_FUNCTION: Final = 0x1


class ExecutedFiles:
    """The files of the run of *context* below the working folder; readable during the run and after it."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._files: dict[str, str] = {}
        """By full path: the path as a capture records it."""
        self.missing: set[str] = set()
        """Of the files to look for, those in which no code has run yet."""
        self._is_moot: Callable[[], bool] | None = None
        self.is_whole = False
        """Whether to watch during the whole run, whatever that costs."""
        self.is_known = False
        """Whether the list is complete: no profiler or tool of others interrupted the watching."""

    def restrict(self, files: Iterable[str], is_moot: Callable[[], bool]) -> Self:
        """Look only for *files*, until code in each has run or *is_moot* says that it no longer matters."""
        self.missing.update(files)
        self._is_moot = is_moot
        return self

    def __enter__(self) -> Self:
        if self.is_over or (listener.is_costly and not self.is_whole):
            return self
        with executed_files.lock:
            executed_files.add(self)
            if not listener.start():
                executed_files.remove(self)
        return self

    def __exit__(self, *_: object) -> None:
        with executed_files.lock:
            if self not in executed_files.entries:
                return
            self.is_known = self.is_over or listener.is_listening()
            executed_files.remove(self)
            if not executed_files.entries:
                listener.stop()

    @property
    def is_over(self) -> bool:
        """Whether every file to look for has run code, or the result no longer matters."""
        return self._is_moot is not None and (not self.missing or self._is_moot())

    @property
    def files(self) -> list[str]:
        """Relative paths, as a capture records them."""
        shown = set(self._files.values())
        return sorted(file for file in shown if not Path(file).is_absolute() and not file.startswith("{"))

    def has(self, context: Context, file: str) -> bool:
        """Add *file* if *context* is the context of this run; returns whether it is."""
        if context is not self._context:
            return False
        if file not in self._files:
            name = self._files[file] = recorded_path(file)
            self.missing.discard(name)
        return True


def listen() -> None:
    """Watch this thread, too, because code of a run begins in it; needed before Python 3.12 only."""
    if listener.is_wanted:
        listener.listen()


def _note_entered(code: CodeType) -> bool:
    """Add the file of *code* to the current run; true if no open run needs to hear of *code* again."""
    lane = current_lane()
    # Code inside a call, such as a tool's body, does not run in replay.
    if lane is None or lane.within is not None:
        return False
    watching = executed_files.entries
    return any(one.has(lane.context, code.co_filename) for one in watching) and len(watching) == 1


def _is_of_project(code: CodeType) -> bool:
    return not code.co_filename.startswith("<") and not is_library(code.co_filename)


class _ByMonitoring:
    """Since Python 3.12: a callback for each function, in every thread, until it returns ``DISABLE``."""

    _TOOL_IDS: Final = (4, 3)
    """Not the ids that are reserved for debuggers, coverage and profilers."""
    _MOST_ASKED: Final = 1000
    """How often to check a function that runs only inside calls."""
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
                monitoring.register_callback(self._tool_id, monitoring.events.PY_START, self._on_start)
                monitoring.set_events(self._tool_id, monitoring.events.PY_START)
        monitoring.restart_events()
        return self.is_listening()

    def is_listening(self) -> bool:
        return self._tool_id is not None

    def listen(self) -> None:
        """Nothing to do: all threads are watched."""

    def stop(self) -> None:
        if self._tool_id is not None:
            self._monitoring.set_events(self._tool_id, 0)
            self._monitoring.register_callback(self._tool_id, self._monitoring.events.PY_START, None)
            self._monitoring.free_tool_id(self._tool_id)
            self._tool_id = None
        self._asked.clear()

    def _on_start(self, code: CodeType, _offset: int) -> object:
        if not code.co_flags & _IS_FUNCTION or not _is_of_project(code) or _note_entered(code):
            return self._monitoring.DISABLE
        self._asked[code] += 1
        return self._monitoring.DISABLE if self._asked[code] > self._MOST_ASKED else None


class _ByProfiling:
    """Before Python 3.12: the profiler's hook in the watched threads, until all files are found."""

    _STRIDE: Final = 1_000
    """After how many calls to check again whether there is still a file to look for."""

    is_costly = True
    """Whether to watch only for runs that ask for it (``is_whole``)."""

    def __init__(self) -> None:
        self.is_wanted = False
        """Whether some run still looks for files."""
        self._is_deaf = False
        """Whether another profiler uses the hook, in any watched thread."""
        self._known: set[str] = set()
        """Files to ignore: libraries, and those that every open run has; cleared when a run opens."""
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
        return not self._is_deaf and sys.getprofile() == self._on_call

    def stop(self) -> None:
        self.is_wanted = False
        self._leave()
        self._known.clear()

    def listen(self) -> None:
        hook = sys.getprofile()
        if hook is not None:
            self._is_deaf |= hook != self._on_call
        elif not self._has_had_enough():
            sys.setprofile(self._on_call)

    def _leave(self) -> None:
        if sys.getprofile() == self._on_call:
            sys.setprofile(None)

    def _on_call(self, frame: FrameType, event: str, _: object) -> None:
        if event != "call":
            return
        self._calls += 1
        code = frame.f_code
        if code.co_filename not in self._known and (
            not _is_of_project(code) or (code.co_flags & _IS_FUNCTION and _note_entered(code))
        ):
            self._known.add(code.co_filename)
            self._most_calls = 0
        if (self._calls > self._most_calls or not self.is_wanted) and self._has_had_enough():
            self._leave()

    def _has_had_enough(self) -> bool:
        self.is_wanted &= not all(one.is_over for one in executed_files.entries)
        self._most_calls = self._calls + self._STRIDE
        return not self.is_wanted


_monitoring: Final[Any] = getattr(sys, "monitoring", None)
listener: Final = _ByProfiling() if _monitoring is None else _ByMonitoring(_monitoring)

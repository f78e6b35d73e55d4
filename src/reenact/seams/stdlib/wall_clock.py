"""The wall clock of libraries: recorded in the order of events, and read again in a replay.

A library that writes "next Monday", or puts the time into a log line or a file, reads the clock itself. Each
reading is recorded with its place in the library's code. In a replay the same place of the same task gets
the recorded times. If it reads more often, it sees a clock that goes on from the time when the recorded run
began. ``time.perf_counter``, which measures durations, goes with it. ``time.monotonic``, by which code waits,
is real.
"""

from __future__ import annotations

import datetime
import gc
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from reenact.boundary import certain_lane
from reenact.process_state import clock_shifts
from reenact.seams.patches import Patch, attach, detach
from reenact.seams.stdlib.sources import is_genuine

if TYPE_CHECKING:
    from types import FrameType

_MOVED_NS: Final = 1800 * 10**9
_time_ns, _monotonic_ns, _perf_counter_ns = time.time_ns, time.monotonic_ns, time.perf_counter_ns
_datetime: Final = datetime.datetime
_is_real: Final = tuple(
    (name, getattr(time, name))
    for name in ("time", "time_ns", "localtime", "gmtime", "strftime", "perf_counter", "perf_counter_ns")
)


class ClockShift:
    """The clock of one run; the first of several open ones tells where the others began."""

    __slots__ = ("ahead_ns", "counted_before_ns", "gained_ns", "shift_ns")

    def __init__(self, shift_ns: int) -> None:
        self.shift_ns = shift_ns
        self.ahead_ns = _time_ns() - _monotonic_ns()
        """How far the real wall clock was ahead of the monotonic one when the run began."""
        self.counted_before_ns = _time_ns() + shift_ns - _perf_counter_ns()
        """What the wall clock said when ``perf_counter`` was zero."""
        self.gained_ns = 0
        """How much later recorded times were than the moved clock said; it goes on from there."""


@contextmanager
def wall_clock_of_run(shift_s: float) -> Iterator[None]:
    """Let the wall clock of this process be ahead by *shift_s*, unless a test has put another clock there.

    The current run gets each reading of a library, to record it or to answer with the recorded time.
    """
    if not _is_genuine_clock():
        yield
        return
    shift = ClockShift(round(shift_s * 1e9))
    with clock_shifts.lock:
        if not clock_shifts.entries:
            _exchange(_METHODS)
        attach(_PATCHES)
        clock_shifts.add(shift)
    try:
        yield
    finally:
        with clock_shifts.lock:
            clock_shifts.remove(shift)
            if not clock_shifts.entries:
                _exchange(_ORIGINALS)
            detach(_PATCHES)


def _is_genuine_clock() -> bool:
    is_whole = all(is_genuine(getattr(time, name), original) for name, original in _is_real)
    return is_whole and datetime.datetime is _datetime and _members is not None


def clock_gain_s() -> float:
    """How much later the latest recorded time was than the moved clock said."""
    return clock_shifts.entries[0].gained_ns / 1e9 if clock_shifts.entries else 0.0


def _read_ns() -> int:
    """The time that the caller's caller reads."""
    clocks = clock_shifts.entries
    if not clocks:
        return _time_ns()
    return _read_clock(clocks[0], _time_ns(), clocks[-1].shift_ns, sys._getframe(2))  # noqa: SLF001


def _read_counter_ns() -> int:
    """The same of ``perf_counter``."""
    clocks = clock_shifts.entries
    if not clocks:
        return _perf_counter_ns()
    before_ns = clocks[0].counted_before_ns
    return _read_clock(clocks[0], _perf_counter_ns() + before_ns, 0, sys._getframe(2)) - before_ns  # noqa: SLF001


def _read_clock(first: ClockShift, real_ns: int, shift_ns: int, caller: FrameType) -> int:
    """What *caller* reads; the real time while a test has stopped the clock or moved it."""
    if abs(_time_ns() - _monotonic_ns() - first.ahead_ns) > _MOVED_NS:
        return real_ns
    now_ns = real_ns + shift_ns + first.gained_ns
    lane = certain_lane()
    if lane is None or lane.within is not None:
        return now_ns
    module = str(caller.f_globals.get("__name__"))
    if module.startswith("reenact."):  # it records the reading itself
        return now_ns
    read_ns = lane.context.read_wall_clock(lane, f"{module}:{caller.f_lineno}", now_ns)
    first.gained_ns += max(0, read_ns - now_ns)
    return read_ns


# ``time``


def _count_s(_: object) -> Callable[[], float]:
    return lambda: _read_ns() / 1e9


def _count_ns(_: object) -> Callable[[], int]:
    return lambda: _read_ns()


def _measure_s(_: object) -> Callable[[], float]:
    return lambda: _read_counter_ns() / 1e9


def _measure_ns(_: object) -> Callable[[], int]:
    return lambda: _read_counter_ns()


def _of_clock_s(original: Callable[[int], float]) -> Callable[[int], float]:
    return lambda clock, /: _read_ns() / 1e9 if clock == time.CLOCK_REALTIME else original(clock)


def _of_clock_ns(original: Callable[[int], int]) -> Callable[[int], int]:
    return lambda clock, /: _read_ns() if clock == time.CLOCK_REALTIME else original(clock)


def _break_down(original: Callable[..., time.struct_time]) -> Callable[..., time.struct_time]:
    def read(secs: float | None = None, /) -> time.struct_time:
        return original(_read_ns() / 1e9 if secs is None else secs)

    return read


def _tell(original: Callable[..., str]) -> Callable[..., str]:
    def tell(secs: float | None = None, /) -> str:
        return original(_read_ns() / 1e9 if secs is None else secs)

    return tell


def _format(original: Callable[..., str], given: int) -> Callable[..., str]:
    """``asctime`` or ``strftime``, which writes the current time after *given* other arguments."""
    localtime = dict(_is_real)["localtime"]

    def write(*args: Any) -> str:
        return original(*args, localtime(_read_ns() / 1e9)) if len(args) == given else original(*args)

    return write


_PATCHES: Final = [
    Patch(time, "time", _count_s),
    Patch(time, "time_ns", _count_ns),
    Patch(time, "perf_counter", _measure_s),
    Patch(time, "perf_counter_ns", _measure_ns),
    Patch(time, "localtime", _break_down),
    Patch(time, "gmtime", _break_down),
    Patch(time, "ctime", _tell),
    Patch(time, "asctime", lambda original: _format(original, 0)),
    Patch(time, "strftime", lambda original: _format(original, 1)),
    *(
        Patch(time, name, wrap)
        for name, wrap in (("clock_gettime", _of_clock_s), ("clock_gettime_ns", _of_clock_ns))
        if hasattr(time, name)
    ),
]


# ``datetime``, whose class is compiled: its methods are exchanged in its namespace itself


def _now(cls: type[datetime.datetime], tz: datetime.tzinfo | None = None) -> datetime.datetime:
    return cls.fromtimestamp(_read_ns() / 1e9, tz)


def _utcnow(cls: type[datetime.datetime]) -> datetime.datetime:
    return cls.fromtimestamp(_read_ns() / 1e9, datetime.UTC).replace(tzinfo=None)


def _members_of(compiled: type) -> dict[str, Any] | None:
    """The namespace of a compiled class, which can be changed; ``None`` where Python does not tell."""
    found = [each for each in gc.get_referents(vars(compiled)) if isinstance(each, dict)]
    return found[0] if len(found) == 1 and "now" in found[0] else None


_members: Final = _members_of(datetime.datetime)
_ORIGINALS: Final = {name: vars(datetime.datetime)[name] for name in ("now", "utcnow")}
_METHODS: Final[dict[str, object]] = {"now": classmethod(_now), "utcnow": classmethod(_utcnow)}


def _exchange(methods: dict[str, object]) -> None:
    import ctypes  # slow to import, and only replays need it

    assert _members is not None
    _members.update(methods)
    ctypes.pythonapi.PyType_Modified(ctypes.py_object(datetime.datetime))

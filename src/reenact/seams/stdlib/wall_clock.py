"""The wall clock of a replay: libraries see the time of the recorded run.

A library that writes "in three days" or "next Monday" reads the clock itself. What it reads is not recorded,
so in a replay all code of the process sees a clock that goes on from the time when the recorded run began.
Only dates and times of day are moved; clocks that measure durations are not.
"""

from __future__ import annotations

import datetime
import gc
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final, NamedTuple

from reenact.process_state import clock_shifts
from reenact.seams.patches import Patch, attach, detach
from reenact.seams.stdlib.sources import is_genuine

_MOVED_NS: Final = 1800 * 10**9
_time_ns, _monotonic_ns = time.time_ns, time.monotonic_ns
_datetime: Final = datetime.datetime
_is_real: Final = tuple(
    (name, getattr(time, name)) for name in ("time", "time_ns", "localtime", "gmtime", "strftime")
)


class ClockShift(NamedTuple):
    """The shift of the wall clock in one replay."""

    shift_ns: int
    ahead_ns: int
    """How far the real wall clock was ahead of the monotonic one when the replay began."""


@contextmanager
def wall_clock_of_run(shift_s: float) -> Iterator[None]:
    """Let the wall clock of this process be ahead by *shift_s*, unless a test has put another clock there."""
    if not _is_genuine_clock():
        yield
        return
    shift = ClockShift(round(shift_s * 1e9), _time_ns() - _monotonic_ns())
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


def _shift_ns() -> int:
    """How far ahead the clock is; not at all while a test has stopped the real one or moved it."""
    shifts = clock_shifts.entries
    if not shifts or abs(_time_ns() - _monotonic_ns() - shifts[0].ahead_ns) > _MOVED_NS:
        return 0
    return shifts[-1].shift_ns


def _now_s() -> float:
    return (_time_ns() + _shift_ns()) / 1e9


# ``time``


def _count_s(original: Callable[[], float]) -> Callable[[], float]:
    return lambda: original() + _shift_ns() / 1e9


def _count_ns(original: Callable[[], int]) -> Callable[[], int]:
    return lambda: original() + _shift_ns()


def _of_clock_s(original: Callable[[int], float]) -> Callable[[int], float]:
    return lambda clock, /: original(clock) + (_shift_ns() / 1e9 if clock == time.CLOCK_REALTIME else 0)


def _of_clock_ns(original: Callable[[int], int]) -> Callable[[int], int]:
    return lambda clock, /: original(clock) + (_shift_ns() if clock == time.CLOCK_REALTIME else 0)


def _break_down(original: Callable[..., time.struct_time]) -> Callable[..., time.struct_time]:
    def read(secs: float | None = None, /) -> time.struct_time:
        return original(_now_s() if secs is None else secs)

    return read


def _tell(original: Callable[..., str]) -> Callable[..., str]:
    def tell(secs: float | None = None, /) -> str:
        return original(_now_s() if secs is None else secs)

    return tell


def _format(original: Callable[..., str], given: int) -> Callable[..., str]:
    """``asctime`` or ``strftime``, which writes the current time after *given* other arguments."""
    localtime = dict(_is_real)["localtime"]

    def write(*args: Any) -> str:
        return original(*args, localtime(_now_s())) if len(args) == given else original(*args)

    return write


_PATCHES: Final = [
    Patch(time, "time", _count_s),
    Patch(time, "time_ns", _count_ns),
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
    return cls.fromtimestamp(_now_s(), tz)


def _utcnow(cls: type[datetime.datetime]) -> datetime.datetime:
    return cls.fromtimestamp(_now_s(), datetime.UTC).replace(tzinfo=None)


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

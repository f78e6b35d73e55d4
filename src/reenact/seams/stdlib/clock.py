"""The clock: ``time``, ``datetime`` and ``date``, read once when recorded and never again.

A moment is recorded as it was read, local time zone included, so that a replay elsewhere reads the same.
"""

from __future__ import annotations

import datetime
import time
from collections.abc import Callable
from functools import update_wrapper
from types import ModuleType
from typing import Any, Final

from reenact.boundary import Instant
from reenact.seams.stdlib.chosen import lane_for, value_of
from reenact.seams.stdlib.standing import Standing

_date: Final = datetime.date
_datetime: Final = datetime.datetime

_COUNTERS: Final = ("time", "monotonic", "perf_counter", "process_time", "thread_time")


def _read(key: str) -> Instant:
    return Instant("nondeterministic", {"source": "clock", "key": key}, is_plain=True)


def _counter(name: str) -> Callable[[], Any]:
    instant = _read(f"time.{name}")

    def read() -> Any:
        lane = lane_for("time")
        # Looked up at each call: a test may have put a clock of its own there.
        real = getattr(time, name)
        return real() if lane is None else lane.context.instant(instant, lane, real)

    return update_wrapper(read, getattr(time, name))


def _broken_down(name: str) -> Callable[..., time.struct_time]:
    """``localtime`` or ``gmtime``: reads the clock only where it is given no time."""
    instant = _read(f"time.{name}")
    real = getattr(time, name)

    def read(secs: float | None = None, /) -> time.struct_time:
        if secs is not None:
            return real(secs)  # type: ignore[no-any-return]
        fields, zone, offset_s = value_of("time", instant, lambda: _to_json(real()))
        return time.struct_time(fields, {"tm_zone": zone, "tm_gmtoff": offset_s})

    return update_wrapper(read, real)


def _to_json(moment: time.struct_time) -> list[Any]:
    return [list(moment), moment.tm_zone, moment.tm_gmtoff]


_localtime: Final = _broken_down("localtime")


def _ctime(secs: float | None = None, /) -> str:
    return time.asctime(_localtime(secs))


def _asctime(*moment: Any) -> str:
    return time.asctime(*moment or (_localtime(),))


def _strftime(pattern: str, *moment: Any) -> str:
    return time.strftime(pattern, *moment or (_localtime(),))


def _sleep(seconds: float, /) -> None:
    lane = lane_for("time")
    time.sleep(seconds if lane is None or lane.context.time_passes(lane) else 0)


class Date(datetime.date, metaclass=Standing):
    """``datetime.date`` whose today is the run's."""

    __supertype__ = datetime.date

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        return _date(*args, **kwargs) if cls is Date else super().__new__(cls, *args, **kwargs)

    @classmethod
    def today(cls) -> Any:
        text = value_of("time", _TODAY, lambda: datetime.date.today().isoformat())  # noqa: DTZ011
        return cls.fromisoformat(text)


class DateTime(datetime.datetime, metaclass=Standing):
    """``datetime.datetime`` whose now is the run's."""

    __supertype__ = datetime.datetime

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        return _datetime(*args, **kwargs) if cls is DateTime else super().__new__(cls, *args, **kwargs)

    @classmethod
    def now(cls, tz: datetime.tzinfo | None = None) -> Any:
        if tz is None:
            return cls._read(_NOW, datetime.datetime.now)
        return cls._read(_NOW_UTC, lambda: datetime.datetime.now(datetime.UTC)).astimezone(tz)

    @classmethod
    def today(cls) -> Any:
        return cls._read(_TODAY_NOW, datetime.datetime.today)

    @classmethod
    def utcnow(cls) -> Any:
        return cls._read(_UTCNOW, datetime.datetime.utcnow)

    @classmethod
    def _read(cls, instant: Instant, real: Callable[[], datetime.datetime]) -> Any:
        text = value_of("time", instant, lambda: real().isoformat())
        return cls.fromisoformat(text)


_TODAY: Final = _read("date.today")
_NOW: Final = _read("datetime.now")
_NOW_UTC: Final = _read("datetime.now(tz)")
_TODAY_NOW: Final = _read("datetime.today")
_UTCNOW: Final = _read("datetime.utcnow")


STAND_INS: Final[dict[ModuleType, dict[str, Any]]] = {
    time: {
        **{name: _counter(name) for name in _COUNTERS},
        **{name: _counter(name) for name in (f"{counter}_ns" for counter in _COUNTERS)},
        "localtime": _localtime,
        "gmtime": _broken_down("gmtime"),
        "ctime": update_wrapper(_ctime, time.ctime),
        "asctime": update_wrapper(_asctime, time.asctime),
        "strftime": update_wrapper(_strftime, time.strftime),
        "sleep": update_wrapper(_sleep, time.sleep),
    },
    datetime: {"date": Date, "datetime": DateTime},
}

"""The clock: ``time``, ``datetime`` and ``date``; replay does not read the real one.

A moment is recorded with the local time zone, so that a replay on another machine reads the same.
"""

from __future__ import annotations

import datetime
import sys
import time
import timeit
from collections.abc import Callable
from functools import partial
from types import ModuleType
from typing import Any, Final

from reenact.boundary import Instant
from reenact.library import is_library
from reenact.seams.deadlines import sleep_in_turn
from reenact.seams.stdlib.sources import (
    AS_IT_IS,
    Form,
    alarm_rings,
    formed_value_of,
    from_fake,
    is_genuine,
    lane_for,
    stand_for,
)
from reenact.seams.stdlib.stand_ins import StandInMeta

_date: Final = datetime.date
_datetime: Final = datetime.datetime

_COUNTERS: Final = ("time", "monotonic", "perf_counter", "process_time", "thread_time")


def _read(key: str) -> Instant:
    return Instant("nondeterministic", {"source": "clock", "key": key}, is_plain=True)


_NUMBER: Final = Form(float, lambda value: value, lambda value: value)


def _counter(name: str) -> Callable[[], object]:
    instant, original = _read(f"time.{name}"), getattr(time, name)

    def read() -> object:
        lane = lane_for("time")
        # Looked up at each call: a test may have replaced the clock.
        real = getattr(time, name)
        if lane is None:
            return real()
        if real is not original:
            return formed_value_of("time", instant, real, _NUMBER, is_fake=not is_genuine(real, original))
        value = lane.context.instant(instant, lane, real)
        return value if type(value) is not dict else from_fake(value, real)

    return stand_for(time, name, read)


def _clock(name: str) -> Callable[[int], object]:
    """``clock_gettime`` or ``clock_gettime_ns``, which names the clock."""
    original = getattr(time, name)
    form = Form(int, int, int) if name.endswith("_ns") else _NUMBER

    def read(clock: int, /) -> object:
        real = getattr(time, name)
        instant = _read(f"time.{name}({clock})")
        is_fake = not is_genuine(real, original)
        return formed_value_of("time", instant, lambda: real(clock), form, is_fake=is_fake)

    return stand_for(time, name, read)


def _break_down(name: str) -> Callable[..., time.struct_time]:
    """``localtime`` or ``gmtime``: reads the clock only if it gets no time as argument."""
    instant, original = _read(f"time.{name}"), getattr(time, name)

    def read(*secs: float | None) -> time.struct_time:
        real = getattr(time, name)
        if secs and secs[0] is not None:
            return real(*secs)  # type: ignore[no-any-return]
        moment: time.struct_time = formed_value_of(
            "time", instant, lambda: real(*secs), _MOMENT, is_fake=not is_genuine(real, original)
        )
        return moment

    return stand_for(time, name, read)


def _to_json(moment: time.struct_time) -> list[object]:
    return [list(moment), moment.tm_zone, moment.tm_gmtoff]


def _from_json(answer: list[Any]) -> time.struct_time:
    fields, zone, offset_s = answer
    return time.struct_time(fields, {"tm_zone": zone, "tm_gmtoff": offset_s})


_MOMENT: Final = Form(time.struct_time, _to_json, _from_json)
_localtime: Final = _break_down("localtime")


def _render(name: str, given: int) -> Callable[..., str]:
    """A function that formats a time; with only *given* arguments it formats the current time."""
    instant, original = _read(f"time.{name}"), getattr(time, name)

    def render(*args: object) -> str:
        real = getattr(time, name)
        if is_genuine(real, original):
            is_now = len(args) == given or (name == "ctime" and args == (None,))
            if not is_now:
                return real(*args)  # type: ignore[no-any-return]
            return time.asctime(_localtime()) if name == "ctime" else real(*args, _localtime())
        text: str = formed_value_of("time", instant, lambda: real(*args), AS_IT_IS, is_fake=True)
        return text

    return stand_for(time, name, render)


def _sleep(seconds: float, /) -> object:
    if is_genuine(time.sleep, _original_sleep):
        _wait(time.sleep, seconds)
        return None
    return time.sleep(seconds)  # type: ignore[func-returns-value]  # a fake returns what it likes


def _wait(sleep: Callable[[float], None], seconds: float, /) -> None:
    lane = lane_for("time")
    if lane is None:
        sleep(seconds)
    elif not lane.context.time_passes(lane):
        is_skipped = isinstance(seconds, int | float) and seconds >= 0 and not alarm_rings(lane)
        sleep(0 if is_skipped else seconds)
        if lane.has_order:
            sleep_in_turn(lane, seconds)
    else:
        sleep(seconds)
        if lane.has_order:
            lane.context.timer_fired(lane, lane.next_timer("z"))


_original_sleep: Final = time.sleep


class Date(datetime.date, metaclass=StandInMeta):
    """``datetime.date``, but ``today`` is recorded."""

    __supertype__ = datetime.date

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        return _date(*args, **kwargs) if cls is Date else super().__new__(cls, *args, **kwargs)

    @classmethod
    def today(cls) -> Any:
        return _today(cls)


class DateTime(datetime.datetime, metaclass=StandInMeta):
    """``datetime.datetime``, but ``now``, ``today`` and ``utcnow`` are recorded."""

    __supertype__ = datetime.datetime

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        return _datetime(*args, **kwargs) if cls is DateTime else super().__new__(cls, *args, **kwargs)

    @classmethod
    def now(cls, tz: datetime.tzinfo | None = None) -> Any:
        if tz is None:
            return cls._read(_NOW, "now")
        if datetime.datetime is not _datetime:
            return cls._read(_NOW_UTC, "now", tz)
        moment = cls._read(_NOW_UTC, "now", datetime.UTC)
        return moment.astimezone(tz) if isinstance(moment, _datetime) else moment

    @classmethod
    def today(cls) -> Any:
        return cls._read(_TODAY_NOW, "today")

    @classmethod
    def utcnow(cls) -> Any:
        return cls._read(_UTCNOW, "utcnow")

    @classmethod
    def _read(cls, instant: Instant, name: str, *args: object) -> object:
        return _now(cls, name, args, instant)


def _read_date(cls: Any) -> object:
    if datetime.date is not _date:  # looked up at each call: a test may have replaced it
        return _read_fake(_TODAY, datetime.date.today, _date)
    form = Form(_date, _date.isoformat, cls.fromisoformat)
    return formed_value_of("time", _TODAY, _date.today, form)


def _read_moment(cls: Any, name: str, args: tuple[object, ...], instant: Instant) -> object:
    if datetime.datetime is not _datetime:
        return _read_fake(instant, partial(getattr(datetime.datetime, name), *args), _datetime)
    form = Form(_datetime, _datetime.isoformat, cls.fromisoformat)
    return formed_value_of("time", instant, partial(getattr(_datetime, name), *args), form)


def _file_of(kind: type) -> str:
    return getattr(sys.modules.get(kind.__module__), "__file__", None) or ""


def _read_fake(instant: Instant, read: Callable[[], object], kind: type[datetime.date]) -> object:
    """What a test's fake of *kind* tells; if that is its own subclass, as it may have read the real clock.

    What a library tells, such as freezegun, is as the test made it.
    """
    told = read()
    if isinstance(told, kind) and not is_library(_file_of(type(told))):
        kind = type(told)
    to_text = _datetime.isoformat if issubclass(kind, _datetime) else _date.isoformat
    form = Form(kind, to_text, kind.fromisoformat)
    return formed_value_of("time", instant, lambda: told, form, is_fake=True)


_today: Final = stand_for(datetime, "date", _read_date, lambda cls: super(Date, cls).today())
_now: Final = stand_for(
    datetime,
    "datetime",
    _read_moment,
    lambda cls, name, args, instant: getattr(super(DateTime, cls), name)(*args),  # noqa: ARG005
)

_TODAY: Final = _read("date.today")
_NOW: Final = _read("datetime.now")
_NOW_UTC: Final = _read("datetime.now(tz)")
_TODAY_NOW: Final = _read("datetime.today")
_UTCNOW: Final = _read("datetime.utcnow")


STAND_INS: Final[dict[ModuleType, dict[str, object]]] = {
    time: {
        **{name: _counter(name) for name in _COUNTERS},
        **{name: _counter(name) for name in (f"{counter}_ns" for counter in _COUNTERS)},
        **{name: _clock(name) for name in ("clock_gettime", "clock_gettime_ns") if hasattr(time, name)},
        "localtime": _localtime,
        "gmtime": _break_down("gmtime"),
        "ctime": _render("ctime", 0),
        "asctime": _render("asctime", 0),
        "strftime": _render("strftime", 1),
        "sleep": stand_for(time, "sleep", _sleep, partial(_wait, _original_sleep)),
    },
    datetime: {"date": Date, "datetime": DateTime},
    timeit: {"default_timer": _counter("perf_counter")},
}

"""The time zone of a run.

Clocks are recorded with the local time. But ``datetime.now().astimezone()``, log records and programs in
other languages convert a time by the zone of the process, so a replay lives in the recorded zone.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final
from zoneinfo import ZoneInfo

from reenact.formats.capture import RunStartData
from reenact.formats.record import ABSENT
from reenact.process_state import time_zones

VARIABLE: Final = "TZ"
_LINK: Final = Path("/etc/localtime")
_TABLE: Final = "/zoneinfo/"
_RULE: Final = re.compile(r"(?:[A-Za-z]{3,}|<[A-Za-z0-9+-]+>)[+-]?\d.*")
"""A zone that is spelled out, such as ``CET-1CEST``."""


def zone_of_machine(link: Path = _LINK) -> str | None:
    """The name or rule of the time zone of this process; ``None`` if it has neither."""
    given = os.environ.get(VARIABLE)
    if given:
        return given.removeprefix(":").rpartition(_TABLE)[2]
    try:
        target = os.readlink(link)
    except OSError:
        return None
    return target.rpartition(_TABLE)[2] if _TABLE in target else None


def zone_variable(zone: str | None, offset_s: int) -> str:
    """A value of ``TZ`` for *zone*; if this machine does not know it, for its offset from UTC."""
    if zone is not None and (_RULE.fullmatch(zone) or _is_known(zone)):
        return zone
    if not offset_s:
        return "<UTC>0"
    hours, minutes = divmod(abs(offset_s) // 60, 60)
    mark, behind = ("+", "-") if offset_s > 0 else ("-", "+")  # the rule counts westwards
    return f"<{mark}{hours:02}{minutes:02}>{behind}{hours:02}:{minutes:02}"


def variable_of_run(began: RunStartData) -> str | None:
    """The value of ``TZ`` that brings a process into the zone of that run; ``None`` if it is there."""
    offset_s = began.utcOffsetS
    if offset_s is ABSENT:
        return None
    zone = began.timeZone if began.timeZone is not ABSENT else None
    is_there = zone == zone_of_machine() if zone is not None else offset_s == time.localtime().tm_gmtoff
    return None if is_there else zone_variable(zone, offset_s)


@contextmanager
def zone_of_run(began: RunStartData) -> Iterator[None]:
    """Let this process live in the zone of that run; libraries that read the variable see it, too.

    Of several runs that are open at a time, the zone of the latest counts.
    """
    variable = variable_of_run(began)
    if variable is None or not hasattr(time, "tzset"):  # Windows has no such function
        yield
        return
    with time_zones.lock:
        if not time_zones.entries:
            time_zones.add(os.environ.get(VARIABLE))
        time_zones.add(variable)
        _move(variable)
    try:
        yield
    finally:
        with time_zones.lock:
            time_zones.remove(variable)
            left = time_zones.entries
            _move(left[-1])
            if len(left) == 1:
                time_zones.remove(left[0])


def _move(variable: str | None) -> None:
    if variable is None:
        os.environ.pop(VARIABLE, None)
    else:
        os.environ[VARIABLE] = variable
    time.tzset()


def _is_known(zone: str) -> bool:
    try:
        ZoneInfo(zone)
    except (KeyError, ValueError, OSError):
        return False
    return True

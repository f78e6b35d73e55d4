"""The wall clock that libraries see in a replay: it goes on from the time of the recorded run."""

# ruff: noqa: DTZ002, DTZ003, DTZ005, DTZ011 — readings without a zone are what is tested

from __future__ import annotations

import datetime
import time
from collections.abc import Callable
from datetime import date

import pytest

from reenact.seams.stdlib.wall_clock import wall_clock_of_run

DAY_S = 86400.0


class Own(datetime.datetime):
    """A subclass, as other libraries have."""


READS: dict[str, Callable[[], float]] = {
    "time": lambda: time.time(),
    "time_ns": lambda: time.time_ns() / 1e9,
    "clock_gettime": lambda: time.clock_gettime(time.CLOCK_REALTIME),
    "localtime": lambda: time.mktime(time.localtime()),
    "gmtime": lambda: time.mktime(time.gmtime()) - time.timezone,
    "ctime": lambda: time.mktime(time.strptime(time.ctime())),
    "asctime": lambda: time.mktime(time.strptime(time.asctime())),
    "strftime": lambda: time.mktime(time.strptime(time.strftime("%Y-%m-%d %H:%M:%S"), "%Y-%m-%d %H:%M:%S")),
    "now": lambda: datetime.datetime.now().timestamp(),
    "now with a zone": lambda: datetime.datetime.now(datetime.UTC).timestamp(),
    "utcnow": lambda: datetime.datetime.utcnow().replace(tzinfo=datetime.UTC).timestamp(),
    "today": lambda: datetime.datetime.today().timestamp(),
    "of a subclass": lambda: Own.now().timestamp(),
}


@pytest.mark.filterwarnings("ignore:datetime.datetime.utcnow:DeprecationWarning")
@pytest.mark.parametrize("read", READS.values(), ids=READS.keys())
def test_every_reading_is_of_the_recorded_run(read: Callable[[], float]) -> None:
    """And of the real time again afterwards."""
    before = [read() for _ in range(100)][-1]  # so often that the interpreter has learnt the way
    with wall_clock_of_run(-40 * DAY_S):
        then = read()
    after = read()
    assert before - then == pytest.approx(40 * DAY_S, abs=3)
    assert after - before == pytest.approx(0, abs=3)


def test_the_day_is_of_the_recorded_run() -> None:
    """``date.today`` reads the same clock."""
    today = date.today()
    with wall_clock_of_run(-40 * DAY_S):
        assert today - date.today() in (datetime.timedelta(days=40), datetime.timedelta(days=39))


def test_given_times_and_durations_stay() -> None:
    """Only what reads the clock is moved."""
    with wall_clock_of_run(-40 * DAY_S):
        assert time.gmtime(0)[:3] == (1970, 1, 1)
        assert time.strftime("%Y", time.gmtime(0)) == "1970"
        assert time.asctime(time.gmtime(0)).endswith("1970")
        assert time.ctime(DAY_S * 365).endswith("1971")
        assert abs(time.clock_gettime(time.CLOCK_MONOTONIC) - time.monotonic()) < 1


def test_a_clock_that_a_test_put_there_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever stops the time wants the one that he set."""
    monkeypatch.setattr(time, "time", lambda: 7.0)
    with wall_clock_of_run(-40 * DAY_S):
        assert time.time() == 7.0


def test_of_several_the_latest_counts() -> None:
    """Each end gives back what was before."""
    now = time.time()
    with wall_clock_of_run(-10 * DAY_S):
        with wall_clock_of_run(-20 * DAY_S):
            assert now - time.time() == pytest.approx(20 * DAY_S, abs=3)
        assert now - time.time() == pytest.approx(10 * DAY_S, abs=3)
        assert now - datetime.datetime.now().timestamp() == pytest.approx(10 * DAY_S, abs=3)
    assert now == pytest.approx(time.time(), abs=3)

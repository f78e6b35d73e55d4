"""A replay lives in the time zone of the recorded run."""

import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path

import pytest

import reenact
from reenact.formats.capture import RunStartData
from reenact.injected.handover import BEFORE_VARIABLE
from reenact.injected.launch import route_through_gateway
from reenact.run.zone import zone_of_machine, zone_of_run, zone_variable
from reenact.store.reader import CaptureReader, read_run_start

NOW_HERE = "from datetime import datetime; print(datetime.now().astimezone().isoformat())"
IN_SUMMER = datetime(2026, 7, 1, 12, tzinfo=UTC).timestamp()


@pytest.fixture
def in_zone(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], None]]:
    """Moves this process into a time zone."""

    def move(zone: str) -> None:
        monkeypatch.setenv("TZ", zone)
        time.tzset()

    yield move
    monkeypatch.undo()
    time.tzset()


def test_a_given_time_is_converted_in_the_recorded_zone(
    tmp_path: Path, in_zone: Callable[[str], None]
) -> None:
    """It is no read of the clock, but the zone of the machine shows in it."""

    def agent() -> list[str]:
        return [time.strftime("%H:%M %Z", time.localtime(IN_SUMMER)), str(datetime.now().astimezone())]

    in_zone("Europe/Berlin")
    with reenact.capture(tmp_path / "run"):
        recorded = agent()
    in_zone("Asia/Kathmandu")
    with reenact.replay(tmp_path / "run"):
        assert agent() == recorded
    assert recorded[0] == "14:00 CEST"
    assert time.strftime("%H:%M", time.localtime(IN_SUMMER)) == "17:45"


def test_libraries_that_read_the_variable_find_the_recorded_zone(
    tmp_path: Path, in_zone: Callable[[str], None]
) -> None:
    """Some convert times themselves. After the run it is as before."""
    in_zone("Europe/Berlin")
    with reenact.capture(tmp_path / "run"):
        pass
    in_zone("Asia/Kathmandu")
    with reenact.replay(tmp_path / "run"):
        assert os.environ["TZ"] == "Europe/Berlin"
    assert os.environ["TZ"] == "Asia/Kathmandu"


def test_runs_that_overlap_leave_the_zone_as_it_was(in_zone: Callable[[str], None]) -> None:
    """The one that was opened first may be closed first, as replays in two threads may be."""
    in_zone("Asia/Kathmandu")
    began = [
        RunStartData(argv=["agent.py"], python="3.11", utcOffsetS=0, timeZone=zone)
        for zone in ("Europe/Berlin", "America/Lima")
    ]
    first, second = map(zone_of_run, began)
    with ExitStack() as later:
        with first:
            later.enter_context(second)
            assert os.environ["TZ"] == "America/Lima"
        assert os.environ["TZ"] == "America/Lima"
    assert os.environ["TZ"] == "Asia/Kathmandu"


def test_a_replayed_command_lives_in_the_recorded_zone(
    tmp_path: Path, in_zone: Callable[[str], None], capfd: pytest.CaptureFixture[str]
) -> None:
    """All that it prints is as recorded."""
    words = [sys.executable, "-c", NOW_HERE]
    in_zone("Europe/Berlin")
    reenact.record_command(words, tmp_path / "run")
    recorded = capfd.readouterr().out
    in_zone("Asia/Kathmandu")
    reenact.replay_command(tmp_path / "run", words)
    assert capfd.readouterr().out == recorded


def test_programs_in_other_languages_live_in_the_recorded_zone() -> None:
    """A variable tells them, which also Python programs keep."""
    began = RunStartData(utcOffsetS=20_700)
    environ = route_through_gateway({"TZ": "Europe/Berlin"}, "http://127.0.0.1:1", began)
    assert environ["TZ"] == "<+0545>-05:45"
    assert "TZ" not in json.loads(environ[BEFORE_VARIABLE])


@pytest.mark.parametrize(
    ("variable", "zone"),
    [("Europe/Berlin", "Europe/Berlin"), (":Asia/Tokyo", "Asia/Tokyo"), ("CET-1", "CET-1")],
)
def test_the_zone_is_in_the_capture(
    tmp_path: Path, in_zone: Callable[[str], None], variable: str, zone: str
) -> None:
    """By the name that the machine has for it."""
    in_zone(variable)
    with reenact.capture(tmp_path / "run"):
        pass
    assert read_run_start(CaptureReader(tmp_path / "run")).timeZone == zone


def test_the_zone_of_a_machine_without_a_variable_is_that_of_its_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file is a link into the table of zones."""
    monkeypatch.delenv("TZ", raising=False)
    link = tmp_path / "localtime"
    link.symlink_to("/usr/share/zoneinfo/America/New_York")
    assert zone_of_machine(link) == "America/New_York"
    assert zone_of_machine(tmp_path / "none") is None


def test_a_capture_without_a_zone_has_its_offset(tmp_path: Path, in_zone: Callable[[str], None]) -> None:
    """Older captures name no zone; the hours are right all the same."""
    assert [zone_variable(None, offset_s) for offset_s in (0, 20_700, -12_600)] == [
        "<UTC>0",
        "<+0545>-05:45",
        "<-0330>+03:30",
    ]
    assert zone_variable("Mars/Olympus", 3600) == "<+0100>-01:00"

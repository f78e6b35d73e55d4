"""A test's own fakes in the standard library: recording never breaks on them, whatever they yield."""

from __future__ import annotations

import asyncio  # noqa: F401 — looked up by name
import builtins
import datetime
import functools
import os
import platform
import random
import secrets
import socket
import subprocess
import sys
import threading  # noqa: F401
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import reenact

SOURCES: dict[str, Callable[[], Any]] = {
    "uuid.uuid4": lambda: uuid.uuid4(),
    "uuid.uuid1": lambda: uuid.uuid1(),
    "uuid.getnode": lambda: uuid.getnode(),
    "time.time": lambda: time.time(),
    "time.monotonic_ns": lambda: time.monotonic_ns(),
    "time.localtime": lambda: time.localtime(),
    "time.gmtime": lambda: time.gmtime(),
    "time.ctime": lambda: time.ctime(),
    "time.asctime": lambda: time.asctime(),
    "time.sleep": lambda: time.sleep(0),
    "time.strftime": lambda: time.strftime("%Y"),
    "random.random": lambda: random.random(),
    "random.choice": lambda: random.choice([1, 2]),
    "random.randint": lambda: random.randint(1, 6),
    "random.getrandbits": lambda: random.getrandbits(8),
    "random.gauss": lambda: random.gauss(0, 1),
    "secrets.token_hex": lambda: secrets.token_hex(),
    "secrets.token_bytes": lambda: secrets.token_bytes(4),
    "secrets.choice": lambda: secrets.choice("ab"),
    "secrets.randbelow": lambda: secrets.randbelow(5),
    "os.urandom": lambda: os.urandom(4),
    "os.getenv": lambda: os.getenv("HOME"),
    "subprocess.run": lambda: subprocess.run(["true"], check=False),
    "subprocess.check_output": lambda: subprocess.check_output(["true"]),
    "socket.gethostname": lambda: socket.gethostname(),
    "socket.getfqdn": lambda: socket.getfqdn("here"),
    "platform.node": lambda: platform.node(),
    "os.system": lambda: os.system("true"),
    "builtins.open": lambda: open("/nowhere/at/all", "w"),  # noqa: SIM115
}
VALUES = [
    "fixed",
    0,
    1.5,
    None,
    b"\xff\x00",
    ("a", 1),
    {"a": {1, 2}},
    uuid.UUID(int=7),
    datetime.datetime(2026, 1, 2, tzinfo=datetime.UTC),
    Path("x"),
    float("nan"),
    "\ud800",
    object(),
    lambda: 1,
    mock.MagicMock(),
    ValueError("as a value"),
]


@pytest.mark.parametrize("name", SOURCES)
def test_a_fake_yields_its_own_value_while_it_is_recorded(name: str, tmp_path: Path) -> None:
    """The very object, of any type; a fake is asked in replay as often as in the recording."""
    path = tmp_path / "run"
    with reenact.capture(path, sources=None) as run:
        for value in VALUES:
            with mock.patch(name, return_value=value):
                assert SOURCES[name]() is value
    assert (run.warnings, run.manifest and run.manifest.status) == ([], "ok")
    with reenact.replay(path):
        for value in VALUES:
            with mock.patch(name, return_value=value) as fake:
                again = SOURCES[name]()
            assert fake.call_count == 1
            assert type(again) is type(value)


@pytest.mark.parametrize("name", ["uuid.uuid4", "time.time", "secrets.token_bytes", "time.localtime"])
def test_a_recorded_value_comes_back_without_the_fake(name: str, tmp_path: Path) -> None:
    with reenact.capture(tmp_path / "run"), mock.patch(name, return_value="fixed"):
        assert SOURCES[name]() == "fixed"
    with reenact.replay(tmp_path / "run"):
        assert SOURCES[name]() == "fixed"


OURS = ["time.time_ns", "time.monotonic", "time.perf_counter", "os.getpid", "os.listdir", "os.getcwd"]
"""Beside the sources of the agent, what a run itself asks when it begins and ends."""


@pytest.mark.parametrize("fake", [{"return_value": "fixed"}, {"side_effect": ValueError("no")}], ids=str)
@pytest.mark.parametrize("name", [name for name in [*SOURCES, *OURS] if name != "builtins.open"])
def test_a_fake_from_before_the_run_is_not_asked_by_the_run(
    name: str, fake: dict[str, Any], tmp_path: Path
) -> None:
    """Around a run stand fakes of fixtures, and of tests that record a part of themselves."""

    @reenact.tool
    def look() -> str:
        return "seen"

    for run in (reenact.capture, reenact.replay):
        with mock.patch(name, **fake), run(tmp_path / "run") as opened:
            look()
        assert (opened.warnings, opened.divergences) == ([], [])


def test_a_fake_from_before_the_first_run_is_not_kept(tmp_path: Path) -> None:
    program = """
import subprocess
from unittest import mock
import reenact
with mock.patch("subprocess.run", return_value="fixed"), reenact.capture("first"):
    pass
for run in (reenact.capture, reenact.replay):
    with run("second"):
        print(subprocess.check_output(["echo", "hello"]))
"""
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["b'hello\\n'"] * 2


def _spy(function: Callable[..., Any]) -> mock.Mock:
    return mock.Mock(side_effect=function)


def _wrap(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    return wrapped


@pytest.mark.parametrize("make", [_spy, _wrap])
@pytest.mark.parametrize("name", sorted(SOURCES.keys() - {"builtins.open", "socket.getfqdn"}))
def test_a_fake_may_call_what_it_replaces(name: str, make: Callable[..., Any], tmp_path: Path) -> None:
    """Which it knows by our stand-in, as it was taken from the agent's module."""
    module, _, function = name.rpartition(".")
    seen = []
    for run in (reenact.capture, reenact.replay):
        with run(tmp_path / "run") as opened:
            fake = make(getattr(globals()[module], function))
            with mock.patch(name, fake):
                seen.append(SOURCES[name]())
        assert (opened.warnings, opened.divergences) == ([], [])
        assert not isinstance(fake, mock.Mock) or fake.called
    assert repr(seen[0]) == repr(seen[1])


def test_a_fake_that_other_functions_read_may_call_what_it_replaces(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``date.today`` reads ``time.time``."""

    def today() -> str:
        return f"{datetime.date.today()} {datetime.datetime.now(datetime.UTC):%Y-%m-%d} {time.time()}"  # noqa: DTZ011

    seen = []
    for run in (reenact.capture, reenact.replay):
        with monkeypatch.context() as patch, run(tmp_path / "run") as opened:
            real_time = time.time

            class Later(datetime.datetime):
                @classmethod
                def now(cls, tz: datetime.tzinfo | None = None) -> Any:
                    return super().now(tz) + datetime.timedelta(days=3)

            patch.setattr(time, "time", lambda real=real_time: real() + 1000)
            seen.append(today())
            patch.setattr(datetime, "datetime", Later)
            seen.append(today())
        assert (opened.warnings, opened.divergences) == ([], [])
    assert seen[:2] == seen[2:]


class Tomorrow(datetime.datetime):
    """Made before the run, with the real class below it."""

    @classmethod
    def now(cls, tz: datetime.tzinfo | None = None) -> Any:
        return super().now(tz) + datetime.timedelta(days=1)


class TomorrowsDate(datetime.date):
    @classmethod
    def today(cls) -> Any:
        return super().today() + datetime.timedelta(days=time.perf_counter_ns() % 1000)


def test_a_faked_class_that_reads_the_clock_tells_the_recorded_time(tmp_path: Path) -> None:
    """A replay asks the fake, too, but does not read the clock by it."""
    told = []
    for run in (reenact.capture, reenact.replay):
        with run(tmp_path / "run") as opened:
            with mock.patch("datetime.datetime", Tomorrow):
                told += [datetime.datetime.now(), datetime.datetime.now(datetime.UTC)]  # noqa: DTZ005
            with mock.patch("datetime.date", TomorrowsDate):
                told.append(datetime.date.today())  # noqa: DTZ011
        assert (opened.warnings, opened.divergences) == ([], [])
    assert told[:3] == told[3:]
    assert [type(each) for each in told[:3]] == [Tomorrow, Tomorrow, TomorrowsDate]


def test_a_spy_on_open_calls_it(tmp_path: Path) -> None:
    for run in (reenact.capture, reenact.replay):
        with run(tmp_path / "run") as opened, mock.patch("builtins.open", side_effect=open) as spy:
            with open(tmp_path / "written", "w") as file:
                file.write("text")
            assert spy.called
        assert (opened.warnings, opened.divergences) == ([], [])


@pytest.mark.parametrize(
    "name", [*SOURCES, "os.getpid", "os.chdir", "asyncio.sleep", "threading.Thread", "os.environ"]
)
def test_what_a_test_replaces_is_put_back_after_the_run(name: str, tmp_path: Path) -> None:
    """Also by its own name in a module of which other names are exchanged."""
    module, _, attribute = name.rpartition(".")
    original = getattr(globals()[module], attribute)
    by_pytest = pytest.MonkeyPatch()
    with reenact.capture(tmp_path / "pytest", sources=None):
        by_pytest.setattr(globals()[module], attribute, lambda *_: None)
    by_pytest.undo()
    with reenact.capture(tmp_path / "mock", sources=None):
        by_mock = mock.patch.object(globals()[module], attribute)
        by_mock.start()
    by_mock.stop()
    with reenact.capture(tmp_path / "after"):
        pass
    assert getattr(globals()[module], attribute) is original


def test_what_cannot_be_stored_is_noted_in_the_recording(tmp_path: Path) -> None:
    with reenact.capture(tmp_path / "run"), mock.patch("uuid.uuid4", return_value=object()):
        uuid.uuid4()
    assert '"value":{"notStored":"builtins:object"}' in (tmp_path / "run" / "events.jsonl").read_text()


def test_a_secret_that_a_fake_yields_is_not_written(tmp_path: Path) -> None:
    secret = "sk-ant-api03-" + "a1B2" * 12
    for name in ("uuid.uuid4", "time.time", "random.random", "secrets.token_hex"):
        with reenact.capture(tmp_path / name), mock.patch(name, return_value=secret):
            assert SOURCES[name]() == secret
        assert secret not in (tmp_path / name / "events.jsonl").read_text()


def test_a_faked_class_of_moments_is_asked(tmp_path: Path) -> None:
    """As tests freeze a day."""
    moment = datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)
    for run in (reenact.capture, reenact.replay):
        with run(tmp_path / "run"), mock.patch("datetime.datetime") as fake:
            fake.now.return_value = moment
            assert datetime.datetime.now() == moment  # noqa: DTZ005
            fake.now.return_value = "noon"
            assert datetime.datetime.now(datetime.UTC) == "noon"


def test_a_faked_environment_is_read(tmp_path: Path) -> None:
    for run in (reenact.capture(tmp_path / "run", sources=["environ"]),):
        with run, mock.patch("os.environ", {"A": "fake"}):
            assert os.environ["A"] == "fake"


def test_open_is_faked_for_reading_and_writing(tmp_path: Path) -> None:
    faked = mock.mock_open(read_data="said")
    for run in (reenact.capture, reenact.replay):
        with run(tmp_path / "run"), mock.patch("builtins.open", faked):
            with open("/nowhere", encoding="utf-8") as file:
                assert file.read() == "said"
            with open("/nowhere/else", "w") as file:
                file.write("x")
        faked.assert_called_with("/nowhere/else", "w")
    assert builtins.open is open


def test_a_fake_that_raises_raises_for_the_agent(tmp_path: Path) -> None:
    for run in (reenact.capture, reenact.replay):
        faked = mock.patch("uuid.uuid4", side_effect=KeyError("x"))
        with run(tmp_path / "run"), faked, pytest.raises(KeyError):
            uuid.uuid4()


def test_drawing_is_not_changed_by_a_fake_of_another_function(tmp_path: Path) -> None:
    """The module's functions share a generator, not each other."""
    with reenact.capture(tmp_path / "run"), mock.patch("random.random", return_value="odd"):
        assert random.choice(["a"]) == "a"
        assert 0 <= random.uniform(0, 1) <= 1


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60, deadline=None)
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary() | st.uuids(),
        lambda inner: st.lists(inner) | st.tuples(inner) | st.dictionaries(st.text(), inner),
        max_leaves=6,
    )
)
def test_any_value_is_recorded_as_it_is(tmp_path_factory: pytest.TempPathFactory, value: Any) -> None:
    path = tmp_path_factory.mktemp("any") / "run"
    with reenact.capture(path, redact="none"), mock.patch("uuid.uuid4", return_value=value):
        assert uuid.uuid4() is value
    with reenact.replay(path):
        again = uuid.uuid4()
    assert repr(again) == repr(value)

"""The clock: what the agent read when recorded is what it reads in replay."""

from __future__ import annotations

import dataclasses
import datetime as dt
import functools
import pickle
import signal
import time
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from time import time as bare_time
from types import ModuleType
from zoneinfo import ZoneInfo

import msgspec
import pydantic
import pytest

import reenact
from reenact.store.reader import CaptureReader
from reenact.testing import Reply, ScriptedProvider

BERLIN = ZoneInfo("Europe/Berlin")
READS = {
    "time": lambda: time.time(),
    "time, imported by name": lambda: bare_time(),
    "time_ns": lambda: time.time_ns(),
    "monotonic": lambda: time.monotonic(),
    "monotonic_ns": lambda: time.monotonic_ns(),
    "perf_counter": lambda: time.perf_counter(),
    "process_time": lambda: time.process_time(),
    "thread_time_ns": lambda: time.thread_time_ns(),
    "localtime": lambda: time.localtime(),
    "gmtime": lambda: (time.gmtime(), time.gmtime().tm_zone),
    "ctime": lambda: time.ctime(),
    "asctime": lambda: time.asctime(),
    "strftime": lambda: time.strftime("%Y-%m-%d %H:%M:%S"),
    "datetime.now": lambda: datetime.now(),  # noqa: DTZ005
    "datetime.now(UTC)": lambda: datetime.now(UTC),
    "datetime.now(zone)": lambda: datetime.now(BERLIN).isoformat(),
    "datetime.now(tz=zone)": lambda: datetime.now(tz=BERLIN),
    "datetime.today": lambda: datetime.today(),  # noqa: DTZ002
    "module.datetime.now": lambda: dt.datetime.now(dt.UTC),
    "date.today": lambda: date.today(),  # noqa: DTZ011
}


@pytest.mark.parametrize("name", READS)
def test_a_read_is_the_recorded_one(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same value, of the same type, also when the machine's clock and time zone are others."""
    with reenact.capture(tmp_path / "run"):
        recorded = READS[name]()
    monkeypatch.setenv("TZ", "Pacific/Auckland")
    time.tzset()
    try:
        time.sleep(0.002)
        with reenact.replay(tmp_path / "run"):
            replayed = READS[name]()
    finally:
        monkeypatch.undo()
        time.tzset()
    assert (replayed, type(replayed)) == (recorded, type(recorded))


@pytest.mark.parametrize("name", READS)
def test_outside_a_run_the_clock_goes_on(name: str) -> None:
    """Nothing stands between the agent and the clock when no run is open."""
    before = type(READS[name]())
    assert type(READS[name]()) is before


def test_a_given_time_is_no_read(tmp_path: Path) -> None:
    """Formatting a moment the agent already has records nothing."""
    with reenact.capture(tmp_path / "run"):
        time.strftime("%H", time.gmtime(0))
        time.ctime(0)
        datetime.fromtimestamp(0, UTC)
    assert len(list(CaptureReader(tmp_path / "run").events())) == 2


def test_a_run_recorded_yesterday_replays_today(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The prompt holds the date, and it is the recorded one."""
    import httpx2

    def agent(base_url: str) -> str:
        prompt = f"Today is {date.today()}; it is {datetime.now(UTC):%H:%M:%S.%f}."  # noqa: DTZ011
        body = {"model": "m", "messages": [{"role": "user", "content": prompt}]}
        answer = httpx2.post(f"{base_url}/chat/completions", json=body).json()
        return prompt + answer["choices"][0]["message"]["content"]

    class Yesterday(date):
        @classmethod
        def today(cls) -> date:
            return date(1999, 12, 31)

    with ScriptedProvider([Reply("Noted.")]) as provider:
        url = provider.base_url("openai")
        monkeypatch.setattr(dt, "date", Yesterday)
        with reenact.capture(tmp_path / "run"):
            recorded = agent(url)
        monkeypatch.undo()
    assert "1999-12-31" in recorded
    with reenact.replay(tmp_path / "run"):
        assert agent(url) == recorded


def test_a_pause_of_the_agent_is_not_made_in_replay(tmp_path: Path) -> None:
    """It is real when recorded; in replay it is over at once and need not be there."""

    def agent(pause_s: float) -> None:
        time.sleep(pause_s)
        time.time()

    began_s = time.monotonic()
    with reenact.capture(tmp_path / "run"):
        agent(0.1)
    assert time.monotonic() - began_s >= 0.1
    began_s = time.monotonic()
    with reenact.replay(tmp_path / "run"):
        agent(60)
    assert time.monotonic() - began_s < 30


def test_a_missing_read_diverges(tmp_path: Path) -> None:
    """Matching is as strict for a clock as for any call."""
    with reenact.capture(tmp_path / "run"):
        time.time()
    with pytest.raises(reenact.Diverged, match=r"clock/time\.time"), reenact.replay(tmp_path / "run"):
        time.monotonic()


def test_a_sources_choice_leaves_the_others_alone(tmp_path: Path) -> None:
    """What is not chosen is neither recorded nor exchanged."""
    with reenact.capture(tmp_path / "run", sources=["random"]):
        time.time()
        datetime.now(UTC)
    assert len(list(CaptureReader(tmp_path / "run").events())) == 2
    with reenact.replay(tmp_path / "run"):
        datetime.now(UTC)


# The stand-in classes mean the real ones


@pytest.fixture
def classes(tmp_path: Path, module_of) -> ModuleType:
    """A module of the agent's, imported during a run, with all kinds of uses of the classes."""
    with reenact.capture(tmp_path / "while importing"):
        return module_of(
            """
            import dataclasses, datetime as dt, functools, typing
            from datetime import date, datetime
            import msgspec, pydantic

            class Model(pydantic.BaseModel):
                at: datetime
                on: date | None = None
                made: datetime = pydantic.Field(default_factory=datetime.now)

            class Struct(msgspec.Struct):
                at: datetime
                on: date

            @dataclasses.dataclass
            class Data:
                at: datetime = dataclasses.field(default_factory=datetime.now)

            @functools.singledispatch
            def kind(value): return "other"

            @kind.register
            def _(value: datetime): return "datetime"

            class Stamp(datetime):
                pass

            BY_TYPE = {datetime: "datetime", date: "date"}

            def matched(value):
                match value:
                    case datetime(year=year):
                        return year

            def is_datetime(value): return isinstance(value, datetime)
            def made():
                return [
                    datetime(2020, 1, 2), datetime.fromisoformat("2020-01-02"),
                    datetime.strptime("2020", "%Y"),
                    datetime.combine(date(2020, 1, 2), dt.time()), datetime.fromtimestamp(0, dt.timezone.utc),
                    datetime.min, datetime.max,
                ]
            def now(): return datetime.now()
            """
        )


def test_what_the_classes_make_is_real(classes: ModuleType, tmp_path: Path) -> None:
    """Every constructor gives an instance of the real class, which pickles by itself."""
    with reenact.capture(tmp_path / "run"):
        made = classes.made()
    assert {type(value) for value in made} == {datetime}
    assert pickle.loads(pickle.dumps(made)) == made
    assert made[0] + timedelta(1) == datetime(2020, 1, 3)  # noqa: DTZ001


def test_instances_are_recognised(classes: ModuleType, tmp_path: Path) -> None:
    """isinstance, match, dispatch by type and a table by type work with real instances."""
    real = datetime(2020, 1, 2)  # noqa: DTZ001
    with reenact.capture(tmp_path / "run"):
        assert classes.is_datetime(real)
        assert not classes.is_datetime(real.date())
        assert classes.matched(real) == 2020
        assert classes.kind(real) == "datetime"
        assert classes.BY_TYPE[type(real)] == "datetime"
        assert classes.BY_TYPE[type(real.date())] == "date"


def test_a_class_made_during_the_run_works_after_it(classes: ModuleType) -> None:
    """Models, structs and data classes hold real values and follow the real rules."""
    model = classes.Model.model_validate_json('{"at": "2020-01-02T03:04:05Z", "on": "2020-01-02"}')
    assert (type(model.at), type(model.on), type(model.made)) == (datetime, date, datetime)
    assert classes.Model.model_json_schema()["properties"]["at"]["format"] == "date-time"
    with pytest.raises(pydantic.ValidationError):
        classes.Model(at="nonsense")
    struct = msgspec.json.decode(b'{"at":"2020-01-02T03:04:05","on":"2020-01-02"}', type=classes.Struct)
    assert msgspec.json.encode(struct) == b'{"at":"2020-01-02T03:04:05","on":"2020-01-02"}'
    assert type(classes.Data().at) is datetime
    assert dataclasses.fields(classes.Data)[0].name == "at"


def test_a_default_made_by_the_clock_is_recorded(classes: ModuleType, tmp_path: Path) -> None:
    """A factory bound while a run was open reads the clock of every later run."""

    def agent() -> list[datetime]:
        return [classes.Model(at=datetime(2020, 1, 1)).made, classes.Data().at]  # noqa: DTZ001

    with reenact.capture(tmp_path / "run"):
        recorded = agent()
    with reenact.replay(tmp_path / "run"):
        assert agent() == recorded


def test_a_subclass_stays_one(classes: ModuleType, tmp_path: Path) -> None:
    """The agent's own subclass of datetime gives instances of itself."""
    with reenact.capture(tmp_path / "run"):
        now = classes.Stamp.now()
        in_zone = classes.Stamp.now(BERLIN)
    assert type(now) is type(in_zone) is classes.Stamp
    assert isinstance(now, datetime)
    assert not isinstance(datetime(2020, 1, 1), classes.Stamp)  # noqa: DTZ001


def test_models_made_before_the_run_work_in_it(tmp_path: Path) -> None:
    """A module that was loaded long ago keeps its classes; only its names change."""

    class Model(pydantic.BaseModel):
        at: datetime

    dispatch = functools.singledispatch(lambda value: "other")
    dispatch.register(datetime, lambda value: "datetime")
    with reenact.capture(tmp_path / "run"):
        assert Model(at=datetime.now(UTC)).at.tzinfo is UTC
        assert dispatch(datetime.now(UTC)) == "datetime"


class _TimeIsUp(Exception):
    pass


def _ring(*_: object) -> None:
    raise _TimeIsUp


@pytest.mark.parametrize("has_outer_alarm", [False, True])
def test_an_alarm_interrupts_a_pause_in_replay_too(tmp_path: Path, *, has_outer_alarm: bool) -> None:
    """But a time limit that was set before the run, as a test runner sets it, does not make pauses real."""

    def wait() -> str:
        if not has_outer_alarm:
            signal.setitimer(signal.ITIMER_REAL, 0.05)
        try:
            time.sleep(60 if said or not has_outer_alarm else 0)
        except _TimeIsUp:
            return "interrupted"
        return "waited"

    said = []
    before = signal.signal(signal.SIGALRM, _ring)
    try:
        for run in (reenact.capture, reenact.replay):
            if has_outer_alarm:
                signal.setitimer(signal.ITIMER_REAL, 50)
            with run(tmp_path / "run") as opened:
                said.append(wait())
            assert opened.divergences == []
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert said == ["waited"] * 2 if has_outer_alarm else ["interrupted"] * 2

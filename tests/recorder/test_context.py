"""What a recorded run writes: its events, their order and form, and what replay gets of them."""

from __future__ import annotations

import asyncio
import functools
import gc
import itertools
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import reenact
from reenact import canonical
from reenact.boundary import Call, crossing
from reenact.canonical import digest_of_bytes, read_json
from reenact.formats.capture import CaptureEvent
from reenact.formats.record import ABSENT
from reenact.recorder.context import CaptureContext
from reenact.run.capturing import without_places
from reenact.store.reader import CaptureReader
from tests.recorder.recording import events_in, recorded_by


@reenact.tool
def echo(value: Any) -> Any:
    return value


def tags(path: Path) -> list[str]:
    return [tag_of(event) for event in CaptureReader(path).events()]


def tag_of(event: CaptureEvent) -> str:
    return str(type(event).__struct_config__.tag)


def ask(request: Any, answer: Any, **facts: Any) -> Any:
    """One model call, as a seam makes it."""
    with crossing(Call("llm", "", request, facts)) as step:
        if step.live:
            step.answer = answer
    return step.answer


def everything(run: reenact.Run) -> Any:
    """A run with an event of every type, a nested call, a failure and a stream."""

    @reenact.tool
    def outer(value: int) -> Any:
        return echo(value + 1)

    @reenact.tool
    def failing(value: int) -> Any:
        raise ValueError(f"no {value}")

    @reenact.tool
    def stream(count: int) -> Iterator[dict[str, int]]:
        yield from ({"b": n, "a": n} for n in range(count))

    answer = ask(
        {"model": "m", "messages": ["hi"]}, {"text": "hello"}, provider="p", model="m", inputHash="h"
    )
    outer(1)
    with pytest.raises(ValueError, match="no 2"):
        failing(2)
    pieces = list(stream(3))
    run.memory_write("notes/1", {"text": "remember"}, group_id="g", source="agent")
    run.memory_read("notes/1", lambda: {"text": "remember"})
    run.state_mutation("file_write", path="a.txt", bytes=3)
    return [answer, pieces, run.clock.now(), run.rng.random(), str(run.uuid4())]


# The form of events


def test_the_log_is_canonical_numbered_and_hashed(tmp_path: Path):
    """Lines are canonical JSON, numbered from 1 without gap; count and hash in the manifest are theirs."""
    with reenact.capture(tmp_path / "run") as run:
        run.final_output = everything(run)
    text = (tmp_path / "run" / "events.jsonl").read_bytes()
    lines = text.splitlines()
    assert [msgspec.json.decode(line)["seq"] for line in lines] == list(range(1, len(lines) + 1))
    assert all(canonical.encode(msgspec.json.decode(line)) == line for line in lines)
    assert run.manifest is not None
    assert (run.manifest.status, run.manifest.eventCount) == ("ok", len(lines))
    assert run.manifest.integrity.eventsHash == digest_of_bytes(text)
    assert CaptureReader(tmp_path / "run").manifest == run.manifest


def test_every_event_names_its_run(tmp_path: Path):
    """Ids are those of the manifest, and two runs never share them."""
    ids = set()
    for name in ("a", "b"):
        with reenact.capture(tmp_path / name) as run:
            everything(run)
        assert run.manifest is not None
        found = {(event.captureId, event.runId) for event in CaptureReader(tmp_path / name).events()}
        assert found == {(run.manifest.captureId, run.manifest.runId)}
        ids |= found
    assert len(ids) == 2


def test_a_call_and_its_outcome_share_an_id_of_their_own(tmp_path: Path):
    """Each id stands in exactly two events, the call's first; a read is one event."""
    with reenact.capture(tmp_path / "run") as run:
        everything(run)
    places: dict[str, list[str]] = {}
    for event in CaptureReader(tmp_path / "run").events():
        call_id = getattr(event.data, "callId", None)
        if isinstance(call_id, str):
            places.setdefault(call_id, []).append(tag_of(event))
    assert len(places) == 6
    assert set(map(tuple, places.values())) == {
        ("llm_request", "llm_response"),
        ("tool_call", "tool_result"),
        ("state_mutation",),
    }


def test_a_run_begins_and_ends_in_its_log(tmp_path: Path):
    """The first and the last event say where it ran and how it ended."""
    with reenact.capture(tmp_path / "run") as run:
        run.final_output = {"b": 1, "a": [2]}
    start, end = CaptureReader(tmp_path / "run").events()
    assert (tag_of(start), start.data.cwd, start.data.argv) == (
        "run_start",
        ABSENT,
        without_places(sys.orig_argv),
    )
    assert (tag_of(end), end.data.status) == ("run_end", "ok")
    assert end.data.finalOutput == {"a": [2], "b": 1}
    assert end.data.finalOutputHash == digest_of_bytes(b'{"a":[2],"b":1}')


@pytest.mark.parametrize(
    ("word", "recorded"),
    [
        ("{cwd}/agent.py", "agent.py"),
        ("{cwd}", "."),
        ("--root={cwd}", "--root=."),
        ("-I{cwd}/lib", "-Ilib"),
        ("file://{cwd}/a.md", "file://a.md"),
        ("{cwd}-other/agent.py", "{cwd}-other/agent.py"),
        ("{home}/data.csv", "~/data.csv"),
        ("{home}", "~"),
        ("{python}/bin/agent", "{{python}}/bin/agent"),
        ("{tmp}/in.json", "{{tmp}}/in.json"),
        ("/mnt{tmp}/in.json", "/mnt{tmp}/in.json"),
        ("/srv/data/in.json", "/srv/data/in.json"),
        ("/fix the bug", "/fix the bug"),
    ],
)
def test_a_command_is_recorded_without_the_folders_of_the_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, word: str, recorded: str
) -> None:
    """A path elsewhere stays: two processes may differ in nothing else."""
    folders = {name: f"/of-ada/{name}" for name in ("home", "python", "tmp")} | {"cwd": str(tmp_path)}
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", folders["home"])
    monkeypatch.setattr(sys, "prefix", folders["python"])
    monkeypatch.setattr(tempfile, "tempdir", folders["tmp"])
    words = ["/opt/bin/python3", word.format(**folders)]
    assert without_places(words) == ["python3", recorded.format(**folders)]
    assert without_places(without_places(words)) == without_places(words)


@pytest.mark.parametrize("error", [ValueError("bad luck"), KeyboardInterrupt(), SystemExit(2)], ids=repr)
def test_a_run_that_raised_is_recorded_as_such(tmp_path: Path, error: BaseException):
    """Manifest and last event name the error; it goes on to the caller."""
    with pytest.raises(type(error)), reenact.capture(tmp_path / "run"):
        raise error
    reader = CaptureReader(tmp_path / "run")
    said = f"{type(error).__name__}: {error}".removesuffix(": ")
    assert (reader.manifest.status, reader.manifest.error) == ("error", said)
    assert (reader.event(2).data.status, reader.event(2).data.error) == ("error", said)


class Unspeakable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("not even this")


ODD_ERRORS = {"without a message": Unspeakable(), "lone surrogate": ValueError("a\ud800b")}


@pytest.mark.parametrize("name", ODD_ERRORS)
def test_an_odd_error_of_the_agent_stays_its_own(tmp_path: Path, name: str):
    """Describing it neither replaces it nor spoils the capture."""
    error = ODD_ERRORS[name]
    with pytest.raises(type(error)) as caught, reenact.capture(tmp_path / "run") as run:
        raise error
    assert caught.value is error
    assert run.warnings == []
    manifest = CaptureReader(tmp_path / "run").manifest
    assert isinstance(manifest.error, str)
    assert manifest.error.startswith(type(error).__name__)


def test_model_calls_have_what_the_format_asks_for(tmp_path: Path):
    """Also where the seam knows nothing of the model, and where the call failed."""
    with reenact.capture(tmp_path / "run") as run:
        ask({"x": 1}, {"y": 2})
        with pytest.raises(OSError, match="down"), crossing(Call("llm", "", {"x": 2})):
            raise OSError("down")
    reader = CaptureReader(tmp_path / "run")
    assert [tag_of(event) for event in reader.events()][1:-1] == ["llm_request", "llm_response"] * 2
    assert reader.event(2).data.inputHash == digest_of_bytes(b'{"x":1}')
    assert reader.event(5).data.error["message"] == "down"
    assert run.manifest is not None
    assert run.manifest.model.model == "none"


def test_the_manifest_names_the_first_model(tmp_path: Path):
    """Known only after the first model call; later ones do not change it."""
    with reenact.capture(tmp_path / "run") as run:
        for name in ("m1", "m2"):
            ask({"model": name}, 1, provider="p", model=name)
    assert run.manifest is not None
    assert (run.manifest.model.provider, run.manifest.model.model) == ("p", "m1")


def test_what_happens_inside_a_call_names_its_parent(tmp_path: Path):
    """The nested call is in a lane of its own, below its parent's."""
    with reenact.capture(tmp_path / "run") as run:
        everything(run)
    calls = [event.data for event in CaptureReader(tmp_path / "run").events() if tag_of(event) == "tool_call"]
    outer, inner = calls[0], calls[1]
    assert (outer.tool, inner.tool) == ("outer", "echo")
    assert (inner.parent, outer.lane, inner.lane) == (outer.callId, "0", "0/2")


# Values


HOSTILE: dict[str, Callable[[], Any]] = {
    "contains itself": lambda: (lambda items: items.append(items) or items)([]),
    "too deep": lambda: functools.reduce(lambda inner, _: [inner], range(2000), 0),
    "too deep for an event": lambda: functools.reduce(lambda inner, _: {"a": inner}, range(250), {}),
    "refuses comparison": lambda: type("T", (dict,), {"__eq__": lambda a, b: 1 / 0})(a=1),
    "fields that raise": lambda: _Raising(),
    "lone surrogate": lambda: "a\ud800",
    "huge integer": lambda: 10**400,
    "not a number": lambda: float("nan"),
    "dollar keys": lambda: {"$blob": "sha256:x", "$ref": {}, "$json": "{", "$py": "tuple"},
}


class _Raising:
    __attrs_attrs__ = (type("A", (), {"name": "field"}),)

    @property
    def field(self) -> Any:
        raise KeyError("lazy")


@pytest.mark.parametrize("name", HOSTILE)
def test_no_value_can_stop_the_recording(tmp_path: Path, name: str):
    """Arguments, results, memory, details, final output: what cannot be written is marked as such."""
    value = HOSTILE[name]()
    with reenact.capture(tmp_path / "run") as run:
        assert echo(value) is value
        run.memory_write("p", value)
        run.state_mutation("cache", entry=value)
        run.final_output = value
        echo("after")
    assert run.warnings == []
    reader = CaptureReader(tmp_path / "run")
    assert reader.manifest.status == "ok"
    assert all(canonical.encode(read_json(line)) == line for line in reader.lines())
    assert reader.event(7).data.result == "after"


def test_random_integers_of_any_size_are_recorded(tmp_path: Path):
    """128 bits of a UUID do not fit into a JSON number."""
    with reenact.capture(tmp_path / "run") as run:
        drawn = (run.uuid4(), run.rng.getrandbits(500), run.rng.getrandbits(64))
    with reenact.replay(tmp_path / "run") as run:
        assert (run.uuid4(), run.rng.getrandbits(500), run.rng.getrandbits(64)) == drawn
    lines = (tmp_path / "run" / "events.jsonl").read_bytes().splitlines()
    assert all(canonical.encode(msgspec.json.decode(line)) == line for line in lines)


def test_a_stream_is_recorded_as_it_was_handed_out(tmp_path: Path):
    """What the agent does to a piece afterwards is not part of the recording."""

    @reenact.tool
    def stream() -> Iterator[dict[str, Any]]:
        for number in range(3):
            yield {"n": number, "seen": []}

    def agent() -> list[Any]:
        found = []
        for piece in stream():
            found.append(dict(piece))
            piece["seen"].append(True)
            piece["n"] = -1
        return found

    with reenact.capture(tmp_path / "run"):
        recorded = agent()
    with reenact.replay(tmp_path / "run"):
        assert agent() == recorded


def test_reads_that_raise_are_outcomes_too(tmp_path: Path):
    """A missing memory is recorded, and missing again in replay."""

    def read() -> Any:
        raise KeyError("notes/1")

    def agent(run: reenact.Run) -> str:
        try:
            run.memory_read("notes/1", read)
        except KeyError as error:
            return str(error)
        return "found"

    with reenact.capture(tmp_path / "run") as run:
        assert agent(run) == "'notes/1'"
    with reenact.replay(tmp_path / "run") as run:
        assert agent(run) == "'notes/1'"


DETAILS = {
    "names of our own": {
        "value": 5,
        "lane": "x",
        "parent": 1,
        "callId": "c1",
        "derived": True,
        "opened": "no",
    },
    "other types": {"key": 7, "source": 1, "path": ["a"], "tool": {}},
    "none": {"old": None, "new": None},
}


@pytest.mark.parametrize("name", DETAILS)
def test_details_of_a_change_may_have_any_name(tmp_path: Path, name: str):
    """They are kept apart from the event's own fields."""
    with reenact.capture(tmp_path / "run") as run:
        run.state_mutation("cache", **DETAILS[name])
    assert CaptureReader(tmp_path / "run").event(2).data.details == DETAILS[name]
    with reenact.replay(tmp_path / "run") as run:
        run.state_mutation("cache", **DETAILS[name])
    with pytest.raises(reenact.Diverged), reenact.replay(tmp_path / "run") as run:
        run.state_mutation("cache", **DETAILS[name], more=1)


def test_everything_replays(tmp_path: Path):
    """An event of every type comes back as it was."""
    with reenact.capture(tmp_path / "run") as run:
        run.final_output = recorded = everything(run)
    with reenact.replay(tmp_path / "run") as run:
        run.final_output = everything(run)
        assert run.final_output == recorded
    assert list(recorded[1][0]) == ["b", "a"]


# Events of the caller's own making


def test_the_seeds_methods_record(tmp_path: Path):
    """``record_event`` and ``record_nondeterministic`` write what the format allows."""
    with recorded_by(tmp_path / "run") as context:
        context.record_event("state_mutation", {"type": "env_read", "details": {"name": "HOME"}})
        context.record_nondeterministic("clock", "now", datetime(2026, 11, 15, tzinfo=UTC))
        context.record_event("tool_result", {"callId": "x", "ok": True, "result": "r" * 20_000})
    reader = CaptureReader(tmp_path / "run")
    assert [tag_of(event) for event in reader.events()][:3] == [
        "state_mutation",
        "nondeterministic",
        "tool_result",
    ]
    assert reader.resolve(reader.event(3).data.result) == "r" * 20_000
    assert reader.event(3).data.result["bytes"] == 20_002


UNWRITABLE: dict[str, tuple[str, Any]] = {
    "unknown type": ("thought", {}),
    "missing field": ("tool_call", {"tool": "t"}),
    "wrong type": ("run_end", {"status": "fine"}),
    "no object": ("run_end", ["status"]),
}


@pytest.mark.parametrize("name", UNWRITABLE)
def test_an_event_that_could_not_be_read_is_not_written(tmp_path: Path, name: str):
    """The capture stays readable, and says that it is not whole."""
    with recorded_by(tmp_path / "run") as context:
        context.record_event("run_start", {})
        context.record_event(*UNWRITABLE[name])
        context.record_event("run_start", {})
    reader = CaptureReader(tmp_path / "run")
    assert tags(tmp_path / "run") == ["run_start"]
    assert reader.manifest.status == "error"
    assert isinstance(reader.manifest.warnings, list)


def test_values_are_given_in_replay_only(tmp_path: Path):
    """Asking a recording for a recorded value is a mistake of the caller."""
    with recorded_by(tmp_path / "run") as context, pytest.raises(reenact.UsageError, match="being recorded"):
        context.next_nondeterministic("clock", "now")


@pytest.mark.parametrize("threshold", [-1, 2**40])
def test_an_impossible_threshold_is_refused(tmp_path: Path, threshold: int):
    """Before anything is made."""
    with pytest.raises(reenact.UsageError, match="blob_threshold_bytes"):
        reenact.capture(tmp_path / "run", blob_threshold_bytes=threshold)
    assert not (tmp_path / "run").exists()


# Concurrency


def test_threads_lose_nothing(tmp_path: Path):
    """16 threads with 200 calls each: all are there, all replay, none runs again."""
    live = itertools.count()

    @reenact.tool
    def work(thread: int, number: int) -> dict[str, int]:
        return {"thread": thread, "number": number, "live": next(live)}

    def agent() -> list[list[dict[str, int]]]:
        with ThreadPoolExecutor(16) as pool:
            return list(pool.map(lambda thread: [work(thread, number) for number in range(200)], range(16)))

    with reenact.capture(tmp_path / "run") as run:
        recorded = agent()
    assert run.manifest is not None
    assert run.manifest.eventCount == 2 * 16 * 200 + 2
    assert len(events_in(tmp_path / "run")) == 6402
    with reenact.replay(tmp_path / "run"):
        assert agent() == recorded
    assert next(live) == 16 * 200


def test_parallel_tasks_lose_nothing(tmp_path: Path):
    """200 calls at a time on one loop: all are there, all replay, none runs again."""
    live = itertools.count()

    @reenact.tool
    async def work(number: int) -> dict[str, int]:
        await asyncio.sleep(0.001 * (number % 7))
        return {"number": number, "live": next(live)}

    async def agent() -> list[dict[str, int]]:
        return await asyncio.gather(*(work(number) for number in range(200)))

    with reenact.capture(tmp_path / "run") as run:
        recorded = asyncio.run(agent())
    assert run.manifest is not None
    assert run.manifest.eventCount == 402
    with reenact.replay(tmp_path / "run"):
        assert asyncio.run(agent()) == recorded
    assert next(live) == 200


def test_model_calls_of_many_threads_refer_only_backwards(tmp_path: Path):
    """Whatever instant a run is killed at, what an event refers to is written before it."""
    messages = [{"role": "user", "content": f"message {number} " * 40} for number in range(30)]

    def chat(length: int) -> None:
        ask({"messages": messages[: 1 + length % 30]}, length)

    with reenact.capture(tmp_path / "run"), ThreadPoolExecutor(8) as pool:
        list(pool.map(chat, range(200)))
    written: set[str] = set()
    for event in CaptureReader(tmp_path / "run").events():
        if tag_of(event) == "llm_request":
            reference = event.data.request["messages"]
            if isinstance(reference, dict):
                assert reference["$ref"]["call"] in written
            written.add(event.data.callId)
    assert len(written) == 200


def test_a_signal_handler_may_call_at_any_moment(tmp_path: Path):
    """Calls on top of calls neither wait for each other nor get the same number."""
    calls = itertools.count()

    def handler(number: int, frame: FrameType | None) -> None:
        echo(next(calls))

    before = signal.signal(signal.SIGALRM, handler)
    try:
        with reenact.capture(tmp_path / "run") as run:
            signal.setitimer(signal.ITIMER_REAL, 0.0005, 0.0005)
            for number in range(4000):
                echo(number)
            signal.setitimer(signal.ITIMER_REAL, 0)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert run.warnings == []
    found = events_in(tmp_path / "run")
    assert next(calls) > 5
    assert len(found) == 2 + 2 * (4000 + next(calls) - 1)


def test_a_collected_stream_may_end_in_the_middle_of_a_call(tmp_path: Path):
    """A forgotten generator in a cycle ends wherever the collector happens to run."""

    @reenact.tool
    def stream() -> Iterator[int]:
        yield from range(10)

    class Holder:
        pass

    def forget() -> None:
        holder = Holder()
        holder.stream, holder.me = stream(), holder  # type: ignore[attr-defined]
        next(holder.stream)  # type: ignore[attr-defined]

    thresholds = gc.get_threshold()
    gc.set_threshold(3)
    try:
        with reenact.capture(tmp_path / "run") as run:
            for number in range(300):
                forget()
                echo([number])
            gc.collect()
    finally:
        gc.set_threshold(*thresholds)
    assert run.warnings == []
    found = events_in(tmp_path / "run")
    assert len(found) == 2 + 4 * 300


_INTERRUPTED = """
import os, signal, sys, threading, time
import reenact

@reenact.tool
def work(number):
    return number

def interrupt():
    time.sleep(float(sys.argv[2]))
    os.kill(os.getpid(), signal.SIGINT)

with reenact.capture(sys.argv[1]):
    threading.Thread(target=interrupt, daemon=True).start()
    number = 0
    while True:
        work(number)
        number += 1
"""


@pytest.mark.slow
def test_ctrl_c_at_any_moment_leaves_a_whole_capture(tmp_path: Path):
    """No number is given twice: the capture is finished, and says who ended it."""
    for round_number in range(5):
        path = tmp_path / str(round_number)
        command = [sys.executable, "-c", _INTERRUPTED, str(path), str(0.004 * round_number + 0.001)]
        subprocess.run(command, check=False, capture_output=True)
        reader = CaptureReader(path)
        assert (reader.manifest.status, reader.manifest.error) == ("error", "KeyboardInterrupt")
        numbers = [event.seq for event in events_in(path)]
        assert numbers == list(range(1, len(reader) + 1))


class _Interrupting:
    """A sink on which Ctrl-C hits right behind the write, before anybody could note it."""

    def __init__(self, inner: Any, at: int) -> None:
        self._inner, self._at = inner, at

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def append(self, event: bytes) -> object:
        offset = self._inner.append(event)
        if self._inner.count == self._at:
            raise KeyboardInterrupt
        return offset


@settings(deadline=None)  # it waits for the disk
@given(at=st.integers(2, 9))
def test_an_interrupted_append_does_not_repeat_a_number(tmp_path_factory: pytest.TempPathFactory, at: int):
    """Whether the interrupted line was written is asked, not guessed."""
    path = tmp_path_factory.mktemp("runs") / "run"
    with pytest.raises(KeyboardInterrupt), recorded_by(path, wrap=lambda sink: _Interrupting(sink, at)):
        for number in range(9):
            echo(number)
    assert [event.seq for event in events_in(path)] == list(range(1, at + 2))


# The agent's surroundings


def test_the_agent_may_go_to_another_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A capture given by a relative path stays where it was begun, and so does its replay."""
    (tmp_path / "elsewhere").mkdir()

    def agent() -> Any:
        os.chdir(tmp_path / "elsewhere")
        return echo("x" * 50_000)

    monkeypatch.chdir(tmp_path)
    with reenact.capture("run") as run:
        recorded = agent()
    assert (run.warnings, os.listdir(tmp_path / "elsewhere")) == ([], [])
    os.chdir(tmp_path)
    with reenact.replay("run", receipt="receipt.json"):
        assert agent() == recorded
    assert os.listdir(tmp_path / "elsewhere") == []
    assert (tmp_path / "receipt.json").exists()


def test_a_call_after_the_end_is_not_part_of_the_run(tmp_path: Path):
    """A thread that outlives its run does its work, and leaves the capture as it is."""
    ended = threading.Event()
    results = []

    def late() -> None:
        ended.wait(10)
        results.append(echo("late"))

    with reenact.capture(tmp_path / "run"):
        thread = threading.Thread(target=late)
        thread.start()
    before = (tmp_path / "run" / "events.jsonl").read_bytes()
    ended.set()
    thread.join()
    assert results == ["late"]
    assert (tmp_path / "run" / "events.jsonl").read_bytes() == before
    assert tags(tmp_path / "run") == ["run_start", "run_end"]


def test_calls_that_nobody_can_place_make_a_capture_not_ok(tmp_path: Path):
    """Two open runs and a thread that belongs to neither: both say that something is missing."""
    outside = threading.Event()

    def stray() -> None:
        outside.wait(10)
        echo("whose?")

    thread = threading.Thread(target=stray)
    thread.start()
    with reenact.capture(tmp_path / "a") as first, reenact.capture(tmp_path / "b") as second:
        outside.set()
        thread.join()
    for run in (first, second):
        assert run.manifest is not None
        assert (run.manifest.status, run.manifest.warnings) == ("error", run.warnings)
        assert "is not recorded, start the thread inside its run" in str(run.manifest.error)


def test_the_context_says_where_it_stands(tmp_path: Path):
    """``seq`` is the number of the latest event."""
    with recorded_by(tmp_path / "run") as context:
        assert isinstance(context, CaptureContext)
        assert context.seq == 0
        echo(1)
        assert context.seq == 2

"""Defects that recorders of this kind have had, one test each; ours must not have them."""

from __future__ import annotations

import asyncio
import contextvars
import functools
import os
import threading
import time
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from itertools import count
from pathlib import Path
from typing import Any

import msgspec
import pytest

import reenact
from reenact.errors import FormatError, StoreError
from reenact.formats.capture import read_manifest, write_manifest
from tests.twice import captured, events, replayed, twice

tickets = count(1)
went_live: list[Any] = []


@reenact.tool
def draw(name: str) -> dict[str, Any]:
    """Every call gets an answer that no other call gets."""
    went_live.append(name)
    time.sleep(0.001)
    return {"name": name, "ticket": next(tickets)}


@reenact.tool
async def draw_async(name: str) -> dict[str, Any]:
    went_live.append(name)
    await asyncio.sleep(0.001)
    return {"name": name, "ticket": next(tickets)}


def fan_out(run: reenact.Run) -> list[Any]:
    """Ten times sixteen calls from one line; every second one asks for the same."""
    names = [f"call {number}" if number % 2 else "the same" for number in range(160)]
    with ThreadPoolExecutor(16) as pool:
        return list(pool.map(draw, names))


def test_parallel_calls_get_their_own_answers(tmp_path: Path) -> None:
    """Sixteen threads at one call site, half of the calls equal: each gets its own answer again."""
    twice(tmp_path / "run", fan_out)


def test_an_async_fan_out_is_recorded(tmp_path: Path) -> None:
    """``gather`` over sixteen coroutines leaves sixteen calls and outcomes."""

    async def agent(run: reenact.Run) -> Any:
        return await asyncio.gather(*(draw_async("the same") for _ in range(16)))

    twice(tmp_path / "run", agent)
    kinds = [kind for kind, _ in events(tmp_path / "run")]
    assert (kinds.count("tool_call"), kinds.count("tool_result")) == (16, 16)


def test_replay_never_goes_live_under_threads(tmp_path: Path) -> None:
    """Not one of 160 calls, whatever opens and closes beside it."""
    captured(tmp_path / "run", fan_out)
    captured(tmp_path / "other", lambda run: draw("other"))
    went_live.clear()
    stop = threading.Event()

    def open_and_close() -> None:
        while not stop.is_set():
            with reenact.replay(tmp_path / "other"):
                draw("other")

    thread = threading.Thread(target=open_and_close)
    thread.start()
    try:
        replayed(tmp_path / "run", fan_out)
    finally:
        stop.set()
        thread.join()
    assert went_live == []


def test_a_hidden_request_still_matches(tmp_path: Path) -> None:
    """What redaction takes out of the record does not make the call unknown, or live."""
    key = "sk-ant-api03-" + "k" * 40

    def agent(run: reenact.Run) -> Any:
        return draw(f"with key {key}")["ticket"]

    first = captured(tmp_path / "run", agent)
    assert key not in (tmp_path / "run" / "events.jsonl").read_text()
    went_live.clear()
    assert replayed(tmp_path / "run", agent) == first
    assert went_live == []


def test_streams_stay_streams(tmp_path: Path) -> None:
    """The pieces come back one by one, cut where they were cut, empty ones too."""
    pieces = ["Hel", "", "lo", "\n\n", "wor", "ld"]

    @reenact.tool
    async def stream() -> AsyncIterator[str]:
        for piece in pieces:
            yield piece
            await asyncio.sleep(0)

    async def agent(run: reenact.Run) -> list[str]:
        return [piece async for piece in stream()]

    assert twice(tmp_path / "run", agent) == pieces


def test_matching_does_not_slow_down_with_the_recording(tmp_path: Path) -> None:
    """A call costs the same at the end of a long recording as in a short one."""

    @reenact.tool
    def quick(number: int) -> int:
        return number

    def per_call_us(calls: int) -> float:
        path = tmp_path / str(calls)
        captured(path, lambda run: [quick(number) for number in range(calls)], sources=())
        with reenact.replay(path):
            began = time.perf_counter()
            for number in range(calls):
                quick(number)
            return (time.perf_counter() - began) / calls * 1e6

    per_call_us(200)
    short = min(per_call_us(500 + extra) for extra in range(3))
    long = per_call_us(20_000)
    assert long < short * 3 + 20


def forge(path: Path, old: bytes, new: bytes) -> None:
    """Change a capture the way somebody would who knows how it is put together."""
    log = path / "events.jsonl"
    text = log.read_bytes()
    assert old in text
    log.write_bytes(text.replace(old, new))
    manifest = read_manifest((path / "manifest.json").read_bytes(), file="manifest.json")
    digest = "sha256:" + sha256(log.read_bytes()).hexdigest()
    integrity = msgspec.structs.replace(manifest.integrity, eventsHash=digest)
    (path / "manifest.json").write_bytes(
        write_manifest(msgspec.structs.replace(manifest, integrity=integrity))
    )


FORGERIES = {
    "a call": b'{"$py":"object","type":"os:system","value":{"command":"touch MARK"}}',
    "a class": b'{"$py":"object","type":"subprocess:Popen","value":{"args":["touch","MARK"]}}',
    "an import": b'{"$py":"object","type":"antigravity:Anything","value":{}}',
    "an enum": b'{"$py":"enum","type":"os:system","value":"touch MARK"}',
}


@pytest.mark.parametrize("name", FORGERIES)
def test_reading_a_recording_runs_nothing(tmp_path: Path, name: str) -> None:
    """A capture is data: what it names is looked up, never imported, and never called."""

    @reenact.tool
    def give() -> str:
        return "placeholder"

    captured(tmp_path / "run", lambda run: give())
    mark = str(tmp_path / "mark").encode()
    forge(tmp_path / "run", b'"placeholder"', FORGERIES[name].replace(b"MARK", mark))
    with pytest.raises(FormatError):
        replayed(tmp_path / "run", lambda run: give())
    assert not os.path.exists(mark)


def test_raising_a_recorded_error_runs_nothing(tmp_path: Path) -> None:
    """Nor does a forged exception."""

    @reenact.tool
    def fail() -> None:
        raise ValueError("placeholder")

    def agent(run: reenact.Run) -> str:
        try:
            fail()
        except Exception as error:
            return type(error).__name__
        return ""

    captured(tmp_path / "run", agent)
    forge(tmp_path / "run", b'"builtins:ValueError"', b'"subprocess:Popen"')
    assert replayed(tmp_path / "run", agent) == "RecordedError"


def test_the_whole_request_is_matched_by_default(tmp_path: Path) -> None:
    """A stale recording fails; there is nothing to switch on."""
    captured(tmp_path / "run", lambda run: draw("old prompt"))
    with pytest.raises(reenact.Diverged):
        replayed(tmp_path / "run", lambda run: draw("new prompt"))


def test_a_cache_that_the_recording_does_not_know_is_told(tmp_path: Path) -> None:
    """A cache that was warm then and is cold now, or the other way round, is named by its call."""
    cached = functools.cache(lambda name: draw(name)["name"])
    cached("settings")

    def agent(run: reenact.Run) -> Any:
        return [cached("settings"), draw("question")["name"]]

    captured(tmp_path / "warm", agent)
    cached.cache_clear()
    with pytest.raises(reenact.Diverged) as caught:
        replayed(tmp_path / "warm", agent)
    assert caught.value.divergence.observed.data["args"] == {"name": "settings"}
    captured(tmp_path / "cold", agent)
    with pytest.raises(reenact.Diverged) as caught:
        replayed(tmp_path / "cold", agent)
    assert caught.value.divergence.expected["data"]["args"] == {"name": "settings"}


def test_recording_leaves_the_agent_alone(tmp_path: Path) -> None:
    """Results are the very objects, errors the very errors, context variables stay where they are."""
    made, error = object(), KeyError("mine")
    variable = contextvars.ContextVar("variable", default=0)

    @reenact.tool
    def give() -> object:
        variable.set(1)
        return made

    @reenact.tool
    def fail() -> None:
        raise error

    with reenact.capture(tmp_path / "run"):
        assert give() is made
        assert variable.get() == 1
        with pytest.raises(KeyError) as caught:
            fail()
        assert caught.value is error


def test_a_failing_disk_leaves_the_agent_alone(tmp_path: Path) -> None:
    """The run goes on, and the recording says that it is not whole."""
    with reenact.capture(tmp_path / "run") as run:
        first = draw("a")
        run._context._sink._run.journal.close()  # type: ignore[attr-defined]
        second = draw("b")
    assert (first["name"], second["name"]) == ("a", "b")
    assert run.warnings
    assert run.manifest is None or run.manifest.status == "error"


def test_an_empty_recording_is_not_green(tmp_path: Path) -> None:
    """A replay that calls what was never recorded fails, and so does one that calls nothing."""
    captured(tmp_path / "empty", lambda run: None)
    with pytest.raises(reenact.Diverged):
        replayed(tmp_path / "empty", lambda run: draw("a"))
    captured(tmp_path / "full", lambda run: draw("a"))
    with pytest.raises(reenact.Diverged):
        replayed(tmp_path / "full", lambda run: None)


def test_replay_really_runs_the_agent(tmp_path: Path) -> None:
    """Not a viewer that steps through a log: today's code runs, and its changes show."""
    steps: list[str] = []

    def agent(suffix: str) -> Callable[[reenact.Run], str]:
        def run_it(run: reenact.Run) -> str:
            steps.append(suffix)
            return str(draw("a")["name"]) + suffix

        return run_it

    assert captured(tmp_path / "run", agent(" then")) == "a then"
    assert replayed(tmp_path / "run", agent(" now")) == "a now"
    assert steps == [" then", " now"]


def test_concurrent_replays_of_one_recording_share_nothing(tmp_path: Path) -> None:
    """Tests that run side by side over the same capture each have a cursor of their own."""
    first = captured(tmp_path / "run", lambda run: [draw(str(number)) for number in range(20)])

    def again() -> Any:
        return replayed(tmp_path / "run", lambda run: [draw(str(number)) for number in range(20)])

    with ThreadPoolExecutor(4) as pool:
        assert [job.result() for job in [pool.submit(again) for _ in range(8)]] == [first] * 8


def test_a_missing_recording_is_an_error_not_a_difference(tmp_path: Path) -> None:
    """Nobody takes it for a failed comparison."""
    with pytest.raises(StoreError) as caught:
        reenact.replay(tmp_path / "none")
    assert not isinstance(caught.value, reenact.Diverged)

"""A model call of the real SDK, recorded and replayed, beside cassette recorders and a mock transport.

All make the same calls to the same listening provider, in turns. The peers, ``cassetter`` and
``vcrpy``, are installed for the bench alone; without them their lines are left out, and that is said.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import timeit
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from importlib.util import find_spec
from pathlib import Path
from statistics import mean, median
from typing import Any, NamedTuple, TypeAlias

import httpx2
import openai

import reenact
from bench.figure import Figure, Over, TimesAsLong, best_in_turns

TURNS = 5
CALLS = 300
"""In each turn of each recorder, in one run."""
CALLS_BY = {"vcrpy": 60}
"""It compares each call with all before it; fewer calls flatter it, and all would take minutes."""
BLOCK = 20
"""So many calls in a row take less time than a busy moment of the machine lasts."""
Turns: TypeAlias = list[list[float]]
"""How long each call of each turn took, in seconds."""
INDEXED = 1_000
MATCHED_ON = ["method", "uri", "body"]
"""Not what the peers do unless told, but what makes their answers the right ones."""
HALF = TimesAsLong(1 / 2)
"""A quarter is the aim."""
ADDED = Over(275e-6)
"""A quarter of the 1.1 ms that cassetter added when the bar was set, for whoever has no peers installed."""
LOADED_IN = {"cassetter": TimesAsLong(1 / 2), "vcrpy": TimesAsLong(1 / 20)}

PROVIDER = """\
import sys
from reenact.testing import ScriptedProvider, echo
with ScriptedProvider(echo()) as provider:
    print(provider.base_url("openai"), flush=True)
    sys.stdin.read()
"""
SYSTEM = "You route support requests to the right team, and you never promise what you cannot know. " * 12
TOOL = {
    "type": "function",
    "function": {
        "name": "search_orders",
        "description": "Finds orders by number, by customer, or by what they contain.",
        "parameters": {
            "type": "object",
            "properties": {"query": {"type": "string"}, "limit": {"type": "integer", "default": 10}},
            "required": ["query"],
        },
    },
}
ASKED_BEFORE = "My order #1234 (two lamps) has not shipped yet, and I need it before Friday. " * 8
ANSWERED_BEFORE = "It is paid and waits for stock; it will leave our house on Tuesday at the latest. " * 6


class Recorder(NamedTuple):
    """One way of recording calls to a path, and of answering them from there."""

    record: Callable[[Path], AbstractContextManager[Any]]
    replay: Callable[[Path], AbstractContextManager[Any]]
    load: Callable[[Path], Any]
    """Opens what was recorded, as far as the first call needs it."""


def figures() -> Iterator[Figure]:
    """Recording, replaying and opening, beside whoever is there."""
    recorders = {"ours": _ours(), **_peers()}
    with (
        tempfile.TemporaryDirectory() as folder,
        _provider() as url,
        openai.OpenAI(base_url=url, api_key="unused") as client,
    ):
        yield from _recording(Path(folder), client, recorders)
        yield from _replaying(Path(folder), client, recorders)
        yield from _opening(Path(folder), client, recorders)


def _ours() -> Recorder:
    return Recorder(lambda path: reenact.capture(path, redact="default"), reenact.replay, reenact.replay)


def _peers() -> dict[str, Recorder]:
    makers = {"cassetter": ("cassetter", _cassetter), "vcrpy": ("vcr", _vcrpy)}
    found = {name: maker() for name, (module, maker) in makers.items() if find_spec(module) is not None}
    for name in makers.keys() - found.keys():
        print(f"{name} is not installed, so its lines are left out; pip install {name}", file=sys.stderr)
    return found


def _others(recorders: dict[str, Recorder]) -> list[str]:
    return [name for name in recorders if name != "ours"]


def _cassetter() -> Recorder:
    from cassetter import use_cassette

    return _cassettes(use_cassette)


def _vcrpy() -> Recorder:
    import vcr

    return _cassettes(vcr.use_cassette)


def _cassettes(use_cassette: Callable[..., AbstractContextManager[Any]]) -> Recorder:
    def opened(path: Path, mode: str) -> AbstractContextManager[Any]:
        return use_cassette(f"{path}.yaml", record_mode=mode, match_on=MATCHED_ON)

    def load(path: Path) -> None:
        with opened(path, "none"):
            pass

    return Recorder(lambda path: opened(path, "once"), lambda path: opened(path, "none"), load)


@contextmanager
def _provider() -> Iterator[str]:
    """A provider in a process of its own, so that its work is nobody's added time."""
    child = subprocess.Popen(
        [sys.executable, "-c", PROVIDER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert child.stdin is not None
    assert child.stdout is not None
    try:
        yield child.stdout.readline().strip()
    finally:
        child.stdin.close()
        child.wait()


def _recording(root: Path, client: Any, recorders: dict[str, Recorder]) -> Iterator[Figure]:
    calls_s: dict[str, Turns] = {name: [] for name in ["bare", *recorders]}
    ends_s: dict[str, list[float]] = {name: [] for name in recorders}
    for turn in range(TURNS):
        calls_s["bare"].append(_ask_all(client, CALLS))
        for name, recorder in recorders.items():
            with recorder.record(root / f"{name}-{turn}"):
                asked_s = _ask_all(client, CALLS_BY.get(name, CALLS))
                began_s = _now_s()
            ends_s[name].append((_now_s() - began_s) / len(asked_s))
            calls_s[name].append(asked_s)
    # A cassette is written when it is closed: that is part of what each of its calls costs.
    bare_s = _least_disturbed_s(calls_s["bare"])
    added_s = {name: _least_disturbed_s(calls_s[name]) + min(ends_s[name]) - bare_s for name in recorders}
    yield Figure("model call recorded", bare_s + added_s["ours"], "bare call", bare_s, ADDED)
    for name in _others(recorders):
        yield Figure("added by recording a model call", added_s["ours"], f"by {name}", added_s[name], HALF)


def _replaying(root: Path, client: Any, recorders: dict[str, Recorder]) -> Iterator[Figure]:
    calls_s: dict[str, Turns] = {name: [] for name in ["mock", *recorders]}
    with _mocked(client) as mocked:
        for turn in range(TURNS):
            calls_s["mock"].append(_ask_all(mocked, CALLS))
            for name, recorder in recorders.items():
                with recorder.replay(root / f"{name}-{turn}"):
                    calls_s[name].append(_ask_all(client, CALLS_BY.get(name, CALLS)))
    call_s = {name: _least_disturbed_s(times) for name, times in calls_s.items()}
    yield Figure(
        "replayed model call", call_s["ours"], "on a mock transport", call_s["mock"], TimesAsLong(1.15)
    )
    for name in _others(recorders):
        yield Figure("replayed model call", call_s["ours"], f"by {name}", call_s[name], TimesAsLong(1))


def _opening(root: Path, client: Any, recorders: dict[str, Recorder]) -> Iterator[Figure]:
    for name, recorder in recorders.items():
        with recorder.record(root / f"{name}-indexed"), nullcontext() if name != "vcrpy" else _unmatched():
            _ask_all(client, INDEXED)
    for name in _others(recorders):
        ours_s, beside_s = best_in_turns(
            lambda: reenact.replay(root / "ours-indexed"),
            lambda name=name: recorders[name].load(root / f"{name}-indexed"),  # type: ignore[misc]
            rounds=5,
        )
        yield Figure(
            f"open and index {INDEXED:,} model calls", ours_s, f"{name}'s load", beside_s, LOADED_IN[name]
        )


@contextmanager
def _unmatched() -> Iterator[None]:
    """vcrpy compares each call that it records with all before; that takes minutes, and is not measured."""
    from vcr.cassette import Cassette

    original = Cassette.can_play_response_for
    Cassette.can_play_response_for = lambda *_: False
    try:
        yield
    finally:
        Cassette.can_play_response_for = original


@contextmanager
def _mocked(client: Any) -> Iterator[Any]:
    """The same client on a transport that answers at once with what the provider answers."""
    answer = client.chat.completions.with_raw_response.create(**_request(0))
    content, headers = answer.content, list(answer.headers.items())

    def respond(_: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(200, content=content, headers=headers)

    with httpx2.Client(transport=httpx2.MockTransport(respond)) as http_client:
        yield client.with_options(http_client=http_client)


def _ask_all(client: Any, calls: int) -> list[float]:
    durations_s = []
    for number in range(calls):
        request = _request(number)
        began_s = _now_s()
        client.chat.completions.create(**request)
        durations_s.append(_now_s() - began_s)
    return durations_s


def _least_disturbed_s(turns_s: Turns) -> float:
    """The mean of all blocks of calls, each taken from the turn in which the machine left it alone most.

    All count, because a call may take longer the more calls were recorded before it.
    """
    blocks_s = [
        [median(calls_s[start : start + BLOCK]) for start in range(0, len(calls_s), BLOCK)]
        for calls_s in turns_s
    ]
    return mean(map(min, zip(*blocks_s, strict=True)))


_now_s = timeit.Timer().timer.__call__
"""A clock that is not recorded: the names of this module are exchanged, an attribute of a library is not."""


def _request(number: int) -> Any:
    question = f"And order {number:04}? It should have come with the first one."
    messages = [
        {"role": "system", "content": SYSTEM},
        {"role": "user", "content": ASKED_BEFORE},
        {"role": "assistant", "content": ANSWERED_BEFORE},
        {"role": "user", "content": question},
    ]
    return {"model": "large-1", "temperature": 0.2, "messages": messages, "tools": [TOOL]}

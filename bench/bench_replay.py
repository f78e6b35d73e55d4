"""Replay beside the bare call: one matched call in a short and in a long recording, and opening one."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from time import perf_counter
from typing import Any

import msgspec

import reenact
from bench.bench_disk import ask, chat
from bench.figure import Figure, Over, TimesAsLong, best_in_turns
from reenact.replayer.source import ReplaySource

CALLS = (10, 1_000, 100_000)
STRETCH = 200
"""A busy machine leaves no run of many seconds undisturbed, but some stretches of it."""
SHORT_RUNS = 20_000
"""So many calls at least, in as many runs as it takes."""
MODEL_CALLS = 1_000


def look_up(number: int) -> dict[str, Any]:
    """A tool whose own work takes next to no time."""
    return {"number": number, "title": "two lamps"}


recorded_look_up = reenact.tool(look_up)


def figures() -> Iterator[Figure]:
    """A call among few and among many, how flat that is, and opening a recording."""
    per_call_s: dict[int, float] = {}
    for calls in CALLS:
        ours_s, beside_s = _per_call(calls)
        per_call_s[calls] = ours_s
        yield Figure(f"replayed call, one of {calls:,}", ours_s, "bare call", beside_s, Over(20e-6))
    few, many = per_call_s[CALLS[1]], per_call_s[CALLS[2]]
    yield Figure(f"replayed call, one of {CALLS[2]:,}", many, f"of {CALLS[1]:,}", few, TimesAsLong(1.5))
    yield _opening()


def _per_call(calls: int) -> tuple[float, float]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run"
        # Our own reading of the clock is not to be recorded, let alone replayed.
        with reenact.capture(path, redact="default", sources=()):
            for number in range(calls):
                recorded_look_up(number)
        rounds = range(max(3, SHORT_RUNS // calls))
        return min(_replayed_s(path, calls) for _ in rounds), min(_best_s(look_up, calls) for _ in rounds)


def _replayed_s(path: Path, calls: int) -> float:
    with reenact.replay(path):
        return _best_s(recorded_look_up, calls)


def _best_s(call: Any, calls: int) -> float:
    """The least that a call took on average, in a whole run or in a stretch of a long one."""
    stretch = min(calls, STRETCH)
    return min(_all(call, range(start, start + stretch)) for start in range(0, calls, stretch))


def _all(call: Any, numbers: range) -> float:
    started_s = perf_counter()
    for number in numbers:
        call(number)
    return (perf_counter() - started_s) / len(numbers)


def _opening() -> Figure:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run"
        with reenact.capture(path, redact="default", sources=()):
            for turn in range(MODEL_CALLS):
                ask({"model": "m", "messages": chat(turn % 10 + 1)}, {"turn": turn})
        ours_s, beside_s = best_in_turns(lambda: ReplaySource(path), lambda: _decoded(path / "events.jsonl"))
    return Figure(
        f"open and index {MODEL_CALLS:,} model calls", ours_s, "hash + decode", beside_s, TimesAsLong(2)
    )


def _decoded(path: Path) -> None:
    text = path.read_bytes()
    sha256(text).hexdigest()
    for line in text.splitlines():
        msgspec.json.decode(line)

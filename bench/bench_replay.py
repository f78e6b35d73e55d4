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
        with reenact.capture(path, redact="default"):
            _all(recorded_look_up, calls)
        rounds = max(3, 2_000 // calls)
        return min(_replayed_s(path, calls) for _ in range(rounds)), min(
            _all(look_up, calls) for _ in range(rounds)
        )


def _replayed_s(path: Path, calls: int) -> float:
    with reenact.replay(path):
        return _all(recorded_look_up, calls)


def _all(call: Any, calls: int) -> float:
    started_s = perf_counter()
    for number in range(calls):
        call(number)
    return (perf_counter() - started_s) / calls


def _opening() -> Figure:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run"
        with reenact.capture(path, redact="default"):
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

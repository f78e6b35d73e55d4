"""What recording adds to a call, beside the bare call in the same run."""

from __future__ import annotations

import os
import random
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import reenact
from bench import samples
from bench.figure import Figure, Over, TimesAsLong, best_in_turns
from reenact.canonical import encode
from reenact.store.journal import Journal

ROUNDS = 40


def look_up(query: str, limit: int = 10, *, exact: bool = False) -> dict[str, Any]:
    """A tool whose own work takes next to no time."""
    return {"query": query, "hits": [{"id": 1, "title": "two lamps"}], "limit": limit, "exact": exact}


recorded_look_up = reenact.tool(look_up)
QUERY = "order 1234, not shipped, needed before Friday"


def figures() -> Iterator[Figure]:
    """Tool, clock, chance, nothing, and the append below them all."""
    yield from _recorded()
    ours_s, beside_s = best_in_turns(lambda: recorded_look_up(QUERY), lambda: look_up(QUERY), rounds=ROUNDS)
    yield Figure("tool call outside any run", ours_s, "bare call", beside_s, Over(0.2e-6))
    yield from _append()


def _recorded() -> Iterator[Figure]:
    with (
        tempfile.TemporaryDirectory() as folder,
        reenact.capture(Path(folder) / "run", redact="default", sources=()) as run,
    ):
        calls: dict[str, tuple[Callable[[], Any], Callable[[], Any], float]] = {
            "tool call recorded": (lambda: recorded_look_up(QUERY), lambda: look_up(QUERY), 15e-6),
            "clock read recorded": (run.clock.now, time.time, 5e-6),
            "random number recorded": (run.rng.random, random.random, 5e-6),
        }
        for name, (ours, beside, at_most_s) in calls.items():
            ours_s, beside_s = best_in_turns(ours, beside, rounds=ROUNDS)
            yield Figure(name, ours_s, "bare call", beside_s, Over(at_most_s))
    assert run.warnings == []


def _append() -> Iterator[Figure]:
    line = encode(samples.tool_event())
    with tempfile.TemporaryDirectory() as folder:
        journal = Journal.create(Path(folder) / "events.jsonl", durability="process")
        fd = os.open(Path(folder) / "bare.jsonl", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        ours_s, beside_s = best_in_turns(
            lambda: journal.append(line), lambda: os.write(fd, line + b"\n"), rounds=ROUNDS
        )
        os.close(fd)
        journal.close()
    yield Figure(f"append one line, {len(line)} B, process", ours_s, "os.write", beside_s, TimesAsLong(2))

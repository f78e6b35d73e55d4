"""A fork at the end of a long run beside its strict replay, its size on disk, samples side by side."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import reenact
from bench.figure import Figure, TimesAsLong, best_in_turns
from reenact.testing import Reply, ScriptedProvider, support_agent

CALLS = 10_000
SAMPLES = int(os.environ.get("REENACT_SAMPLES", "100"))
ALLOWED_BYTES = 4096
AGENT = """
import os
from reenact.testing import support_agent
support_agent.answer(support_agent.QUESTION, os.environ["ANTHROPIC_BASE_URL"])
"""


@reenact.tool
def look_up(number: int) -> dict[str, Any]:
    """A tool whose own work takes next to no time."""
    return {"number": number, "title": "two lamps" * 20}


def agent() -> None:
    """The run that is forked at its last call."""
    for number in range(CALLS):
        look_up(number)


def figures() -> Iterator[Figure]:
    """Time and size of a fork, then samples by one worker and by one for each core."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with reenact.capture(folder / "run", sources=()):
            agent()
        ours_s, beside_s = best_in_turns(
            lambda: _fork(folder), lambda: _replay(folder), rounds=7, clock=process_time
        )
        yield Figure(
            f"fork at the end of {CALLS:,} calls", ours_s, "strict replay", beside_s, TimesAsLong(1.2)
        )
        yield _size(folder, "at the end", 2 * CALLS)
        _fork(folder, at=CALLS)
        yield _size(folder, "in the middle", CALLS)
        yield _samples(folder)


def _size(folder: Path, where: str, at: int) -> Figure:
    """All files of the fork, beside what its parent has from the changed outcome on."""
    lines = (folder / "run" / "events.jsonl").read_bytes().splitlines(keepends=True)
    size_bytes = sum(file.stat().st_size for file in (folder / "fork").rglob("*") if file.is_file())
    allowed_bytes = sum(map(len, lines[at:])) + ALLOWED_BYTES
    return Figure(
        f"a fork {where}, on disk", size_bytes, "the suffix + 4 KiB", allowed_bytes, TimesAsLong(1), unit="B"
    )


def _replay(folder: Path) -> None:
    with reenact.replay(folder / "run"):
        agent()


def _fork(folder: Path, at: int = 2 * CALLS) -> None:
    shutil.rmtree(folder / "fork", ignore_errors=True)
    change = {"set": {"$.number": -1}}
    with reenact.fork(folder / "run", at=at, change=change, output=folder / "fork"):
        agent()


def _samples(folder: Path) -> Figure:
    """With two cores, half the time and a little."""
    program = folder / "agent.py"
    program.write_text(AGENT)
    words = [sys.executable, str(program)]
    with ScriptedProvider(support_agent.script(), models=(support_agent.MODEL,)) as provider:
        os.environ["ANTHROPIC_BASE_URL"] = provider.base_url("anthropic")
        reenact.record_command(words, folder / "demo")
    with ScriptedProvider(Reply("It arrives on Friday."), port=provider.port):
        taken_s = {}
        for jobs in (None, 1):
            began_s = perf_counter()
            report = reenact.fork_samples(
                folder / "demo",
                words,
                at=9,
                samples=SAMPLES,
                change={"set": {"$.due": "Friday"}},
                on_miss="live",
                output=folder / f"samples-{jobs}",
                jobs=jobs,
            )
            assert report.ended_well.count == SAMPLES, report.outcomes[0].problem
            taken_s[jobs] = perf_counter() - began_s
    what = f"{SAMPLES} samples on all cores"
    return Figure(what, taken_s[None], "one at a time", taken_s[1], TimesAsLong(0.7))

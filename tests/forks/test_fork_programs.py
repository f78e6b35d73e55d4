"""Random concurrent programs, forked at random points."""

from __future__ import annotations

import json
import os
import random
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

import reenact
from reenact.check.integrity.capture import check_capture
from reenact.forks.run import InProcessFork
from reenact.replayer.source import ReplaySource
from reenact.store.reader import CaptureReader
from tests.hard import rounds
from tests.replayer.test_concurrency import ShufflingLoop
from tests.replayer.test_random_programs import (
    Machine,
    Node,
    Schedule,
    draw_program,
    draw_schedules,
    record,
)

PROGRAMS = int(os.environ.get("REENACT_PROGRAMS") or rounds(24, 2000))
SHARDS = 4


class ForkedMachine(Machine):
    """Runs a program as a fork; what goes live says so, and never before the point."""

    run: InProcessFork

    def __post_init__(self) -> None:
        self.answers = self._live_answers()
        super().__post_init__()

    def _live_answers(self) -> Any:
        number = 0
        while True:
            assert self.run.context.is_reached, "a call went live before the point of the fork"
            number += 1
            yield f"{number}, live"


def forked(
    program: Node, schedule: Schedule, path: Path, output: Path, *, is_plain: bool = False, **options: Any
) -> tuple[Any, Any]:
    """What *is_plain* depends on nobody's order, so even a loop may run it that calls back in any order."""
    ShufflingLoop.rng = random.Random(schedule.rng.random())
    interval = sys.getswitchinterval()
    sys.setswitchinterval(schedule.rng.choice((1e-5, 1e-3, interval)))
    try:
        with reenact.fork(path, output=output, stall_s=5, **options) as run:
            machine = ForkedMachine(run, schedule)
            loop_factory = schedule.rng.choice((None, ShufflingLoop)) if is_plain else None
            return machine.main(program, loop_factory), run
    finally:
        sys.setswitchinterval(interval)


def own_words(path: Path) -> list[bytes]:
    """All events, without the ids of the run."""
    reader = CaptureReader(path)
    ids = (reader.manifest.captureId.encode(), reader.manifest.runId.encode())
    return [line.replace(ids[0], b"CAPTURE").replace(ids[1], b"RUN") for line in reader.lines()]


def points(path: Path, *, is_tool: bool) -> list[int]:
    calls = ReplaySource(path).calls
    return [call.seq for call in calls if call.parent is None and (call.type == "tool_call" or not is_tool)]


@pytest.mark.parametrize("shard", range(SHARDS))
def test_a_fork_without_a_change_is_its_parent(shard: int) -> None:
    """Whatever the schedule and the point: the same result, the same events, nothing live, and so again."""
    for seed in range(shard, PROGRAMS, SHARDS):
        rng = random.Random(seed)
        program = draw_program(rng, is_plain=seed % 3 == 0)
        then, now = draw_schedules(rng, is_same_shape=True)
        with tempfile.TemporaryDirectory() as folder:
            place = Path(folder)
            recorded = record(program, then, place / "run")
            at = rng.choice(points(place / "run", is_tool=False))
            is_plain = seed % 3 == 0
            result, run = forked(program, now, place / "run", place / "fork", at=at, is_plain=is_plain)
            assert result == recorded, f"program {seed}"
            assert run.shares.live == run.shares.nearest == 0, f"program {seed}"
            assert own_words(place / "fork") == own_words(place / "run"), f"program {seed}"
            again, _ = forked(program, now, place / "fork", place / "again", at=at, is_plain=is_plain)
            assert again == recorded, f"program {seed}"


@pytest.mark.parametrize("shard", range(SHARDS))
def test_a_change_goes_as_far_as_it_is_asked_about(shard: int) -> None:
    """The prefix makes no live call, what does not depend on the change is answered from the recording."""
    for seed in range(shard, PROGRAMS, SHARDS):
        rng = random.Random(seed + 7)
        program = draw_program(rng, is_plain=True)
        then, now = draw_schedules(rng, is_same_shape=True)
        with tempfile.TemporaryDirectory() as folder:
            place = Path(folder)
            recorded = record(program, then, place / "run")
            if not points(place / "run", is_tool=True):
                continue
            at = rng.choice(points(place / "run", is_tool=True))
            options = {"at": at, "change": {"replace": "changed"}, "on_miss": "live"}
            result, run = forked(program, now, place / "run", place / "fork", **options)
            depending = answers_depending_on(place / "run", at)
            assert run.shares.live == len(depending) - 1, f"program {seed}"
            assert hidden(result, depending) == hidden(recorded, depending), f"program {seed}"
            assert check_capture(place / "fork").findings == [], f"program {seed}"
            with reenact.replay(place / "fork", stall_s=5) as again:
                assert Machine(again, now, iter(())).main(program) == result, f"program {seed}"


def answers_depending_on(path: Path, at: int) -> set[str]:
    """The answer of the call at event *at*, and those of all calls that it led to."""
    source = ReplaySource(path)
    answers = {source.data(source.by_seq[at].outcome_seq)["result"]}
    for call in source.calls:
        if call.type == "tool_call" and any(
            json.dumps(one) in json.dumps(source.request(call)) for one in answers
        ):
            answers.add(source.data(call.outcome_seq)["result"])
    return answers


def hidden(value: Any, answers: set[str]) -> Any:
    """*value* without those answers, and without what was changed or came live."""
    if isinstance(value, list):
        return [hidden(each, answers) for each in value]
    return "*" if value in answers or value == "changed" or str(value).endswith(", live") else value

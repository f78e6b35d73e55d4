"""What was acknowledged survives ``kill -9``, and failing storage never reaches the agent."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import reenact
from reenact.recorder.recovery import recover
from reenact.store.reader import CaptureReader

_AGENT = """
import itertools, sys
import reenact

@reenact.tool
def work(number):
    return {"number": number, "padding": "x" * (number % 400)}

with reenact.capture(sys.argv[1]):
    for number in itertools.count():
        work(number)
        print(number, flush=True)
"""
ROUNDS = 100


def _kill_at_a_random_moment(path: Path, rng: random.Random) -> int:
    """Run the agent, kill it, and return the last call it acknowledged."""
    agent = subprocess.Popen([sys.executable, "-c", _AGENT, str(path)], stdout=subprocess.PIPE, text=True)
    assert agent.stdout is not None
    last = -1
    target = rng.randrange(1, 60)
    try:
        for line in agent.stdout:
            last = int(line)
            if last >= target:
                break
        os.kill(agent.pid, signal.SIGKILL)
        for line in agent.stdout:
            if line.endswith("\n"):
                last = int(line)
    finally:
        agent.kill()
        agent.stdout.close()
        agent.wait()
    return last


@pytest.mark.parametrize("batch", range(10))
def test_every_acknowledged_event_survives_a_kill(tmp_path: Path, batch: int) -> None:
    """After ``recover`` all calls acknowledged before the kill are there, and the capture verifies."""
    rng = random.Random(batch)
    for round_number in range(ROUNDS // 10):
        path = tmp_path / str(round_number)
        last = _kill_at_a_random_moment(path, rng)
        recovered = recover(path)
        assert (recovered.manifest.status, recovered.manifest.error) == ("error", "interrupted")
        reader = CaptureReader(path)
        results = [event for event in reader.events() if event.__struct_config__.tag == "tool_result"]
        assert [event.data.result["number"] for event in results][: last + 1] == list(range(last + 1))


def test_an_interrupted_run_replays_up_to_the_kill(tmp_path: Path) -> None:
    """A recovered capture can be replayed; the call that was cut off is reported, not invented."""
    path = tmp_path / "run"
    last = _kill_at_a_random_moment(path, random.Random(1))
    recover(path)

    @reenact.tool(name="work")
    def work(number: int) -> dict[str, object]:
        raise AssertionError("went live")

    with pytest.raises(reenact.Diverged), reenact.replay(path, stall_s=0.05):
        for number in range(last + 1):
            assert work(number)["number"] == number
        for number in range(last + 1, last + 50):
            work(number)

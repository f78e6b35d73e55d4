"""What was acknowledged survives ``kill -9``."""

from __future__ import annotations

import os
import random
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

import reenact
from reenact.formats.capture import ToolResult
from reenact.recorder.recovery import recover
from reenact.store.reader import CaptureReader
from tests.hard import rounds
from tests.store import child

# One process is warmed up, and forks an agent for each path it is told: starting Python takes longer than
# a whole round.
_AGENTS = """
import itertools, os, sys
import reenact

@reenact.tool
def work(number):
    return {"number": number, "padding": "x" * (number % 400)}

def agent(path):
    with reenact.capture(path):
        for number in itertools.count():
            work(number)
            os.write(1, b"%d\\n" % number)

warm = reenact.capture
for path in map(str.strip, sys.stdin):
    pid = os.fork()
    if pid == 0:
        agent(path)
    os.write(1, b"pid %d\\n" % pid)
    os.waitpid(pid, 0)
    os.write(1, b"end\\n")
"""
ROUNDS = rounds(100, 500)


class Agents:
    """Agents that record until they are killed."""

    def __init__(self) -> None:
        self._process = child.start(_AGENTS, stdin=subprocess.PIPE)

    def kill_after(self, path: Path, target: int) -> int:
        """Let one record into *path*, kill it behind call *target*, and return its last acknowledged call."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{path}\n".encode())
        self._process.stdin.flush()
        pid, last, is_killed = 0, -1, False
        for line in self._process.stdout:
            if line == b"end\n":
                break
            if line.startswith(b"pid"):
                pid = int(line.split()[1])
            else:
                last = int(line)
            if pid and last >= target and not is_killed:
                is_killed = True
                os.kill(pid, signal.SIGKILL)
        return last

    def close(self) -> None:
        self._process.kill()
        self._process.communicate()


@pytest.fixture(scope="module")
def agents() -> Iterator[Agents]:
    agents = Agents()
    yield agents
    agents.close()


def test_every_acknowledged_event_survives_a_kill(agents: Agents, tmp_path: Path) -> None:
    """After ``recover`` all calls acknowledged before the kill are there, and the capture verifies."""
    rng = random.Random(1)
    for round_number in range(ROUNDS):
        path = tmp_path / str(round_number)
        last = agents.kill_after(path, rng.randrange(1, 60))
        recovered = recover(path)
        assert (recovered.manifest.status, recovered.manifest.error) == ("error", "interrupted")
        results = [event for event in CaptureReader(path).events() if isinstance(event, ToolResult)]
        assert [event.data.result["number"] for event in results][: last + 1] == list(range(last + 1))


def test_an_interrupted_run_replays_up_to_the_kill(agents: Agents, tmp_path: Path) -> None:
    """A recovered capture can be replayed; the call that was cut off is reported, not invented."""
    path = tmp_path / "run"
    last = agents.kill_after(path, 20)
    recover(path)

    @reenact.tool(name="work")
    def work(number: int) -> dict[str, object]:
        raise AssertionError("went live")

    with pytest.raises(reenact.Diverged), reenact.replay(path, stall_s=0.05):
        for number in range(last + 1):
            assert work(number)["number"] == number
        for number in range(last + 1, last + 50):
            work(number)

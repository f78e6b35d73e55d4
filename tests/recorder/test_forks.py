"""Processes made while a run is recorded: the capture stays the parent's, whole, and nobody hangs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import reenact
from reenact.store.reader import CaptureReader
from tests.recorder.recording import events_in

_START = """
import multiprocessing, os, sys, threading, time
import reenact

@reenact.tool
def work(number):
    return number * 2

def child(number, results=None):
    found = work(number)
    if results is not None:
        results.put(found)
    return found

"""

_PROGRAMS = {
    "os.fork": """
with reenact.capture(sys.argv[1]) as run:
    work(1)
    if (pid := os.fork()) == 0:
        ok = child(2) == 4 and len(run.warnings) == 1 and child(3) == 6 and len(run.warnings) == 1
        os._exit(0 if ok else 1)
    assert os.waitpid(pid, 0)[1] == 0
    work(9)
""",
    "a child that leaves the block": """
called, calls = os.pipe()
with reenact.capture(sys.argv[1]) as run:
    work(1)
    pid = os.fork()
    if pid == 0:
        child(2)
        os.write(calls, b"!")
        run.final_output = "the child's"
    else:
        os.read(called, 1)
if pid == 0:
    os._exit(0 if run.manifest is None else 1)
assert os.waitpid(pid, 0)[1] == 0
with reenact.capture(sys.argv[1] + "-other"):
    pass
""",
    "a child with a run of its own": """
with reenact.capture(sys.argv[1]) as run:
    work(1)
    if (pid := os.fork()) == 0:
        with reenact.capture(sys.argv[1] + "-child") as own:
            work(2)
        os._exit(0 if own.manifest.status == "ok" and own.manifest.eventCount == 4 else 1)
    assert os.waitpid(pid, 0)[1] == 0
    work(9)
""",
    "multiprocessing fork": """
with reenact.capture(sys.argv[1]) as run:
    work(1)
    context = multiprocessing.get_context("fork")
    results = context.SimpleQueue()
    process = context.Process(target=child, args=(2, results))
    process.start()
    assert results.get() == 4
    process.join()
    assert process.exitcode == 0
    work(9)
""",
    "a pool of forked workers": """
with reenact.capture(sys.argv[1]) as run:
    work(1)
    with multiprocessing.get_context("fork").Pool(2) as pool:
        assert pool.map(child, range(20)) == [2 * number for number in range(20)]
    work(9)
""",
    "a fork beside busy threads": """
stop = threading.Event()
def busy():
    while not stop.is_set():
        work(0)
with reenact.capture(sys.argv[1]) as run:
    threads = [threading.Thread(target=busy) for _ in range(3)]
    for thread in threads:
        thread.start()
    for _ in range(20):
        if (pid := os.fork()) == 0:
            os._exit(0 if child(2) == 4 else 1)
        assert os.waitpid(pid, 0)[1] == 0
    stop.set()
    for thread in threads:
        thread.join()
""",
}


_UNTOLD = {"a child with a run of its own", "a pool of forked workers"}
"""Whose calls are recorded elsewhere, or as jobs."""


def run_program(path: Path, program: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", _START + program, str(path)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)


@pytest.mark.parametrize("name", _PROGRAMS)
def test_a_forked_child_leaves_the_capture_to_its_parent(tmp_path: Path, name: str):
    """The child works, is told once that it is not recorded, and the parent's capture is whole."""
    done = run_program(tmp_path / "run", _PROGRAMS[name])
    assert done.returncode == 0, done.stderr
    assert "forked" in done.stderr or "run of its own" in name
    reader = CaptureReader(tmp_path / "run")
    assert reader.manifest.status == "ok"
    said = [
        warning for warning in reader.manifest.warnings or () if "forked during the run made calls" in warning
    ]
    assert len(said) == (name not in _UNTOLD)
    assert len(events_in(tmp_path / "run")) == len(reader)
    asked = [event.data.args["number"] for event in reader.events() if hasattr(event.data, "args")]
    assert set(asked) <= {0, 1, 9}


_SPAWN = """
import multiprocessing, sys
import reenact
from tests.recorder import spawned

if __name__ == "__main__":
    with reenact.capture(sys.argv[1]) as run:
        spawned.work(1)
        context = multiprocessing.get_context("spawn")
        results = context.SimpleQueue()
        process = context.Process(target=spawned.child, args=(sys.argv[1], results))
        process.start()
        print(results.get())
        process.join()
        assert process.exitcode == 0
        spawned.work(9)
"""


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_a_spawned_child_starts_outside_the_run(tmp_path: Path, method: str):
    """It inherits nothing, and recording into the parent's directory is refused by name."""
    program = tmp_path / "agent.py"
    program.write_text(_SPAWN.replace('"spawn"', f'"{method}"'))
    done = subprocess.run(
        [sys.executable, str(program), str(tmp_path / "run")],
        capture_output=True,
        text=True,
        check=False,
        env={"PYTHONPATH": ":".join(sys.path)},
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    assert "holds a capture already (open); remove it or choose another directory" in done.stdout
    reader = CaptureReader(tmp_path / "run")
    assert (reader.manifest.status, reader.manifest.eventCount) == ("ok", 6)
    assert reader.manifest.warnings
    warning = reader.manifest.warnings[0]
    assert "agent.py:12 in <module>: running `'multiprocessing.Process(target=" in warning
    assert "a replay will refuse it" in warning


def test_the_parents_capture_replays_without_its_children(tmp_path: Path):
    """What a child did is not part of the run."""
    done = run_program(tmp_path / "run", _PROGRAMS["os.fork"])
    assert done.returncode == 0, done.stderr

    @reenact.tool(name="work")
    def work(number: int) -> int:
        raise AssertionError("went live")

    with reenact.replay(tmp_path / "run"):
        assert [work(1), work(9)] == [2, 18]

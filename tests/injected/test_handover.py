"""The folder between a command and its processes."""

import os
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor

from reenact.injected.handover import Handover, ToReplay
from reenact.injected.launch import handover_folder, route_through_gateway, run
from reenact.injected.process import hide


def test_no_first_lane_is_taken_twice(tmp_path):
    """Each chooses knowing what was taken before, and the next waits until it is settled."""
    settled = []

    def take(_):
        return Handover(tmp_path).take(lambda taken: str(len(taken)), settled.append)

    with ThreadPoolExecutor(8) as pool:
        taken = list(pool.map(take, range(40)))
    assert sorted(map(int, taken)) == list(range(40))
    assert settled == [str(number) for number in range(40)]


def test_a_command_goes_on_diverged_when_others_outlast_the_one_that_did(tmp_path):
    """Not while it may still end by itself, and not because of processes that reported nothing wrong."""
    handover = Handover(tmp_path)
    report = tmp_path / f"replayed-{os.getpid()}"
    report.write_text("{}")
    long_ago_s = time.time() - 60
    os.utime(report, (long_ago_s, long_ago_s))
    assert not handover.has_outlived_divergence(10)
    handover.note("diverged", "a difference")
    assert handover.has_outlived_divergence(10)
    assert not handover.has_outlived_divergence(600)


def test_a_command_that_is_of_no_use_any_more_is_ended():
    """As by anybody who asks it to end."""
    assert run(["sleep", "60"], os.environ, is_of_no_use=lambda: True) == 128 + 15


def test_no_base_url_is_written_to_the_folder(tmp_path, monkeypatch):
    """It may hold a password; it stays in the environment, where it was."""
    base = {"OPENAI_BASE_URL": "https://bob:hunter2@h.example/v1"}
    environ = route_through_gateway(base, "http://127.0.0.1:1")
    handover = Handover(tmp_path)
    handover.write_orders(ToReplay(path="run", gateway="http://127.0.0.1:1", policy="strict"))
    assert "hunter2" not in "".join(path.read_text() for path in tmp_path.iterdir())
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    assert os.environ["OPENAI_BASE_URL"].startswith("http://127.0.0.1:1/")
    monkeypatch.setenv("REENACT_MODE", "replay")
    hide()
    assert os.environ["OPENAI_BASE_URL"] == base["OPENAI_BASE_URL"]
    assert "REENACT_BEFORE" not in os.environ


def test_the_clock_says_when_a_run_began(tmp_path):
    """The times of files are by another clock, on a file server or where a program is given another date."""
    handover = Handover(tmp_path)
    before_s = time.time()
    handover.write_orders(ToReplay(path="run", gateway="http://127.0.0.1:1", policy="strict"))
    os.utime(tmp_path / "orders.json", (0, 0))
    assert before_s <= handover.began_s <= time.time()
    assert handover.file_began_s == 0


def test_what_a_killed_command_left_is_removed_by_the_next(tmp_path, monkeypatch):
    """A folder whose command still runs stays."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    code = "import os\nfrom reenact.injected.launch import handover_folder\nwith handover_folder():\n "
    kill = "os.kill(os.getpid(), 9)"
    environ = os.environ | {"TMPDIR": str(tmp_path)}
    subprocess.run([sys.executable, "-c", code + kill], env=environ, check=False)
    assert len(list(tmp_path.iterdir())) == 1
    with handover_folder() as first, handover_folder() as second:
        assert {path.name for path in tmp_path.iterdir()} == {first.folder.name, second.folder.name}
    assert list(tmp_path.iterdir()) == []


PIPED_AGENT = """
import os, sys, time
command = os.getppid()
sys.stdin.read()
open(sys.argv[1], "w").close()
while os.getppid() == command:
    time.sleep(0.05)
"""
PIPED_COMMAND = """
import os, sys
from pathlib import Path
from reenact.injected.launch import run

kept, has_read = map(Path, sys.argv[2:])


def look():
    if has_read.exists():
        print(kept.read_text(), kept.read_text(), flush=True)
        os.kill(os.getpid(), 9)
    return False


run([sys.executable, "-c", sys.argv[1], str(has_read)], os.environ, keep_input=kept, is_of_no_use=look)
"""


def test_what_comes_by_a_pipe_is_gone_with_its_command(tmp_path):
    """It may hold a password. The processes below read it as often as they like while the command lives."""
    kept = tmp_path / "input"
    words = [sys.executable, "-c", PIPED_COMMAND, PIPED_AGENT, str(kept), str(tmp_path / "has-read")]
    ended = subprocess.run(words, input="hunter2", capture_output=True, text=True, check=False, timeout=60)
    assert (ended.returncode, ended.stdout) == (-9, "hunter2 hunter2\n")
    assert not kept.exists()

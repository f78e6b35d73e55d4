"""Several processes of a run change its files: every call has its tree, whoever told the one before."""

import json

import reenact
from reenact.store.reader import CaptureReader
from reenact.workspace.history import WorkspaceHistory
from tests.cli.commands import PYTHON, run

AGENT = """
import fcntl
import random
import sys
import time
from pathlib import Path

import reenact


@reenact.tool
def put(name: str, text: str) -> dict[str, str]:
    Path(name).write_text(text) if text else Path(name).unlink(missing_ok=True)
    return {path.name: path.read_text() for path in Path().iterdir()}


def wait_for(name):
    while not Path("..", name).exists():
        time.sleep(0.01)


def take_turns(seed):
    chance = random.Random(seed)
    with open("../turn", "a") as turn:
        for _ in range(12):
            fcntl.flock(turn, fcntl.LOCK_EX)  # one call at a time, so that its files are its own
            put(chance.choice("xy"), chance.choice(["", "1", "2"]))
            fcntl.flock(turn, fcntl.LOCK_UN)


match sys.argv[1:]:
    case ["first"]:
        put("x", "1")
        Path("../first").touch()
        wait_for("put-back")
        put("y", "1")
    case ["second"]:
        wait_for("first")
        put("x", "2")
    case [seed]:
        take_turns(seed)
"""


def outcomes(path):
    """The results of the tool, by event."""
    events = [json.loads(line) for line in CaptureReader(path).lines()]
    return {event["seq"]: event["data"].get("result") for event in events if event["type"] == "tool_result"}


def files_at(path, seq):
    history = WorkspaceHistory(CaptureReader(path))
    return {
        entry.name.decode(): history.content(entry).decode()
        for entry in history.read_tree(history.tree_at(seq))
    }


def record(tmp_path, script):
    (tmp_path / "agent.py").write_text(AGENT)
    (tmp_path / "work").mkdir()
    words = ["--workspace", "--", "sh", "-c", script.replace("AGENT", f"{PYTHON} ../agent.py")]
    done = run("record", "-o", tmp_path / "a", *words, cwd=tmp_path / "work")
    assert done.returncode == 0, done.stderr
    return tmp_path / "a"


def test_files_that_are_put_back_are_told_by_who_had_told_them_before(tmp_path):
    """Another process told others meanwhile, and who put them back tells nothing: a shell."""
    script = "(AGENT second; printf 1 > x; touch ../put-back) & AGENT first; wait"
    path = record(tmp_path, script)
    found = [files_at(path, seq) for seq in outcomes(path)]
    assert found == [{"x": "1"}, {"x": "2"}, {"x": "1", "y": "1"}]
    calls = [json.loads(line) for line in CaptureReader(path).lines()]
    last = max(event["seq"] for event in calls if event["type"] == "tool_call")
    history = WorkspaceHistory(CaptureReader(path))
    assert history.tree_before(last) == history.state_at(min(outcomes(path))).tree


def test_processes_that_take_turns_tell_the_tree_after_every_call(tmp_path):
    """What each call saw when it came back is what a checkout at its end gives."""
    path = record(tmp_path, "for each in 1 2 3; do AGENT $each & done; AGENT 4; wait")
    seen = outcomes(path)
    assert len(seen) == 48
    assert {seq: files_at(path, seq) for seq in seen} == seen
    assert reenact.verify(path).findings == []

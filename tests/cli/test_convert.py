"""``reenact convert`` on the command line: where the output goes, and what is said of it."""

import json

import pytest

from tests.cli.commands import run
from tests.formats import GOLDEN

CURRENT = GOLDEN / "replay_log" / "current.jsonl"
LEGACY = GOLDEN / "replay_log" / "legacy.jsonl"


def test_stdout_has_the_result_and_stderr_the_losses(tmp_path):
    """A pipe gets nothing but the log."""
    done = run("convert", LEGACY, "--to", "replay-log", cwd=tmp_path)
    assert done.returncode == 0
    assert json.loads(done.stdout.splitlines()[0])["type"] == "ReplayHeader"
    assert "reenact: not in the replay-log, or filled in:" in done.stderr
    assert "  PlanStart (line 3): the current dialect has no such event\n" in done.stderr


def test_a_file_is_replaced_only_when_told_to(tmp_path):
    """The first is kept, and nothing half-written is left."""
    first = run("convert", CURRENT, "--to", "receipt", "-o", "out.json", cwd=tmp_path)
    text = (tmp_path / "out.json").read_bytes()
    again = run("convert", CURRENT, "--to", "trace", "-o", "out.json", cwd=tmp_path)
    assert (first.returncode, again.returncode) == (0, 3)
    assert again.stderr == "reenact: out.json: exists already; name another, or add --force\n"
    assert (tmp_path / "out.json").read_bytes() == text
    forced = run("convert", CURRENT, "--to", "trace", "-o", "out.json", "--force", cwd=tmp_path)
    assert (forced.returncode, (tmp_path / "out.json").read_bytes() == text) == (0, False)
    assert [path.name for path in tmp_path.iterdir()] == ["out.json"]


def test_json_lists_every_kind_of_loss(tmp_path):
    """With its count and the first place."""
    done = run("convert", LEGACY, "--to", "replay-log", "-o", "log.jsonl", "--json", cwd=tmp_path)
    report = json.loads(done.stdout)
    assert (done.returncode, report["to"], report["out"]) == (0, "replay-log", "log.jsonl")
    assert {
        "line": 3,
        "event": "PlanStart",
        "field": None,
        "reason": "the current dialect has no such event",
        "count": 1,
    } in report["losses"]


def test_a_log_that_breaks_off_leaves_no_output(tmp_path):
    """The target appears whole or not at all; the one message names the line."""
    log = tmp_path / "log.jsonl"
    log.write_bytes(CURRENT.read_bytes() + b"{half")
    done = run("convert", log, "--to", "replay-log-legacy", "-o", "out.jsonl", cwd=tmp_path)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "log.jsonl:9: not JSON" in done.stderr
    assert not (tmp_path / "out.jsonl").exists()
    lenient = run("convert", log, "--to", "replay-log", "--lenient", cwd=tmp_path)
    assert (lenient.returncode, lenient.stdout.encode()) == (0, CURRENT.read_bytes())
    assert "  unreadable line (line 9): not JSON" in lenient.stderr


WRONG = {
    "nothing there": (["nowhere", "--to", "trace"], 2, "nowhere: No such file or directory"),
    "no capture": ([".", "--to", "trace"], 2, "name a capture directory"),
    "no artifact": (["a.json", "--to", "trace"], 2, "a.json: is not an artifact that reenact knows"),
    "no JSON": (["a.txt", "--to", "trace"], 2, "a.txt: not JSON"),
    "no way": ([CURRENT, "--to", "actions"], 3, "a replay log cannot become actions"),
    "no target": ([CURRENT], 3, "Missing option '--to'"),
    "unknown target": ([CURRENT, "--to", "pdf"], 3, "'pdf' is not one of"),
    "a capture to stdout": ([CURRENT, "--to", "capture"], 3, "add -o DIR"),
    "two things to stdout": ([CURRENT, "--to", "trace", "--json"], 3, "add -o OUT"),
    "into a directory": ([CURRENT, "--to", "trace", "-o", ".", "--force"], 3, "name a file in it"),
    "below a file": ([CURRENT, "--to", "trace", "-o", "a.json/b"], 2, "a.json/b: cannot be written"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_input_gets_one_clear_line(name, tmp_path):
    """And the exit status that its kind has everywhere."""
    words, status, message = WRONG[name]
    (tmp_path / "a.json").write_text('{"x": 1}')
    (tmp_path / "a.txt").write_text("words")
    done = run("convert", *words, cwd=tmp_path)
    assert (done.returncode, done.stderr.count("\n"), done.stdout) == (status, 1, "")
    assert message in done.stderr

"""``reenact view``: what it takes, what it says, how it ends."""

import re

import pytest

from reenact.cli import main
from tests.formats import GOLDEN
from tests.viewer import recordings
from tests.viewer.conftest import Served

PUBLISHED = GOLDEN / "replay_log" / "current-published.jsonl"
FULL = GOLDEN / "replay_log" / "current.jsonl"
TRACE = next((GOLDEN / "trace").glob("*.json"))


def test_it_says_where_to_look_and_ends_well(tmp_path):
    """One line with the address; Ctrl-C is how one stops looking, not a failure."""
    recordings.long_run(tmp_path / "run", 1)
    served = Served(tmp_path)
    assert served.said == f"1 run at {served.url} (end with Ctrl-C)\n"
    assert served.end() == (0, "")


def test_a_published_log_becomes_a_page(tmp_path):
    """With every hash it has."""
    page = tmp_path / "page.html"
    assert main(["view", str(PUBLISHED), "--html", str(page)]) == 0
    text = page.read_text()
    assert text.startswith("<!doctype html>")
    for digest in re.findall(r"sha256:[0-9a-f]{64}", PUBLISHED.read_text()):
        assert digest in text


def test_a_run_is_published_before_it_becomes_a_page(tmp_path, capsys):
    """Sharing what is private is a decision."""
    recordings.hostile_run(tmp_path / "run")
    page = tmp_path / "page.html"
    assert main(["view", str(tmp_path / "run"), "--html", str(page)]) == 0
    assert "without what is private" in capsys.readouterr().out
    assert b"pwned" not in page.read_bytes()
    assert main(["view", str(tmp_path / "run"), "--html", str(page), "--full"]) == 0
    assert "with all that was recorded" in capsys.readouterr().out
    assert b"pwned" in page.read_bytes()


WRONG = {
    "nothing": ([], 3, "Missing argument"),
    "what is not there": (["{folder}/nowhere"], 2, "No such file or directory"),
    "a folder without runs": (["{folder}"], 2, "holds no run"),
    "a page of no run": (["{folder}", "--html", "x.html"], 2, "holds no run"),
    "a page of two": ([str(FULL), str(PUBLISHED), "--html", "x.html"], 3, "one run alone"),
    "a page of two runs in full": ([str(FULL), str(PUBLISHED), "--html", "x.html", "--full"], 3, "name one"),
    "a page of a trace": ([str(TRACE), "--html", "x.html"], 3, "with --full"),
    "a port that is none": (["{folder}", "--port", "70000"], 3, "70000"),
}


@pytest.mark.parametrize(("words", "status", "said"), WRONG.values(), ids=WRONG.keys())
def test_wrong_input_is_one_line(tmp_path, capsys, words, status, said):
    """With the place, the remedy and the exit status of all verbs."""
    assert main(["view", *(word.format(folder=tmp_path) for word in words)]) == status
    complaint = capsys.readouterr().err
    assert said in complaint
    assert complaint.count("\n") == 1


def test_a_port_in_use_is_named(tmp_path, capsys):
    """Asked for by number, another one would be a surprise."""
    recordings.long_run(tmp_path / "run", 1)
    served = Served(tmp_path)
    try:
        assert main(["view", str(tmp_path), "--no-open", "--port", str(served.port)]) == 3
        assert f"port {served.port}" in capsys.readouterr().err
    finally:
        served.end()

"""``reenact diff``: what two runs did differently, for people, machines and git."""

import json
import os
import re
import subprocess

import pytest

import reenact
from reenact.cli import main
from tests.analysis.recordings import ask, multiply, record, search
from tests.cli.commands import ENVIRONMENT, command, run

ESCAPE = "\x1b[2J"


@pytest.fixture
def runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.delenv("CI", raising=False)
    record(tmp_path / "a", "lamp", "desk")
    record(tmp_path / "b", "lamp", "chair", "shelf")
    return tmp_path


def test_the_same_run_is_the_same(runs, capsys):
    """Exit 0."""
    assert main(["diff", "a", "a"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("the same: a, a\n")
    assert out.endswith("0 changed, 0 added, 0 removed, 2 the same\n")


def test_the_first_difference_then_all_then_totals(runs, capsys):
    """Exit 1."""
    assert main(["diff", "a", "b"]) == 1
    out = re.sub(r"time .*", "time", capsys.readouterr().out)
    assert out.splitlines() == [
        "- a",
        "+ b",
        "",
        "first difference  event 4  tool search is changed: $.asked.arguments.query",
        "",
        '~      4       4  tool search(limit=2, query="chair")',
        '                  $.asked.arguments.query: "desk" → "chair"',
        '                  $.came.result.b[0]: "desk" → "chair"',
        '                  $.came.result.b[1]: "desk" → "chair"',
        '+              6  tool search(limit=2, query="shelf")',
        "",
        "                         A             B",
        "steps                    2             3",
        "time",
        "",
        "1 changed, 1 added, 0 removed, 1 the same",
    ]


def test_long_texts_are_shown_by_line(runs, capsys):
    """What is alike in them is left out."""
    for name, word in (("c", "two"), ("d", "2")):
        with reenact.capture(name, redact="none"):
            ask(f"one\n{word}\nthree")
    assert main(["diff", "c", "d"]) == 1
    out = capsys.readouterr().out
    assert "$.asked.messages[0].parts[0].text\n" in out
    assert "\n                    -two\n                    +2\n" in out


def test_json_is_one_object(runs, capsys):
    """With everything the text has."""
    assert main(["diff", "a", "b", "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert (found["left"], found["right"], found["equal"], found["first"]) == ("a", "b", False, 1)
    assert found["counts"] == {"same": 1, "changed": 1, "added": 1, "removed": 0}
    changed, added = found["changes"]
    assert changed["changes"][0] == {"path": "$.asked.arguments.query", "left": "desk", "right": "chair"}
    assert (added["row"]["mark"], added["row"]["right"]["seq"], "left" in added["row"]) == ("added", 6, False)
    assert found["totals"]["right"]["steps"] == 3


def test_strict_compares_chance(runs, capsys):
    """Which is expected to differ otherwise."""
    for name in ("c", "d"):
        with reenact.capture(name) as run:
            run.rng.random()
    assert main(["diff", "c", "d"]) == 0
    assert main(["diff", "--strict", "c", "d"]) == 1


@pytest.mark.parametrize("options", [[], ["--json"]])
def test_recorded_text_cannot_steer_the_terminal(runs, options, capsys):
    """Escape sequences are shown, not sent."""
    for name, text in (("c", "x"), ("d", f"{ESCAPE}\u202e\x9b\r\nnew\tline")):
        with reenact.capture(name, redact="none") as run:
            search(text)
            run.final_output = text
    main(["diff", "c", "d", *options])
    out = capsys.readouterr().out
    assert all(mark.isprintable() for mark in out.replace("\n", ""))
    assert "[2J" in out


def damaged(root):
    log = root / "c" / "events.jsonl"
    record(root / "c", "lamp")
    log.write_text(log.read_text().replace('"seq":2', '"seq":7'))


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (["a"], 3, "Missing argument 'B'"),
        (["a", "nothing"], 2, "nothing: No such file or directory"),
        (["a", "."], 2, ".: holds no run; "),
        (["c", "a"], 2, "c/events.jsonl:2: $.seq: expected 2, found 7"),
        (["notes.txt", "a"], 2, "notes.txt: not a run; name a capture"),
    ],
)
def test_wrong_input_is_one_line(runs, words, status, said, capsys):
    """Each with its exit status."""
    damaged(runs)
    (runs / "notes.txt").write_text("hello")
    assert main(["diff", *words]) == status
    captured = capsys.readouterr()
    assert (captured.out, captured.err.count("\n")) == ("", 1)
    assert said in captured.err


def test_git_can_use_it(runs):
    """For a file of a capture that changed, and for one that is new."""

    def git(*words):
        return subprocess.run(
            ["git", "-c", "user.name=Ada", "-c", "user.email=ada@example.org", *words],
            cwd=runs,
            env=ENVIRONMENT | {"COLUMNS": "100", "HOME": str(runs)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout

    git("init", "-q")
    git("add", "a")
    git("commit", "-qm", "first")
    (runs / "a" / "events.jsonl").write_bytes((runs / "b" / "events.jsonl").read_bytes())
    ours = " ".join(command("diff", '"$LOCAL"', '"$REMOTE"'))
    out = git("-c", f"difftool.reenact.cmd={ours}", "difftool", "-y", "-t", "reenact", "--", "a/events.jsonl")
    assert "1 changed, 1 added, 0 removed, 1 the same" in out
    git("add", "b")
    out = git(
        "-c",
        f"difftool.reenact.cmd={ours}",
        "difftool",
        "-y",
        "-t",
        "reenact",
        "--cached",
        "--",
        "b/events.jsonl",
    )
    assert "0 changed, 3 added, 0 removed, 0 the same" in out


def test_a_large_diff_shows_its_progress(runs):
    """On the terminal, and not in the output."""
    multiply(runs / "c", 1500)
    ours, theirs = os.openpty()
    done = subprocess.Popen(
        command("diff", "c", "c"),
        cwd=runs,
        stdout=subprocess.PIPE,
        stderr=theirs,
        env=ENVIRONMENT | {"TERM": "xterm-256color"},
        text=True,
    )
    os.close(theirs)
    out, _ = done.communicate(timeout=60)
    said = os.read(ours, 4096).decode()
    os.close(ours)
    assert "comparing" in said
    assert "comparing" not in out
    assert out.endswith("1,500 the same\n")


def test_a_long_text_shows_the_words_that_differ(tmp_path):
    """Not its first forty characters, which are the same."""
    beginning = "You are a helpful assistant that answers in full sentences. " * 5

    @reenact.tool
    def ask(prompt):
        return None

    for name, word in (("a", "briefly"), ("b", "at length")):
        with reenact.capture(tmp_path / name):
            ask(f"{beginning}Answer {word}, please.")
    done = run("diff", "a", "b", cwd=tmp_path)
    assert done.returncode == 1
    assert "in full sentences. Answer [-briefly-]{+at length+}, please." in done.stdout

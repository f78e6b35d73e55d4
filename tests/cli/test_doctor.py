"""``reenact doctor``: what differs is found, gets rules and a proof, or a reason why it cannot."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest

from reenact.testing import echo
from tests.cli.commands import PYTHON, run
from tests.cli.volatile_agents import CHATTING, COUNTING, model

AGENT = [PYTHON, "agent.py"]


def echoing() -> Any:
    return echo(lambda request: f"You said {request.user_text}")


def test_the_doctor_makes_an_agent_replayable(tmp_path: Path) -> None:
    """Sources are listed with examples and calls, rules are written, and later captures replay under them."""
    (tmp_path / "agent.py").write_text(CHATTING)
    (tmp_path / "reenact.toml").write_text("[test]\nassertions = []  # ours")
    with model(echoing()) as address:
        done = run("doctor", "-o", "runs/d", "--", *AGENT, cwd=tmp_path, MODEL=address)
        assert (done.returncode, done.stderr.count("You said And more")) == (0, 4), done.stderr
        run("record", "-o", "runs/later", "--", *AGENT, cwd=tmp_path, MODEL=address)
    report = done.stdout
    assert report.startswith(
        "volatile; a rule lets it differ:\n"
        "  llm $.body.messages[*].content\n"
        "    seen    in 2 of 2 calls, first in event 3\n"
    )
    assert "    rule    llm $.body.messages[*].content =~ Started at \\d{10,}(?:\\.\\d+)?\n" in report
    assert "  llm $.body.user\n" in report
    assert report.endswith(
        f"wrote 1 rule to {tmp_path}/reenact.toml\n"
        "proved: runs/d/2 replays strictly, 3 calls answered from the capture\n"
    )
    text = (tmp_path / "reenact.toml").read_text()
    assert text.startswith("[test]\nassertions = []  # ours\n\n[[volatile]]\n")
    assert len(tomllib.loads(text)["volatile"]) == 1
    replayed = run("replay", "runs/later", "--", *AGENT, cwd=tmp_path, MODEL=address)
    assert (replayed.returncode, replayed.stdout) == (0, "You said And more\n"), replayed.stderr


def test_another_working_directory_needs_no_rule(tmp_path: Path) -> None:
    """What two runs in one place cannot show is a folder of the run's own."""
    (tmp_path / "there").mkdir()
    for folder in (tmp_path, tmp_path / "there"):
        (folder / "agent.py").write_text(CHATTING)
    with model(echoing()) as address:
        assert run("doctor", "-o", "d", "--", *AGENT, cwd=tmp_path, MODEL=address).returncode == 0
    done = run("replay", "../d/2", "--", *AGENT, cwd=tmp_path / "there", MODEL=address)
    assert done.returncode == 0, done.stderr
    assert "volatile?" not in done.stderr


def test_what_no_rule_can_cover_is_said(tmp_path: Path) -> None:
    """Another number of calls: exit 1 and the reason, in words and as JSON."""
    (tmp_path / "agent.py").write_text(COUNTING)
    with model(echoing()) as address:
        done = run("doctor", "--json", "-o", "d", "--", *AGENT, cwd=tmp_path, MODEL=address)
    assert done.returncode == 1
    found = json.loads(done.stdout)
    assert found["notInEveryRun"] == ["event 4: llm was called by only the later run"]
    assert found["uncovered"][0].startswith("event_unexpected: a model was called, but the recording")
    assert found["proof"]["verdict"] == "diverged"
    assert found["written"]["rules"] == []
    assert not (tmp_path / "reenact.toml").exists()


def test_rules_that_do_not_suffice_are_shown_and_not_written(tmp_path: Path) -> None:
    """The project's file is left as it was, and the report says so with the rules to paste."""
    (tmp_path / "agent.py").write_text(CHATTING + COUNTING)
    (tmp_path / "reenact.toml").write_text("[test]\n")
    with model(echoing()) as address:
        done = run("doctor", "-o", "d", "--redact", "none", "--", *AGENT, cwd=tmp_path, MODEL=address)
    assert done.returncode == 1
    assert (tmp_path / "reenact.toml").read_text() == "[test]\n"
    told, _, rules = done.stdout.partition(
        f"nothing was written to {tmp_path}/reenact.toml, because these rules are not enough:\n"
    )
    assert "\nwrote " not in told
    assert "  no rule covers: event_" in told
    assert tomllib.loads(rules)["volatile"]
    assert json.loads((tmp_path / "d/1/manifest.json").read_text())["redaction"]["profile"] == "none"


def test_nothing_differs(tmp_path: Path) -> None:
    """A steady agent is told to be one, and nothing is written."""
    code = "import reenact\nprint(reenact.tool(name='a')(lambda: 1)())\n"
    (tmp_path / "agent.py").write_text(code)
    done = run("doctor", "-o", "d", "--runs", "3", "--", *AGENT, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (
        0,
        "nothing differs between the runs\nproved: d/3 replays strictly, 1 call answered from the capture\n",
    )
    assert sorted(path.name for path in tmp_path.iterdir()) == ["agent.py", "d"]


def test_what_the_recording_holds_needs_no_rule(tmp_path: Path) -> None:
    """The agent's own clock and chance differ in each run and come again in a replay."""
    (tmp_path / "agent.py").write_text(
        "import reenact, uuid\nreenact.tool(name='a')(lambda key: 1)(str(uuid.uuid4()))\n"
    )
    done = run("doctor", "-o", "d", "--", *AGENT, cwd=tmp_path)
    assert done.returncode == 0
    assert done.stdout.startswith("differs, but a replay takes it from the recording:\n  tool a $.key\n")
    assert not (tmp_path / "reenact.toml").exists()


KILLED = {
    "terminated": ("SIGTERM", 1, "reenact: d/1: the command was ended by signal 15; nothing is diagnosed\n"),
    "interrupted": ("SIGINT", 130, ""),
}


@pytest.mark.parametrize(("signal", "status", "message"), KILLED.values(), ids=KILLED)
def test_a_command_that_is_stopped_is_not_started_again(signal, status, message, tmp_path) -> None:
    """Whoever stops it wants no further run."""
    (tmp_path / "agent.py").write_text(
        "import os, reenact, signal\nreenact.tool(name='a')(lambda: 1)()\n"
        f"signal.signal(signal.{signal}, signal.SIG_DFL)\nos.kill(os.getpid(), signal.{signal})\n"
    )
    done = run("doctor", "-o", "d", "--", *AGENT, cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (status, "", message)
    assert [path.name for path in (tmp_path / "d").iterdir()] == ["1"]


WRONG = {
    "nothing to record": (
        ["-o", "d", "--", "true"],
        1,
        "d/1: nothing was recorded: the command started no Python",
    ),
    "one run": (["--runs", "1", "--", "true"], 3, "Invalid value for '--runs'"),
    "no command": ([], 3, "Missing argument '[--] COMMAND...'"),
    "a folder in use": (["-o", "full", "--", "touch", "ran"], 2, "full: "),
}


@pytest.mark.parametrize(("words", "status", "message"), WRONG.values(), ids=WRONG)
def test_wrong_usage_is_one_line(words, status, message, tmp_path) -> None:
    """Each with its exit status."""
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "x").touch()
    done = run("doctor", *words, cwd=tmp_path)
    assert done.returncode == status
    assert done.stderr.startswith(f"reenact: {message}")
    assert (done.stdout, done.stderr.count("\n")) == ("", 1)
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("verb", [["doctor", "--"], ["replay", "d", "--"]])
def test_a_bad_project_file_is_told_before_anything_runs(verb, tmp_path) -> None:
    """Exit 2 and the place."""
    (tmp_path / "agent.py").write_text("import reenact\nreenact.tool(name='a')(lambda: 1)()\n")
    run("record", "-o", "d", "--", *AGENT, cwd=tmp_path)
    (tmp_path / "reenact.toml").write_text("[[volatile]]\npath = 'a'\n")
    done = run(*verb, "touch", "ran", cwd=tmp_path)
    assert done.returncode == 2
    assert (
        done.stderr
        == f"reenact: {tmp_path}/reenact.toml: $.volatile[0]: a path begins with $, not with 'a'\n"
    )
    assert not (tmp_path / "ran").exists()

"""A run replayed in another folder and under another home: paths below its own folders mean the same."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import reenact
from tests.replayer.test_renaming import ask


@reenact.tool
def locate(name: str) -> str:
    """Answers with a path of the machine that it runs on."""
    return f"{Path.cwd()}/{name}"


@pytest.fixture
def twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., reenact.ReplayRun]:
    """Run an agent where it is recorded, then elsewhere, under another home."""

    def run(agent: Callable[[], object], then: Callable[[], object] | None = None) -> reenact.ReplayRun:
        capture = tmp_path / "capture"
        for place, mode in (("here", reenact.capture), ("far/away", reenact.replay)):
            (tmp_path / place / "home").mkdir(parents=True)
            (tmp_path / place / "work").mkdir()
            monkeypatch.setenv("HOME", str(tmp_path / place / "home"))
            monkeypatch.chdir(tmp_path / place / "work")
            with mode(capture) as opened:
                (then or agent)() if mode is reenact.replay else agent()
        return opened

    return run


def test_a_path_below_the_working_folder_is_the_same_in_another(twice):
    """Wherever it stands in a request; the receipt says what was taken for what."""
    run = twice(lambda: ask(f"Look at {Path.cwd()}/notes/today.txt (in {Path.cwd()})."))
    moved = [(each.recorded, each.live) for each in run.receipt.renamed]
    assert moved == [(str(Path.cwd()).replace("/far/away/", "/here/"), str(Path.cwd()))]


def test_an_address_of_a_file_is_one_of_its_path(twice):
    twice(lambda: ask(f"Open file://{Path.cwd()}/notes.txt"))


def test_a_path_below_the_home_is_the_same_below_another(twice):
    twice(lambda: ask(f"Settings are in {os.path.expanduser('~')}/.config/agent.toml"))


def test_a_program_is_given_paths_of_the_place_it_runs_in(twice):
    """As a tool that writes a script and runs it does."""

    def agent() -> object:
        Path("code.py").write_text("print(6 * 7)")
        return subprocess.run(
            [sys.executable, str(Path("code.py").resolve()), f"--log={Path.cwd()}/log"],
            capture_output=True,
            text=True,
            check=True,
        ).stdout

    twice(agent)


def test_an_answer_that_names_the_recorded_folder_names_the_live_one(twice):
    """An agent that opens what it is told would otherwise leave the folder it was started in."""
    told = []
    twice(lambda: told.append(locate("notes.txt")))
    assert told[0].endswith("/here/work/notes.txt")
    assert told[1] == f"{Path.cwd()}/notes.txt"


def test_what_follows_from_such_an_answer_is_the_same_call(twice):
    """Also when the request has the folder from nowhere else."""
    twice(lambda: ask(f"Read {locate('notes.txt')}"))


@pytest.mark.parametrize(
    "other",
    [
        "{cwd}er/notes.txt",
        "{cwd}.old/notes.txt",
        "{home}/notes.txt",
        "/etc/notes.txt",
        "{cwd}/other.txt",
        "{cwd}/notes.txt and {home}",
        "\ue000/notes.txt",
    ],
)
def test_another_path_is_a_difference(twice, other):
    """Beside, elsewhere, or below another of the run's folders."""
    own = {"cwd": lambda: str(Path.cwd()), "home": lambda: os.path.expanduser("~")}
    with pytest.raises(reenact.Diverged):
        twice(
            lambda: ask(f"Look at {Path.cwd()}/notes.txt"),
            lambda: ask("Look at " + other.format(**{name: find() for name, find in own.items()})),
        )


def test_the_difference_is_told_with_the_paths_as_they_are(twice):
    with pytest.raises(reenact.Diverged, match=r"one\.txt") as raised:
        twice(lambda: ask(f"In {Path.cwd()}/one.txt"), lambda: ask(f"In {Path.cwd()}/two.txt"))
    assert "\ue000" not in str(raised.value)


def test_a_capture_does_not_tell_where_it_was_made(twice, tmp_path):
    """It has only salted digests of the folders."""
    twice(lambda: ask("Hello"))
    events = (tmp_path / "capture" / "events.jsonl").read_text()
    assert str(tmp_path) not in events
    places = json.loads(events.splitlines()[0])["data"]["places"]
    assert set(places) == {"cwd", "home", "python", "tmp"}

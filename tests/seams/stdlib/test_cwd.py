"""The working folder: the agent's changes of it are recorded, really made in replay, and must be the same."""

from __future__ import annotations

import contextlib
import json
import os
from contextlib import ExitStack, chdir
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

import reenact
from reenact.seams.stdlib import cwd


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "project" / "sub" / "deep").mkdir(parents=True)
    (tmp_path / "project" / "other").mkdir()
    (tmp_path / "beside").mkdir()
    monkeypatch.chdir(tmp_path / "project")


def changes(path: str | Path) -> list[dict[str, Any]]:
    events = [json.loads(line) for line in Path(path, "events.jsonl").read_text().splitlines()]
    return [event["data"] for event in events if event["type"] == "state_mutation"]


def go_around() -> Path:
    """Every way to change the folder, from where it begins and back."""
    start = Path.cwd()
    os.chdir("sub")
    folder = os.open("deep", os.O_RDONLY)
    os.fchdir(folder)
    os.close(folder)
    with contextlib.chdir(start), ExitStack() as stack:
        stack.enter_context(chdir("other"))
    found = Path.cwd()
    with pytest.raises(FileNotFoundError):
        os.chdir("nowhere")
    os.chdir(start / "..")
    os.chdir(start)
    return found.relative_to(start)


AROUND = ["sub", "sub/deep", ".", "other", ".", "sub/deep", "..", "."]


def test_changes_are_told_and_repeated(tmp_path: Path) -> None:
    """Relative to where the run began; a failed one is none, and in replay they really happen."""
    run = tmp_path / "run"
    with reenact.capture(run):
        recorded = go_around()
    assert [(data["type"], data["path"]) for data in changes(run)] == [("cwd_change", at) for at in AROUND]
    assert str(tmp_path) not in (run / "events.jsonl").read_text()
    with reenact.replay(run):
        assert go_around() == recorded == Path("sub/deep")


def test_a_replay_may_begin_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What counts is the way, not where the project lies."""
    with reenact.capture(tmp_path / "run"):
        go_around()
    clone = tmp_path / "beside" / "clone"
    (tmp_path / "project").rename(clone)
    monkeypatch.chdir(clone)
    with reenact.replay(tmp_path / "run"):
        go_around()


def test_another_way_is_a_divergence(tmp_path: Path) -> None:
    """With both places."""
    with reenact.capture(tmp_path / "run"):
        os.chdir("sub")
        os.chdir("..")
    with pytest.raises(reenact.Diverged) as caught, reenact.replay(tmp_path / "run"):
        os.chdir("other")
    divergence = caught.value.divergence
    assert (divergence.json_path, divergence.expected["data"]["path"]) == ("$.data.path", "sub")
    assert divergence.observed.data["path"] == "other"


def test_a_change_that_is_not_made_is_missing(tmp_path: Path) -> None:
    """As any recorded event that does not come."""
    with reenact.capture(tmp_path / "run"), contextlib.chdir("sub"):
        pass
    with (
        pytest.raises(reenact.Diverged, match=r"a state change \(cwd_change sub\) was recorded"),
        reenact.replay(tmp_path / "run"),
    ):
        pass


def test_a_capture_that_does_not_record_it_says_nothing_of_it(tmp_path: Path) -> None:
    """Older captures do not, nor does one with other sources; libraries and fakes are left alone."""
    with reenact.capture(tmp_path / "run", sources=["time"]):
        go_around()
    with reenact.capture(tmp_path / "fake"), mock.patch("os.chdir") as fake:
        os.chdir("nowhere")
    fake.assert_called_once_with("nowhere")
    assert changes(tmp_path / "run") == changes(tmp_path / "fake") == []
    with reenact.replay(tmp_path / "run"):
        os.chdir("sub")


def test_a_capture_at_a_relative_path_stays_where_it_is(tmp_path: Path) -> None:
    """However the folder changes, blobs and manifest included."""

    @reenact.tool
    def large() -> str:
        return "x" * 100_000

    with reenact.capture("run"), contextlib.chdir("sub"):
        large()
    assert sorted(each.name for each in Path("run").iterdir()) == [
        "blobs",
        "events.jsonl",
        "manifest.json",
        "transcript.md",
    ]
    assert not list(Path("sub").glob("run*"))
    with reenact.replay("run"), contextlib.chdir("sub"):
        large()


TOLD = {
    "below": ("/home/ann/project/src", "src"),
    "itself": ("/home/ann/project", "."),
    "above": ("/home/ann", ".."),
    "beside": ("/home/ann/lib", "../lib"),
    "far away": ("/opt/data", "/opt/data"),
}


@pytest.mark.parametrize(("folder", "told"), TOLD.values(), ids=TOLD)
def test_no_home_folder_is_told(folder: str, told: str) -> None:
    """Whoever's it is."""
    assert cwd.tell_folder(Path(folder), Path("/home/ann/project")) == told


def test_the_own_home_is_told_as_such(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also from a folder that has nothing to do with it."""
    monkeypatch.setenv("HOME", "/home/ann")
    assert cwd.tell_folder(Path("/home/ann/notes"), Path("/srv/app")) == "~/notes"

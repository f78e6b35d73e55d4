"""Files that git keeps (``--workspace-base git``): shown wherever their repository is found."""

import json
import shutil
import subprocess

import pytest

import reenact
from reenact.workspace.files import compare_ends, list_moments, read_moment
from tests.cli.commands import PYTHON, run

AGENT = """
import os
import subprocess
import sys
from pathlib import Path

import reenact


@reenact.tool
def look() -> int:
    return 1


@reenact.tool
def change_mode() -> None:
    Path("tool.sh").chmod(0o755)


look()
file = os.open("kept.txt", os.O_WRONLY | os.O_TRUNC)  # nobody but the tree tells of this
os.write(file, f"first line\\n{sys.argv[1]}\\n".encode())
os.close(file)
change_mode()
look()
subprocess.run(["sh", "-c", "chmod 700 other.sh"], check=True)
print(Path("tool.sh").read_text(), end="")
"""


def git(folder, *words):
    identity = ["-c", "user.email=a@b", "-c", "user.name=n"]
    subprocess.run(["git", *identity, *words], cwd=folder, check=True, capture_output=True)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A repository, *work*, and beside it a run that *changed* a committed file, and one that did not."""
    folder = tmp_path_factory.mktemp("git")
    work = folder / "work"
    work.mkdir()
    (work / "kept.txt").write_text("first line\nas committed\n")
    (work / "tool.sh").write_text("echo tool\n")
    (work / "other.sh").write_text("echo other\n")
    git(work, "init", "-q")
    git(work, "add", "-A")
    git(work, "commit", "-qm", "x")
    (folder / "agent.py").write_text(AGENT)
    for name, word in (("changed", "changed"), ("same", "as committed")):
        options = ["-o", folder / name, "--workspace", "--workspace-base", "git", "--"]
        done = run("record", *options, PYTHON, folder / "agent.py", word, cwd=work)
        assert done.returncode == 0, done.stderr
        git(work, "checkout", "-q", "--", ".")
    return folder


CHANGED = ["@@ -1,2 +1,2 @@", " first line", "-as committed", "+changed"]
MISSING = "is only kept by git"
REMEDY = "name the repository with --repository DIR, or run this inside it"


def diffs(changes):
    return [change.diff for change in changes]


def test_what_changed_in_a_committed_file_is_shown_within_the_repository(folder, monkeypatch):
    """By every verb; a blob of git's was never in the capture."""
    monkeypatch.chdir(folder / "work")
    assert CHANGED in diffs(reenact.files(folder / "changed", diff="1..").changes)
    moments = list_moments(folder / "changed")
    first = next(number for number, moment in enumerate(moments) if moment.changes)
    assert CHANGED in diffs(read_moment(folder / "changed", first).changes)
    assert CHANGED in diffs(compare_ends(folder / "same", folder / "changed"))
    done = run("show", folder / "changed", "--at", moments[first].seq, cwd=folder / "work")
    assert json.loads(done.stdout)["files"] == ["changed kept.txt", *CHANGED]


def test_the_repository_is_named_or_found_around_the_capture(folder, tmp_path, monkeypatch):
    """A capture that is kept in its repository needs no word, wherever one is."""
    monkeypatch.chdir(tmp_path)
    report = reenact.files(folder / "changed", diff="1..", repository=folder / "work")
    assert CHANGED in diffs(report.changes)
    kept = shutil.copytree(folder / "changed", folder / "work" / "captures" / "changed")
    assert CHANGED in diffs(reenact.files(kept, diff="1..").changes)
    shutil.rmtree(kept.parent)


@pytest.mark.parametrize("is_named", [True, False])
def test_a_replay_shows_the_committed_side_of_what_differs(folder, tmp_path, is_named):
    """In the process of the agent, in the midst of its run, where nothing else may be started."""
    options = ["--workspace", "--receipt", tmp_path / "receipt.json"]
    options += ["--repository", folder / "work"] if is_named else []
    words = [PYTHON, folder / "agent.py", "changed"]
    where = tmp_path if is_named else folder / "work"
    done = run("replay", folder / "same", *options, "--", *words, cwd=where)
    assert done.returncode == 1, done.stderr
    assert all(line in done.stderr for line in CHANGED), done.stderr
    assert json.loads((tmp_path / "receipt.json").read_text())["liveCallsRefused"] == []


def test_a_tool_that_changed_the_mode_of_a_committed_file_is_answered(folder, tmp_path):
    """What it did is done in its place, with the content that git has; by forks and updates, too."""
    words = ["--repository", folder / "work", "--", PYTHON, folder / "agent.py", "changed"]
    for verb in (
        ["replay", folder / "changed", "--workspace"],
        ["fork", folder / "changed", "--at", 2, "-o", tmp_path / "f", "--workspace"],
        ["update", folder / "changed"],
    ):
        done = run(*verb, *words, cwd=tmp_path)
        assert (done.returncode, done.stdout) == (0, "echo tool\n"), done.stderr


def test_without_the_repository_that_is_said_and_the_rest_is_shown(folder, tmp_path, monkeypatch):
    """One line in the place of the diff, with the remedy; only who needs the content fails."""
    monkeypatch.chdir(tmp_path)
    shown = diffs(reenact.files(folder / "changed", diff="1..").changes)
    assert ["mode 644 → 755"] in shown
    assert any(len(lines) == 1 and MISSING in lines[0] and REMEDY in lines[0] for lines in shown)
    with pytest.raises(reenact.ReenactError, match=rf"^kept\.txt: {MISSING}.*{REMEDY}$"):
        reenact.checkout(folder / "changed", tmp_path / "out", at=1)
    assert not (tmp_path / "out").exists()


def test_nothing_is_fetched_for_a_diff(folder, tmp_path, monkeypatch):
    """Of a partial clone git would ask the repository it was cloned from, which may be far away."""
    git(folder / "work", "config", "uploadpack.allowFilter", "true")
    source = f"file://{folder / 'work'}"
    git(tmp_path, "clone", "-q", "--no-checkout", "--filter=blob:none", source, "clone")
    monkeypatch.chdir(tmp_path / "clone")
    shown = diffs(reenact.files(folder / "changed", diff="1..").changes)
    assert any(MISSING in line for lines in shown for line in lines)

"""Captures with files updated: calls and trees together, in one step."""

import json
import shutil
from pathlib import Path

import pytest

import reenact
from reenact.run import update
from reenact.store.reader import CaptureReader
from reenact.testing import Reply, ScriptedProvider, ToolCall
from tests.cli.commands import AGENTS, PYTHON, run

AGENT = """
import subprocess
from pathlib import Path

import reenact


@reenact.tool
def write(name: str, text: str) -> str:
    Path("ran").mkdir(exist_ok=True)
    Path(name).write_text(text)
    return f"{Path.cwd()}/{name}"


write("a.txt", "a")
write("b.txt", "b")
subprocess.run(["sh", "-c", "cat *.txt > all; rm start"], check=True)
print(Path("all").read_text())
"""


def files(path, at=None):
    return {file.path: file for file in reenact.files(path, at=at).files}


def content(path, name, tmp_path):
    folder = tmp_path / f"at-{len(list(tmp_path.iterdir()))}"
    reenact.checkout(path, folder)
    return (folder / name).read_text()


def bytes_of(path):
    return {str(file.relative_to(path)): file.read_bytes() for file in path.rglob("*") if file.is_file()}


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    folder = tmp_path_factory.mktemp("recorded")
    (folder / "agent.py").write_text(AGENT)
    (folder / "work").mkdir()
    (folder / "work/start").write_text("start")
    words = ("record", "-o", folder / "a", "--workspace", "--", PYTHON, folder / "agent.py")
    done = run(*words, cwd=folder / "work")
    assert (done.returncode, done.stdout) == (0, "ab\n"), done.stderr
    return folder / "a"


@pytest.fixture
def copy(recorded, tmp_path):
    """A copy of the capture that may be changed."""
    return Path(shutil.copytree(recorded, tmp_path / "a"))


def updated(copy, text, tmp_path):
    (tmp_path / "agent.py").write_text(text)
    return run("update", copy, "--", PYTHON, tmp_path / "agent.py", cwd=tmp_path)


def test_an_update_without_a_difference_changes_nothing(copy, tmp_path):
    """Not a byte, and nothing is run."""
    before = bytes_of(copy)
    done = updated(copy, AGENT, tmp_path)
    assert done.returncode == 0, done.stderr
    assert "unchanged" in done.stderr
    assert bytes_of(copy) == before


def test_files_are_updated_with_the_calls(copy, tmp_path):
    """Calls as before are answered, others made; a program among other files is run again."""
    done = updated(copy, AGENT.replace('"b.txt", "b"', '"c.txt", "c"'), tmp_path)
    assert (done.returncode, done.stdout) == (0, "ac\n"), done.stderr
    assert "updated" in done.stderr
    assert reenact.verify(copy).findings == []
    assert files(copy).keys() == {"a.txt", "all", "c.txt", "ran/"}
    assert content(copy, "all", tmp_path) == "ac"
    results = [
        event["seq"]
        for event in map(json.loads, CaptureReader(copy).lines())
        if event["type"] == "tool_result"
    ]
    assert [sorted(files(copy, at)) for at in results] == [
        ["a.txt", "ran/", "start"],
        ["a.txt", "c.txt", "ran/", "start"],
    ]
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    words = ("replay", copy, "--workspace", "--", PYTHON, tmp_path / "agent.py")
    done = run(*words, cwd=elsewhere)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_command_that_fails_leaves_the_capture_as_it_was(copy, tmp_path):
    """Files included."""
    before = bytes_of(copy)
    text = AGENT.replace('"b.txt", "b"', '"c.txt", "c"') + "raise SystemExit(3)\n"
    done = updated(copy, text, tmp_path)
    assert done.returncode == 3, done.stderr
    assert "not updated" in done.stderr
    assert bytes_of(copy) == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "agent.py"]


def bash(command):
    return Reply(tool_calls=[ToolCall("bash", {"command": command})])


def test_an_agent_in_another_language_is_updated_among_its_files(tmp_path):
    """Its shell really runs, and what that did is recorded with what is new."""
    work = tmp_path / "work"
    work.mkdir()
    coding = [PYTHON, "-I", str(AGENTS / "coding.py")]
    script = [bash("echo one > a; pwd"), Reply("Done."), bash("echo two > b"), Reply("Done again.")]
    with ScriptedProvider(script) as provider:
        done = run(
            "record", "-o", tmp_path / "a", "--workspace", "--", *coding, "Work",
            cwd=work, ANTHROPIC_BASE_URL=provider.base_url("anthropic"),
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        done = run("update", tmp_path / "a", "--", *coding, "Work", cwd=tmp_path)
        assert (done.returncode, done.stdout) == (0, "Done.\n"), done.stderr
        assert "unchanged" in done.stderr
        done = run("update", tmp_path / "a", "--", *coding, "Work hard", cwd=tmp_path)
        assert (done.returncode, done.stdout) == (0, "Done again.\n"), done.stderr
    assert files(tmp_path / "a").keys() == {"b"}
    assert reenact.verify(tmp_path / "a").findings == []
    done = run("replay", tmp_path / "a", "--workspace", "--", *coding, "Work hard", cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr


@reenact.tool
def save(folder: str, name: str) -> str:
    Path(folder, name).write_text(name)
    return f"{folder}/{name}"


def test_a_block_is_updated_in_the_folder_that_is_given(tmp_path):
    """Without one, a capture with files is refused."""
    work, again = tmp_path / "work", tmp_path / "again"
    work.mkdir()
    with reenact.capture(tmp_path / "a", workspace=work):
        save(str(work), "one")
    with pytest.raises(reenact.UsageError, match="has files; name the folder in which the run works"):
        update(tmp_path / "a")
    reenact.checkout(tmp_path / "a", again, at=1)
    with update(tmp_path / "a", workspace=again) as updating:
        save(str(again), "one")
        save(str(again), "two")
    updating.accept()
    assert files(tmp_path / "a").keys() == {"one", "two"}
    assert reenact.verify(tmp_path / "a").findings == []
    third = tmp_path / "third"
    reenact.checkout(tmp_path / "a", third, at=1)
    with reenact.replay(tmp_path / "a", workspace=third) as replayed:
        save(str(third), "one")
        save(str(third), "two")
    assert replayed.receipt.verdict == "reproduced"

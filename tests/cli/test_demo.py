"""The demo tells the whole story, and every part of it is true."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from reenact.check.integrity.capture import check_capture
from reenact.cli import main
from reenact.testing import support_agent


@pytest.fixture
def story(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("COLUMNS", "200")
    assert main(["demo", "-o", str(tmp_path / "run")]) == 0
    return capsys.readouterr().out


def test_the_demo_records_replays_breaks_and_verifies(story: str, tmp_path: Path) -> None:
    """Four chapters, each with its proof, and a capture that stays."""
    for part in (
        "Your book is in Rotterdam and arrives on Thursday.",
        "the same answer",
        "verdict reproduced, 0 live calls tried",
        'event 4: tool find_order differs (A became a) at $.order_id: expected "A-1042"',
        "support_agent.py:",
        "every event, link and digest holds",
        f"reenact show {tmp_path / 'run'}",
    ):
        assert part in story
    assert check_capture(tmp_path / "run").findings == []


def test_the_demo_refuses_a_used_directory(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing is overwritten; one line says what is there."""
    (tmp_path / "notes.txt").write_text("mine")
    assert main(["demo", "-o", str(tmp_path)]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_the_demo_needs_no_sdk(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A plain install tells the same story, over HTTP."""
    monkeypatch.setattr(support_agent, "find_spec", lambda name: None)
    assert main(["demo", "-o", str(tmp_path / "run")]) == 0
    story = capsys.readouterr().out
    assert "over HTTP" in story
    assert "the same answer" in story
    assert check_capture(tmp_path / "run").findings == []


def test_the_printed_commands_can_be_pasted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whole, like the paths of code, however narrow the terminal, also without ``reenact`` in the path."""
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    monkeypatch.setattr("sys.argv", ["pytest"])
    assert main(["demo", "-o", str(tmp_path / "a run")]) == 0
    story = capsys.readouterr().out
    assert f"{support_agent.__file__}:" in story
    [line] = [line for line in story.splitlines() if " verify " in line]
    assert line.strip() == f"{sys.executable} -m reenact verify '{tmp_path}/a run'"
    assert subprocess.run(["sh", "-c", line], capture_output=True, check=False).returncode == 0


def test_under_uvx_the_printed_commands_name_the_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The user's shell does not find ``reenact``, although this process does."""
    script = Path(sys.executable).with_name("reenact")
    monkeypatch.setenv("PATH", f"{script.parent}:/usr/bin:/bin")
    monkeypatch.setenv("UV", "/usr/bin/uv")
    monkeypatch.setattr("sys.argv", [str(script)])
    monkeypatch.chdir(tmp_path)
    assert main(["demo", "-o", "run"]) == 0
    [line] = [line for line in capsys.readouterr().out.splitlines() if " verify " in line]
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    assert subprocess.run(["sh", "-c", line], capture_output=True, check=False).returncode == 0

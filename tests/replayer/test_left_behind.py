"""A run that is replayed where the recorded one has left its files: the divergence names them."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import reenact
from tests.cli.commands import PYTHON, run
from tests.twice import captured


@reenact.tool
def tell(**arguments: Any) -> str:
    return "told"


def remember_in_database(run: reenact.Run) -> None:
    """Tells how often it was called in this folder."""
    with closing(sqlite3.connect("session.db")) as database, database:
        database.execute("CREATE TABLE IF NOT EXISTS turns (text)")
        database.execute("INSERT INTO turns VALUES ('x')")
        tell(turns=database.execute("SELECT count(*) FROM turns").fetchone()[0])


def remember_in_file(run: reenact.Run) -> None:
    path = Path("cache") / "turns.json"
    path.parent.mkdir(exist_ok=True)
    turns = json.loads(path.read_text()) + 1 if path.exists() else 1
    path.write_text(json.dumps(turns))
    tell(turns=turns)


AGENTS = {"session.db": remember_in_database, "cache/turns.json": remember_in_file}


@pytest.mark.parametrize(("place", "agent"), AGENTS.items(), ids=AGENTS)
def test_what_was_left_behind_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str, agent: Any
) -> None:
    """A database of a session, a cache: where it is gone, nothing differs."""
    monkeypatch.chdir(tmp_path)
    captured(tmp_path / "run", agent)
    with pytest.raises(reenact.Diverged) as caught, reenact.replay(tmp_path / "run") as run:
        agent(run)
    assert str(caught.value).endswith(
        f"what the recorded one wrote: {place}; move it away, or record the files too, with --workspace"
    )
    assert run.divergences[0].left_behind == (place,)
    Path(place).unlink()
    with reenact.replay(tmp_path / "run") as run:
        agent(run)


def test_a_clean_folder_is_not_blamed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nothing of the recorded run is there, nothing is said of it."""
    monkeypatch.chdir(tmp_path)
    captured(tmp_path / "run", remember_in_file)
    (tmp_path / "cache" / "turns.json").unlink()
    with pytest.raises(reenact.Diverged) as caught, reenact.replay(tmp_path / "run"):
        tell(turns=7)
    assert "already" not in str(caught.value)


ISOLATED = """
import json, os, sys
from pathlib import Path
from urllib.request import Request, urlopen

path = Path("memory.txt")
turns = len(path.read_text()) + 1 if path.exists() else 1
path.write_text("x" * turns)
body = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": f"Turn number {turns}"}]}
url = f"{os.environ['ANTHROPIC_BASE_URL']}/v1/messages"
urlopen(Request(url, json.dumps(body).encode(), {"content-type": "application/json"}), timeout=30).read()
"""


def test_of_a_program_in_any_language_too(tmp_path: Path) -> None:
    """What has changed in its folder while it was recorded."""
    from reenact.testing import Reply, ScriptedProvider

    (tmp_path / "agent.py").write_text(ISOLATED)
    words = ["--", PYTHON, "-I", "agent.py"]
    with ScriptedProvider(lambda request: Reply("yes")) as provider:
        base_url = provider.base_url("anthropic")
        done = run("record", "-o", "a", *words, cwd=tmp_path, ANTHROPIC_BASE_URL=base_url)
        assert done.returncode == 0, done.stderr
    done = run("replay", "a", *words, cwd=tmp_path)
    assert done.returncode == 1
    assert "what the recorded one wrote: memory.txt; move it away" in done.stderr


def test_an_agent_whose_folder_is_removed_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it can do there without us, it can with us, and the recording is whole."""
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")

    def agent(run: reenact.Run) -> Any:
        (tmp_path / "gone").rmdir()
        with closing(sqlite3.connect(":memory:")) as database:
            found = database.execute("SELECT 5").fetchone()[0]
        (tmp_path / "note.txt").write_text(tell(found=found))
        with pytest.raises(FileNotFoundError, match=r"note\.txt"):
            Path("note.txt").write_text("x")
        return found

    assert captured(tmp_path / "run", agent) == 5

"""Tools that change something inside the process: answered from the recording, and run as well."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

import reenact
from tests.seams.http.site import Site, open_site

DATABASE: dict[str, Any] = {}


@pytest.fixture(scope="module")
def web() -> Iterator[Site]:
    with open_site() as site:
        yield site


@pytest.fixture(autouse=True)
def empty() -> None:
    DATABASE.clear()


@reenact.tool(effects="run")
def save(name: str, value: Any) -> int:
    """Counts what the database holds."""
    DATABASE[name] = value
    return len(DATABASE)


def test_it_is_run_in_replay_and_the_agent_sees_its_effect(tmp_path: Path) -> None:
    def agent() -> tuple[int, Any]:
        return save("lamp", 3), DATABASE["lamp"]

    with reenact.capture(tmp_path / "run"):
        assert agent() == (1, 3)
    DATABASE.clear()
    with reenact.replay(tmp_path / "run") as run:
        assert agent() == (1, 3)
    assert run.notes == []


def test_the_recorded_answer_counts_and_another_is_noted(tmp_path: Path) -> None:
    with reenact.capture(tmp_path / "run"):
        save("lamp", 3)
    DATABASE["sofa"] = 1
    with reenact.replay(tmp_path / "run") as run:
        assert save("lamp", 3) == 1
    assert run.notes == ["save: run again, it returned something else than when it was recorded"]
    assert run.divergences == []


def test_what_it_asks_outside_is_answered_from_the_recording(tmp_path: Path, web: Site) -> None:
    """Nothing goes live because a tool is run."""

    @reenact.tool(effects="run")
    def fetch(page: str) -> str:
        DATABASE[page] = httpx2.get(f"{web.url}/{page}", verify=False).text
        return page

    with reenact.capture(tmp_path / "run"):
        fetch("page")
    before, seen = dict(DATABASE), len(web.requests) if hasattr(web, "requests") else 0
    DATABASE.clear()
    with reenact.replay(tmp_path / "run") as run:
        fetch("page")
    assert before == DATABASE
    # Newer Pythons tell that the site, which is part of the project here, was not asked.
    notes = [note for note in run.notes if "site.py" not in note]
    assert (run.blocked, run.divergences, notes) == ([], [], [])
    assert (len(web.requests) if hasattr(web, "requests") else 0) == seen


def test_a_failure_is_the_recorded_one_and_its_effects_are_there(tmp_path: Path) -> None:
    @reenact.tool(effects="run")
    def half(name: str) -> None:
        DATABASE[name] = "begun"
        raise KeyError(name)

    for run in (reenact.capture, reenact.replay):
        DATABASE.clear()
        with run(tmp_path / "run") as opened, pytest.raises(KeyError):
            half("x")
        assert DATABASE == {"x": "begun"}
    assert opened.notes == []


def test_a_coroutine_is_run_too(tmp_path: Path) -> None:
    @reenact.tool(effects="run")
    async def put(name: str) -> str:
        await asyncio.sleep(0)
        DATABASE[name] = 1
        return name

    async def agent() -> list[str]:
        return await asyncio.gather(put("a"), put("b"))

    for run in (reenact.capture, reenact.replay):
        DATABASE.clear()
        with run(tmp_path / "run"):
            assert asyncio.run(agent()) == ["a", "b"]
        assert DATABASE == {"a": 1, "b": 1}


def test_other_arguments_diverge_and_it_is_not_run(tmp_path: Path) -> None:
    with reenact.capture(tmp_path / "run"):
        save("lamp", 3)
    DATABASE.clear()
    with pytest.raises(reenact.Diverged), reenact.replay(tmp_path / "run"):
        save("lamp", 4)
    assert DATABASE == {}


def test_outside_a_run_it_is_the_function() -> None:
    assert save("x", 1) == 1


@pytest.mark.parametrize("wrong", ["sometimes", ""])
def test_unknown_effects_are_refused(wrong: Any) -> None:
    with pytest.raises(reenact.UsageError, match="choose answer or run"):
        reenact.tool(effects=wrong)


def test_a_generator_cannot_have_it() -> None:
    with pytest.raises(reenact.UsageError, match="is for functions"):

        @reenact.tool(effects="run")
        def items() -> Iterator[int]:
            yield 1


@reenact.tool
def forget_to_run(name: str) -> None:
    """Writes to the test's own database, and is marked all the same."""
    DATABASE[name] = 1


def test_a_failure_says_which_tools_did_not_run(tmp_path: Path) -> None:
    """Of a replay whose recorded run went well; the trap is named, with the way out."""

    def agent() -> Any:
        forget_to_run("lamp")
        save("sofa", 1)
        return DATABASE["lamp"]

    with reenact.capture(tmp_path / "run"):
        agent()
    DATABASE.clear()
    with pytest.raises(KeyError) as caught, reenact.replay(tmp_path / "run"):
        agent()
    [note] = caught.value.__notes__
    assert note.startswith(
        "reenact: answered from the recording, not run: forget_to_run. If what failed looks"
    )
    assert '@reenact.tool(effects="run")' in note


def test_a_failure_that_was_recorded_needs_no_explanation(tmp_path: Path) -> None:
    def agent() -> None:
        forget_to_run("lamp")
        raise ValueError("as before")

    for run in (reenact.capture, reenact.replay):
        with pytest.raises(ValueError, match="as before") as caught, run(tmp_path / "run"):
            agent()
        assert not hasattr(caught.value, "__notes__")

"""An update takes from the recording what still matches, asks for the rest, and replaces the recording."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import reenact
from reenact.boundary import Call, crossing
from reenact.check.integrity.capture import check_capture
from reenact.run import update

LIVE: list[str] = []


@pytest.fixture(autouse=True)
def nothing_live() -> None:
    LIVE.clear()


@reenact.tool
def search(query: str) -> str:
    LIVE.append(query)
    return f"found {query}"


@reenact.tool
def plan(query: str) -> str:
    LIVE.append(f"plan {query}")
    return search(f"{query}, planned")


def ask(*messages: str) -> str:
    facts = {"provider": "p", "model": "m", "inputHash": "sha256:" + "0" * 64}
    request = {"messages": [{"role": "user", "content": text * 100} for text in messages]}
    with crossing(Call("llm", "p", request, facts)) as step:
        if step.live:
            LIVE.append(f"model {messages[-1]}")
            step.answer = f"answer to {messages[-1]}"
            step.facts = {"provider": "p", "model": "m", "stopReason": None, "usage": None}
    return str(step.answer)


def recorded(path: Path, agent: Callable[[], Any]) -> list[bytes]:
    with reenact.capture(path) as run:
        run.final_output = agent()
    LIVE.clear()
    return lines(path)


def lines(path: Path) -> list[bytes]:
    return (path / "events.jsonl").read_bytes().splitlines()


def updated(path: Path, agent: Callable[[], Any]) -> list[bytes]:
    """The lines of the recording after an update; it is whole, and replays without a live call."""
    with update(path) as run:
        run.final_output = agent()
    run.accept()
    made = list(LIVE)
    assert check_capture(path).findings == []
    with reenact.replay(path) as again:
        again.final_output = agent()
    assert made == LIVE
    assert [each.name for each in path.parent.iterdir()] == [path.name]
    return lines(path)


def test_what_did_not_change_is_left_alone(tmp_path: Path) -> None:
    """Not even the directory is another one."""

    def agent() -> list[str]:
        return [search("a"), plan("b"), ask("hello"), ask("hello", "again")]

    before = recorded(tmp_path / "run", agent)
    inode = (tmp_path / "run").stat().st_ino
    assert updated(tmp_path / "run", agent) == before
    assert (LIVE, (tmp_path / "run").stat().st_ino) == ([], inode)


def test_only_what_changed_is_asked_for(tmp_path: Path) -> None:
    """All other lines keep every byte, and ids stay."""
    before = recorded(tmp_path / "run", lambda: [search("a"), search("b"), plan("c")][:0])
    after = updated(tmp_path / "run", lambda: [search("a"), search("B"), plan("c")][:0])
    assert LIVE == ["B"]
    changed = [number for number, (one, other) in enumerate(zip(before, after, strict=True)) if one != other]
    assert [json.loads(after[number])["type"] for number in changed] == ["tool_call", "tool_result"]
    assert json.loads(after[0])["captureId"] == json.loads(before[0])["captureId"]


def test_a_call_more_is_one_call_more(tmp_path: Path) -> None:
    """What comes behind it is answered from the recording, also what happened inside it."""
    recorded(tmp_path / "run", lambda: [search("a"), plan("b"), search("c")])
    after = updated(tmp_path / "run", lambda: [search("a"), plan("new"), plan("b"), search("c")])
    assert LIVE == ["plan new", "new, planned"]
    assert [json.loads(line)["seq"] for line in after] == list(range(1, len(after) + 1))


def test_a_call_less_is_one_call_less(tmp_path: Path) -> None:
    """Nothing is asked for."""
    before = recorded(tmp_path / "run", lambda: [search("a"), plan("b"), search("c")])
    after = updated(tmp_path / "run", lambda: [search("a"), search("c")])
    assert (LIVE, len(before) - len(after)) == ([], 4)


def test_a_request_that_repeats_one_that_is_gone_says_it_itself(tmp_path: Path) -> None:
    """Chat histories are stored as what was added to an earlier request."""
    recorded(tmp_path / "run", lambda: [ask("one"), ask("one", "two"), ask("one", "two", "three")][:0])
    updated(tmp_path / "run", lambda: [ask("one", "two", "three")][:0])
    assert LIVE == []


def test_a_conversation_is_asked_anew_from_the_change_on(tmp_path: Path) -> None:
    """The prefix is answered from the recording."""

    def agent(style: str) -> str:
        first = ask("hello")
        second = ask("hello", first, style)
        return ask("hello", first, style, second, "thanks")

    recorded(tmp_path / "run", lambda: agent("brief"))
    updated(tmp_path / "run", lambda: agent("long"))
    assert LIVE == ["model long", "model thanks"]


def test_tasks_keep_their_own_calls(tmp_path: Path) -> None:
    """One of several that changed is the only one that is asked for."""

    async def one(name: str) -> None:
        await asyncio.sleep(0)
        search(name)
        await asyncio.sleep(0)
        search(f"{name} again")

    async def all_of(*names: str) -> None:
        await asyncio.gather(*map(one, names))

    recorded(tmp_path / "run", lambda: asyncio.run(all_of("a", "b", "c")))
    updated(tmp_path / "run", lambda: asyncio.run(all_of("a", "B", "c")))
    assert sorted(LIVE) == ["B", "B again"]


def test_values_from_chance_are_the_recorded_ones(tmp_path: Path) -> None:
    """And new ones where there are none."""
    with reenact.capture(tmp_path / "run") as run:
        first = run.rng.random()
    with update(tmp_path / "run") as run:
        assert run.rng.random() == first
        second = run.rng.random()
    run.accept()
    with reenact.replay(tmp_path / "run") as run:
        assert (run.rng.random(), run.rng.random()) == (first, second)


def test_a_run_that_is_not_accepted_changes_nothing(tmp_path: Path) -> None:
    """The old recording is there until the new one takes its place in one step."""
    before = recorded(tmp_path / "run", lambda: search("a"))
    with pytest.raises(ValueError, match="no"), update(tmp_path / "run") as run:
        search("b")
        raise ValueError("no")
    run.discard()
    assert lines(tmp_path / "run") == before
    assert [each.name for each in tmp_path.iterdir()] == ["run"]


def test_streams_are_kept_and_made(tmp_path: Path) -> None:
    """One that matches is read from the recording, another one from its source."""

    @reenact.tool
    def count(limit: int) -> Any:
        LIVE.append(f"count {limit}")
        yield from range(limit)

    recorded(tmp_path / "run", lambda: [list(count(2)), list(count(3))])
    updated(tmp_path / "run", lambda: [search("x"), list(count(2)), list(count(4))])
    assert LIVE == ["x", "count 4"]

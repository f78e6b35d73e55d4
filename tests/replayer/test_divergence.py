"""A divergence says what differs, where, and which line of the agent made the call."""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from sysconfig import get_path
from typing import Any

import msgspec
import pytest

import reenact
from reenact.boundary import Call, crossing
from reenact.formats.divergence import ReplayDivergence
from tests.replayer.stray import StrayThread
from tests.twice import captured, replayed


@reenact.tool
def search(query: str, limit: int = 10, filters: Any = None) -> str:
    return f"found {query}"


@reenact.tool
def send(to: str) -> str:
    return f"sent {to}"


@reenact.tool
def count(limit: int) -> Iterator[int]:
    yield from range(limit)


def ask(prompt: Any) -> Any:
    facts = {"provider": "p", "model": "m", "inputHash": "sha256:" + "0" * 64}
    with crossing(Call("llm", "p", {"messages": prompt}, facts)) as step:
        if step.live:
            step.answer = f"answer to {prompt}"
            step.facts = {"provider": "p", "model": "m", "stopReason": None, "usage": None}
    return step.answer


def diverging(path: Path, recorded: Callable[[reenact.Run], Any], agent: Callable[[reenact.Run], Any]) -> Any:
    """The divergence with which a strict replay of *agent* fails."""
    captured(path, recorded)
    with pytest.raises(reenact.Diverged) as caught:
        replayed(path, agent, stall_s=0.1)
    found = caught.value.divergence
    assert isinstance(found, ReplayDivergence)
    assert str(caught.value) == found.headline
    return found


async def giving_up(run: reenact.Run) -> None:
    @reenact.tool
    async def slow() -> None:
        await asyncio.sleep(60)

    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(slow(), 0.01 if run.mode == "capture" else None)


# Every code, by a program that really does it

CODES: dict[str, tuple[Callable[..., Any], Callable[..., Any], str, str | None]] = {
    "another kind of call": (
        lambda run: ask("a"),
        lambda run: search("a"),
        "event_type_mismatch",
        "$.type",
    ),
    "chance instead of a tool": (
        lambda run: search("a"),
        lambda run: run.clock.now(),
        "event_type_mismatch",
        "$.type",
    ),
    "another tool": (
        lambda run: search("a"),
        lambda run: send("a"),
        "event_payload_mismatch",
        "$.data.tool",
    ),
    "another argument": (
        lambda run: search("a"),
        lambda run: search("b"),
        "event_payload_mismatch",
        "$.data.args.query",
    ),
    "another prompt": (
        lambda run: ask([{"role": "user", "content": "a"}]),
        lambda run: ask([{"role": "user", "content": "b"}]),
        "event_payload_mismatch",
        "$.data.request.messages[0].content",
    ),
    "another state": (
        lambda run: run.memory_write("a", [1]),
        lambda run: run.memory_write("a", [2]),
        "event_payload_mismatch",
        "$.data.content[0]",
    ),
    "one call too few": (
        lambda run: [search("a"), search("b")],
        lambda run: search("a"),
        "event_missing",
        None,
    ),
    "one call too many": (
        lambda run: search("a"),
        lambda run: [search("a"), search("b")],
        "event_unexpected",
        None,
    ),
    "a stream read too far": (
        lambda run: next(count(3)),
        lambda run: list(count(3)),
        "event_unexpected",
        None,
    ),
    "one draw too many": (
        lambda run: run.rng.random(),
        lambda run: [run.rng.random(), run.rng.random()],
        "nondeterministic_underflow",
        None,
    ),
    "kept waiting": (giving_up, giving_up, "event_missing", None),
}


@pytest.mark.parametrize("name", CODES)
def test_every_code_is_produced(tmp_path: Path, name: str) -> None:
    """The seed's five codes, each with its place, as a value, a line, a text and JSON."""
    recorded, agent, code, json_path = CODES[name]
    found = diverging(tmp_path / "run", recorded, agent)
    assert (found.code, found.json_path) == (code, json_path)
    assert found.headline.startswith(code)
    assert "\n" not in found.headline
    assert found.explain().startswith(found.headline)
    as_json = found.to_json()
    assert json.loads(json.dumps(as_json)) == as_json
    names = {"code", "detail", "expected", "observed", "eventSeq", "jsonPath", "differences", "candidates"}
    assert as_json.keys() <= names | {"lane", "sourceLine", "callers"}


def test_the_table_has_all_five_codes() -> None:
    """None is left out."""
    assert {code for _, _, code, _ in CODES.values()} == {
        "event_type_mismatch",
        "event_payload_mismatch",
        "event_missing",
        "event_unexpected",
        "nondeterministic_underflow",
    }


# What a person can act on


def test_every_further_difference_is_named(tmp_path: Path) -> None:
    """Not only the first place."""
    found = diverging(
        tmp_path / "run",
        lambda run: search("a", 5, {"from": 1, "to": [1, 2]}),
        lambda run: search("a", 6, {"from": 2, "to": [1, 3], "new": None}),
    )
    assert [place.describe() for place in found.differences] == [
        "$.filters.from: expected 1, observed 2",
        "$.filters.new: observed null, expected nothing",
        "$.filters.to[1]: expected 2, observed 3",
        "$.limit: expected 5, observed 6",
    ]
    assert found.json_path == "$.data.args.filters.from"
    assert all(place.describe() in found.explain() for place in found.differences)


def test_expected_and_observed_are_whole(tmp_path: Path) -> None:
    """The recorded event and the call that was made instead."""
    found = diverging(tmp_path / "run", lambda run: search("a"), lambda run: search("b"))
    assert found.event_seq == 2
    assert (found.expected["seq"], found.expected["type"]) == (2, "tool_call")
    assert found.expected["data"]["args"]["query"] == "a"
    assert (found.observed.type, found.observed.data["tool"]) == ("tool_call", "search")
    assert found.observed.data["args"] == {"query": "b", "limit": 10, "filters": None}


def test_the_agents_own_line_is_named(tmp_path: Path) -> None:
    """File, line and function of the call, not of the library around it."""

    def the_agents_function(run: reenact.Run) -> None:
        search("b")

    found = diverging(tmp_path / "run", lambda run: search("a"), the_agents_function)
    line = the_agents_function.__code__.co_firstlineno + 1
    assert found.source_line.startswith(f"{__file__}:{line} in ")
    assert found.source_line.endswith("the_agents_function")
    assert f"called from  {found.source_line}" in found.explain()


def test_the_agents_own_line_in_tasks_and_threads(tmp_path: Path) -> None:
    """However deep the library below it."""

    async def in_a_task() -> None:
        await asyncio.to_thread(in_a_thread)

    def in_a_thread() -> None:
        search("b")

    async def agent(run: reenact.Run) -> None:
        await asyncio.gather(in_a_task())

    async def recorded(run: reenact.Run) -> None:
        await asyncio.gather(asyncio.to_thread(search, "a"))

    found = diverging(tmp_path / "run", recorded, agent)
    names = [line.rpartition(".")[2] for line in (found.source_line, *found.callers)]
    assert names == ["in_a_thread", "in_a_task", "agent"]


def test_the_agents_line_that_started_a_task_is_named(tmp_path: Path) -> None:
    """Where the task runs only code of a library, as a call of an SDK does that is given to gather."""

    queries = ["b", "a"]

    async def agent(run: reenact.Run) -> None:
        await asyncio.gather(asyncio.to_thread(search, queries.pop()))

    found = diverging(tmp_path / "run", agent, agent)
    line = agent.__code__.co_firstlineno + 1
    assert found.source_line == f"{__file__}:{line} in {agent.__qualname__}"


def test_near_calls_are_named(tmp_path: Path) -> None:
    """What the call may have been meant to be: nearest first, with whether it has been answered already."""
    found = diverging(
        tmp_path / "run",
        lambda run: [search("a", 1), search("b", 2), search("c", 3), send("x")],
        lambda run: [search("a", 1), search("c", 4)],
    )
    assert [(near.event_seq, near.differences, near.is_taken) for near in found.candidates] == [
        (6, 1, False),
        (4, 2, False),
        (2, 2, True),
    ]
    assert "near         event 6 (search, task 0): differs at 1 place\n" in found.explain()
    assert "already taken" in found.explain()


def test_an_exact_call_elsewhere_is_seen(tmp_path: Path) -> None:
    """Swapped calls are recognised as such: the one that came stands further on."""
    found = diverging(
        tmp_path / "run", lambda run: [search("a"), search("b")], lambda run: [search("b"), search("a")]
    )
    assert found.candidates[0].differences == 0
    assert not found.candidates[0].is_taken
    assert "near         event 4 (search, task 0): the same call\n" in found.explain() + "\n"


def test_a_long_prompt_is_shown_where_it_differs(tmp_path: Path) -> None:
    """A date at the end of a long prompt is on the line."""
    prompt = "You are a helpful assistant. " * 100
    found = diverging(
        tmp_path / "run",
        lambda run: ask(prompt + "Today is Monday."),
        lambda run: ask(prompt + "Today is Tuesday."),
    )
    assert "Today is Monday" in found.headline
    assert "Today is Tuesday" in found.headline
    assert len(found.headline) < 500


def test_a_call_in_no_known_order_is_compared_with_its_likes(tmp_path: Path) -> None:
    """Threads that were there before the run call in any order; the nearest call is to be compared with."""
    with StrayThread() as pool:
        found = diverging(
            tmp_path / "run",
            lambda run: pool.map(search, ["first", "second", "third"]),
            lambda run: pool.map(lambda word: search(word, 11), ["third"]),
        )
    assert (found.code, found.json_path) == ("event_payload_mismatch", "$.data.args.limit")
    assert found.expected["data"]["args"]["query"] == "third"


def test_no_secret_is_told(tmp_path: Path) -> None:
    """Neither value, line, text nor JSON of a divergence holds what redaction hides."""
    secret, other = "sk-ant-api03-" + "A" * 40, "sk-ant-api03-" + "B" * 40
    found = diverging(
        tmp_path / "run",
        lambda run: search("a", filters={"authorization": f"Bearer {secret}", "note": f"key {secret}"}),
        lambda run: search("b", filters={"authorization": f"Bearer {other}", "note": f"key {other}"}),
    )
    told = found.headline + found.explain() + json.dumps(found.to_json()) + repr(found)
    assert secret not in told
    assert other not in told
    assert {place.path for place in found.differences} >= {"$.query", "$.filters.note"}


def test_equal_secrets_do_not_differ(tmp_path: Path) -> None:
    """Calls are compared as they would have been written."""
    secret = "sk-ant-api03-" + "A" * 40
    captured(tmp_path / "run", lambda run: search(f"with {secret}"))
    replayed(tmp_path / "run", lambda run: search(f"with {secret}"))


def test_a_divergence_survives_its_json(tmp_path: Path) -> None:
    """Reports are read again by other tools."""
    found = diverging(tmp_path / "run", lambda run: search("a"), lambda run: search("b"))
    assert msgspec.convert(found.to_json(), ReplayDivergence) == found


def test_values_that_are_not_json_can_be_told(tmp_path: Path) -> None:
    """A difference between tuples, sets or bytes is reported in their recorded form."""
    found = diverging(
        tmp_path / "run",
        lambda run: search("a", filters=(1, {2}, b"x")),
        lambda run: search("a", filters=(1, {3}, b"y")),
    )
    assert json.dumps(found.to_json())
    assert [place.path for place in found.differences] == [
        "$.filters.value[1].value[0]",
        "$.filters.value[2].value",
    ]


def test_the_agents_own_frames_are_named(tmp_path: Path) -> None:
    """The line that made the call, and up to two that led there."""

    def look(query: str) -> None:
        search(query)

    def plan(query: str) -> None:
        look(query)

    with reenact.capture(tmp_path / "run"):
        plan("a")
    with pytest.raises(reenact.Diverged) as caught, reenact.replay(tmp_path / "run"):
        plan("b")
    found = caught.value.divergence
    assert [line.rpartition(".")[2] for line in (found.source_line, *found.callers[:1])] == ["look", "plan"]
    assert len(found.callers) == 2
    assert all(f"               {caller}" in found.explain() for caller in found.callers)


def test_the_script_that_started_the_agent_is_not_named(tmp_path: Path) -> None:
    """Such as ``bin/pytest``, which an installer wrote."""
    script = compile("search('b')", f"{get_path('scripts')}/pytest", "exec")
    with reenact.capture(tmp_path / "run"):
        search("a")
    with pytest.raises(reenact.Diverged) as caught, reenact.replay(tmp_path / "run"):
        exec(script, {"search": search})
    found = caught.value.divergence
    assert found.source_line is not None
    assert "test_divergence.py" in found.source_line


def test_a_large_argument_that_differs_is_explained_in_seconds(tmp_path: Path) -> None:
    """The time is linear in its size, and small beside that of reading it."""
    text = "the quick brown fox 2024-01-01 jumps over 17 lazy dogs; " * 200_000
    other = f"{text[: len(text) // 2]}X{text[len(text) // 2 + 1 :]}"
    with reenact.capture(tmp_path / "run"):
        search(text)
    began = time.process_time()
    with (
        pytest.raises(
            reenact.Diverged, match=r"tool search differs \(the became Xhe\) at \$\.query: expected …"
        ),
        reenact.replay(tmp_path / "run"),
    ):
        search(other)
    assert time.process_time() - began < 5  # 1 s on a quiet machine, for 11 MB


def test_a_large_structure_that_differs_is_explained_in_seconds(tmp_path: Path) -> None:
    """Paths are made only of what differs."""
    rows = [{"id": number, "tags": ["a", "b"], "price": number / 7} for number in range(200_000)]
    with reenact.capture(tmp_path / "run"):
        search(rows)
    rows[150_000]["price"] = -1
    began = time.process_time()
    with (
        pytest.raises(reenact.Diverged, match=r"\$\.query\[150000\]\.price"),
        reenact.replay(tmp_path / "run"),
    ):
        search(rows)
    assert time.process_time() - began < 15

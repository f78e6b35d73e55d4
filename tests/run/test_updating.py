"""An update takes from the recording what still matches, asks for the rest, and replaces the recording."""

from __future__ import annotations

import asyncio
import itertools
import json
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.base import BaseHTTPMiddleware, RequestResponseEndpoint
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.testclient import TestClient

import reenact
from reenact.boundary import Call, crossing
from reenact.check.integrity.capture import check_capture
from reenact.run import update
from reenact.store.reader import CaptureReader
from tests.aging import THREE_DAYS_MS, make_older

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


# Concurrent programs, of which one call is changed


@reenact.tool
async def fetch(label: str) -> str:
    await asyncio.sleep(0)
    LIVE.append(label)
    return f"got {label}"


class Task(msgspec.Struct):
    """Calls in a row, each of a tool or of a model; then tasks side by side, and a last call."""

    calls: list[str]
    below: list[Task]
    is_thread: bool


def programs() -> st.SearchStrategy[Task]:
    names = st.lists(st.sampled_from(["tool", "model", "async"]), min_size=1, max_size=3)
    leaf = st.builds(Task, names, st.just([]), st.booleans())
    return st.recursive(
        leaf, lambda below: st.builds(Task, names, st.lists(below, max_size=3), st.just(False)), max_leaves=6
    )


def labelled(task: Task, count: Iterator[int]) -> Task:
    """The same with a name of its own for every call."""
    calls = [f"{kind} {next(count)}" for kind in task.calls]
    return Task(calls, [labelled(below, count) for below in task.below], task.is_thread)


def labels(task: Task) -> list[str]:
    return [*task.calls, *(label for below in task.below for label in labels(below))]


def changed(task: Task, label: str) -> Task:
    calls = [f"{each} changed" if each == label else each for each in task.calls]
    return Task(calls, [changed(below, label) for below in task.below], task.is_thread)


async def play(task: Task) -> list[str]:
    found = []
    for label in task.calls:
        if label.startswith("async"):
            found.append(await fetch(label))
        elif label.startswith("model"):
            found.append(ask(label))
        else:
            found.append(search(label))
    below = [
        asyncio.to_thread(lambda each=each: asyncio.run(play(each))) if each.is_thread else play(each)
        for each in task.below
    ]
    return [*found, *(text for texts in await asyncio.gather(*below) for text in texts)]


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(task=programs(), data=st.data())
def test_of_a_concurrent_program_only_the_changed_call_is_asked_and_changed(
    task: Task, data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """All other lines stay as they are, byte for byte, and the new recording replays."""
    path = tmp_path_factory.mktemp("program") / "run"
    task = labelled(task, itertools.count())
    before = recorded(path, lambda: len(asyncio.run(play(task))))
    label = data.draw(st.sampled_from(labels(task)))
    other = changed(task, label)
    with update(path) as run:
        run.final_output = len(asyncio.run(play(other)))
    run.accept()
    asked = [each.removeprefix("model ") if each.startswith("model model") else each for each in LIVE]
    assert asked == [f"{label} changed"]
    after = lines(path)
    differing = [(old, new) for old, new in zip(before, after, strict=True) if old != new]
    assert len(differing) == 2, differing
    assert all(b"changed" in new or b"callId" in new for _, new in differing)
    assert check_capture(path).is_good
    LIVE.clear()
    with reenact.replay(path) as again:
        again.final_output = len(asyncio.run(play(other)))
    assert LIVE == []


def test_a_task_that_returns_something_else_is_accepted(tmp_path: Path) -> None:
    """No call has changed; what the recorded tasks came to is not held against anybody any more."""

    @reenact.tool
    async def ask_one(what: str) -> str:
        return f"answer to {what}"

    async def agent(mark: str) -> str:
        return await ask_one("one") + mark

    with reenact.capture(tmp_path / "run"):
        asyncio.run(agent("."))
    with (
        pytest.raises(reenact.Diverged, match=r"agent.. returned another value"),
        reenact.replay(tmp_path / "run"),
    ):
        asyncio.run(agent("!"))
    with reenact.run(tmp_path / "run", mode="update"):
        asyncio.run(agent("!"))
    with reenact.replay(tmp_path / "run"):
        asyncio.run(agent("!"))


def test_the_tasks_of_a_web_app_are_found_again_after_an_update(tmp_path: Path) -> None:
    """Its server starts many tasks of the same function; those before the changed call still count."""

    async def stamped(request: Request, call_next: RequestResponseEndpoint) -> Response:
        response = await call_next(request)
        response.headers["x-stamp"] = str(uuid.uuid4())
        return response

    async def order(request: Request) -> JSONResponse:
        asked = (
            asyncio.to_thread(search, f"{word} {request.query_params['item']}") for word in ("price", "stock")
        )
        return JSONResponse([*await asyncio.gather(*asked), str(uuid.uuid4()), time.time()])

    app = Starlette(
        routes=[Route("/order", order)], middleware=[Middleware(BaseHTTPMiddleware, dispatch=stamped)]
    )

    def agent(*items: str) -> list[object]:
        answers = [client.get("/order", params={"item": item}) for item in items]
        return [(answer.json(), answer.headers["x-stamp"]) for answer in answers]

    with TestClient(app) as client:
        recorded(tmp_path / "run", lambda: agent("lamp", "desk"))
    for items in (("chair", "desk"), ("chair",)):
        with TestClient(app) as client:
            updated(tmp_path / "run", lambda items=items: agent(*items))
    assert sorted(LIVE) == ["price chair", "stock chair"]


def test_times_of_new_events_go_on_from_the_recorded_ones(tmp_path: Path) -> None:
    """No time goes back, the run is no longer than it was, and how long a new call took is reported."""

    @reenact.tool
    def wait(query: str) -> str:
        time.sleep(0.05)
        return query

    recorded(tmp_path / "run", lambda: [search("a"), search("b"), search("c")][:0])
    make_older(tmp_path / "run", THREE_DAYS_MS)
    before = lines(tmp_path / "run")
    after = updated(tmp_path / "run", lambda: [search("a"), wait("B"), search("c")][:0])
    assert [one for one in after if one not in before] == after[3:5]
    times = [json.loads(line)["ts"] for line in after]
    assert times == sorted(times)
    asked, came = map(json.loads, after[3:5])
    assert asked["laterMs"] == pytest.approx(THREE_DAYS_MS, abs=60_000)
    assert came["data"]["latencyMs"] >= 50
    assert reenact.verify(tmp_path / "run").findings == []
    with reenact.open_artifact(tmp_path / "run") as run:
        header, steps = run.header(), list(run.steps())
    assert header.completed_at_ms - header.created_at_ms < 60_000
    assert steps[1].took_ms == came["data"]["latencyMs"]
    assert CaptureReader(tmp_path / "run").manifest.updatedAt == pytest.approx(time.time() * 1000, abs=60_000)


def test_times_go_on_to_an_end_that_is_new(tmp_path: Path) -> None:
    """And what is updated twice tells of each event when it was."""
    recorded(tmp_path / "run", lambda: [search("a")])
    make_older(tmp_path / "run", THREE_DAYS_MS + 0.5)  # other writers tell times in fractions
    updated(tmp_path / "run", lambda: [search("a"), search("b")])
    make_older(tmp_path / "run", THREE_DAYS_MS)
    after = [json.loads(line) for line in updated(tmp_path / "run", lambda: [search(x) for x in "abc"])]
    assert [each["ts"] for each in after] == sorted(each["ts"] for each in after)
    days = [round(each.get("laterMs", 0) / THREE_DAYS_MS) for each in after]
    assert days == [0, 0, 0, 1, 1, 2, 2, 2]
    manifest = CaptureReader(tmp_path / "run").manifest
    assert manifest.completedAt == after[-1]["ts"]

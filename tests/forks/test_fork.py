"""A fork replays its parent to a point, changes one thing there, and is a capture of its own."""

from __future__ import annotations

import asyncio
import json
import shutil
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

import reenact
from reenact.boundary import Call, crossing
from reenact.check.integrity.capture import check_capture
from reenact.forks.change import set_at
from reenact.run import update
from reenact.store.pruning import Retention, plan_prune
from reenact.store.reader import CaptureReader

LIVE: list[str] = []


@pytest.fixture(autouse=True)
def nothing_live() -> None:
    LIVE.clear()


@reenact.tool
def find(order: str) -> dict[str, Any]:
    LIVE.append(order)
    return {"order": order, "due": ["Thursday", "noon"]}


@reenact.tool
def tell(text: str) -> str:
    LIVE.append(text)
    return f"told {text}"


def ask(*messages: str) -> str:
    facts = {"provider": "p", "model": "m", "inputHash": "sha256:" + "0" * 64}
    request = {"messages": [{"role": "user", "content": text * 100} for text in messages]}
    with crossing(Call("llm", "p", request, facts)) as step:
        if step.live:
            LIVE.append(f"model {messages[-1]}")
            step.answer = f"answer to {messages[-1]}"
            step.facts = {"provider": "p", "model": "m", "stopReason": None, "usage": None}
    return str(step.answer)


def agent() -> list[str]:
    """Events 2 and 3 ask the model, 4 and 5 find, 6 and 7 tell, 8 and 9 find another, 10 and 11 ask again."""
    first = ask("hello")
    found = find("A-1")
    told = tell(f"it comes on {found['due'][0]}")
    find("B-2")
    return [first, told, ask("hello", first, told)]


@pytest.fixture
def parent(tmp_path: Path) -> Path:
    with reenact.capture(tmp_path / "parent") as run:
        run.final_output = agent()
    LIVE.clear()
    return tmp_path / "parent"


def forked(parent: Path, name: str = "fork", agent: Callable[[], Any] = agent, **options: Any) -> Any:
    with reenact.fork(parent, output=parent.with_name(name), **options) as run:
        run.final_output = agent()
    made = list(LIVE)
    assert check_capture(run.path).findings == []
    with reenact.replay(run.path) as again:
        again.final_output = agent()
    assert made == LIVE
    return run


def results(path: Path) -> list[Any]:
    reader = CaptureReader(path)
    events = (json.loads(line) for line in reader.lines())
    return [reader.resolve(event["data"].get("result")) for event in events if event["type"] == "tool_result"]


def test_what_depends_on_the_change_is_missing(parent: Path) -> None:
    """A fork is hermetic unless it is told otherwise; the missing call is named, and nothing is written."""
    with pytest.raises(reenact.Diverged, match=r"tool tell differs.*the recording does not have this call"):
        forked(parent, at=4, change={"set": {"$.due[0]": "Friday"}})
    assert LIVE == []
    assert [each.name for each in parent.parent.iterdir()] == ["parent"]


def test_what_depends_on_the_change_goes_live_if_asked(parent: Path) -> None:
    """All else is answered from the recording, also what was recorded behind it."""
    run = forked(parent, at=5, change={"set": {"$.due[0]": "Friday"}}, on_miss="live")
    assert LIVE == ["it comes on Friday", "model told it comes on Friday"]
    assert run.final_output[1:] == ["told it comes on Friday", "answer to told it comes on Friday"]
    shares = run.shares
    assert (shares.prefix, shares.recording, shares.nearest, shares.live) == (1, 1, 0, 2)


def test_what_depends_on_the_change_is_answered_as_the_nearest(parent: Path) -> None:
    """The fork says which call's answer that was."""
    run = forked(parent, at=4, change={"set": {"$.due[0]": "Friday"}}, on_miss="nearest")
    assert (LIVE, run.final_output[1]) == ([], "told it comes on Thursday")
    lines = b"\n".join(CaptureReader(run.path).lines())
    assert (run.shares.nearest, lines.count(b'"answeredAs":"c3"')) == (1, 1)


@pytest.mark.parametrize(
    ("change", "found"),
    [
        ({"set": {"$.order": "Z", "due": []}}, {"order": "Z", "due": []}),
        ({"replace": None}, None),
        (lambda outcome: outcome | {"more": 1}, {"order": "A-1", "due": ["Thursday", "noon"], "more": 1}),
        ({"replace": "long" * 10_000}, "long" * 10_000),
    ],
)
def test_an_outcome_is_changed(parent: Path, change: Any, found: Any) -> None:
    """By path, as a whole, or by a function; large ones are blobs of the fork's own."""

    def looking() -> Any:
        ask("hello")
        return find("A-1")

    run = forked(parent, agent=looking, at=4, change=change)
    assert run.final_output == found


@pytest.mark.parametrize(
    "change", [{"error": "TimeoutError: too late"}, lambda _: exec("raise TimeoutError('too late')")]
)
def test_a_tool_fails(parent: Path, change: Any) -> None:
    """With the exception named, or with what the function raises."""

    def careful() -> Any:
        ask("hello")
        try:
            return find("A-1")
        except TimeoutError as error:
            return str(error)

    assert forked(parent, agent=careful, at=4, change=change).final_output == "too late"


def test_the_prefix_is_stored_once(parent: Path) -> None:
    """The fork's own log is what comes behind, and reads as one log."""
    change = {"set": {"$.due[1]": "one"}}
    run = forked(parent, at=8, change=change)
    own = (run.path / "events.jsonl").read_bytes()
    behind = b"".join(line + b"\n" for line in list(CaptureReader(parent).lines())[8:])
    assert len(own) <= len(behind)
    assert len(CaptureReader(run.path)) == len(CaptureReader(parent))
    whole = forked(parent, "whole", at=8, change=change, standalone=True)
    assert results(whole.path) == results(run.path)
    shutil.rmtree(parent)
    assert check_capture(whole.path).findings == []


def test_a_fork_is_forked_again(parent: Path) -> None:
    """And its fork is read through both."""
    forked(parent, at=4, change={"set": {"$.due[0]": "Friday"}}, on_miss="live")
    LIVE.clear()
    again = forked(parent.with_name("fork"), "again", at=8, change={"set": {"$.due": None}})
    assert LIVE == []
    assert again.final_output[1] == "told it comes on Friday"
    assert results(again.path)[2] == {"order": "B-2", "due": None}


def test_a_parent_that_is_gone_or_changed_is_noticed(parent: Path) -> None:
    """In one line, by whoever reads the fork."""
    path = forked(parent, at=8, change={"set": {"$.due": None}}).path
    log = parent / "events.jsonl"
    was = log.read_bytes()
    log.write_bytes(was.replace(b"A-1", b"A-9"))
    with pytest.raises(reenact.DigestMismatch, match=r"its parent, capture cap_.*was changed"):
        CaptureReader(path)
    log.write_bytes(was.replace(b"B-2", b"B-3"))
    with pytest.raises(reenact.DigestMismatch):
        CaptureReader(path)
    parent.rename(parent.with_name("elsewhere"))
    with pytest.raises(
        reenact.StoreError, match=r"a fork of capture cap_\w+ in \S+/parent, which is not there"
    ):
        CaptureReader(path)
    with reenact.capture(parent):
        find("A-1")
    with pytest.raises(reenact.StoreError, match=r"but capture cap_.* is there"):
        CaptureReader(path)


def test_a_parent_is_not_pruned_before_its_forks(parent: Path) -> None:
    """It goes when they go."""
    path = forked(parent, at=8, change={"set": {"$.due": None}}).path
    old = plan_prune([parent.parent], Retention(keep=1), now_ms=time.time() * 1000)
    assert [run.path for run in old.going] == []
    whole = forked(parent, "whole", at=8, standalone=True).path
    shutil.rmtree(path)
    old = plan_prune([parent.parent], Retention(keep=1), now_ms=time.time() * 1000)
    assert ([run.path for run in old.going], [run.path for run in old.staying]) == ([parent], [whole])


def test_a_fork_is_not_updated(parent: Path) -> None:
    """It is what it is."""
    path = forked(parent, at=8, change={"set": {"$.due": None}}).path
    with pytest.raises(reenact.UsageError, match="is a fork, and is what it is; fork its parent again"):
        update(path)


def test_a_fork_is_shown_as_one(parent: Path) -> None:
    """With where its parent is, and where they part."""
    path = forked(parent, at=8, change={"set": {"$.due": None}}).path
    with reenact.open_artifact(path) as artifact:
        assert artifact.header().forked_from == "../parent at event 8"


def test_a_fork_of_itself_comes_to_an_end(parent: Path) -> None:
    """A manifest that nobody wrote does not make a reader go round for ever."""
    path = forked(parent, at=8, change={"set": {"$.due": None}}).path
    manifest = json.loads((path / "manifest.json").read_bytes())
    manifest["fork"]["parent"] |= {"path": "../fork", "captureId": manifest["captureId"]}
    (path / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(reenact.ReenactError):
        CaptureReader(path)


@pytest.mark.parametrize(
    ("at", "change", "said"),
    [
        (1, None, r"event 1 \(run_start\) is not a call; name the event of a call"),
        (0, None, "there is no event 0, the last one is 12"),
        (99, None, "there is no event 99, the last one is 12"),
        (4, {"set": {"$.when": 1}}, r"\$\.when: there is no \$\.when; \$ has order, due"),
        (4, {"set": {"$.due[7]": 1}}, r"there is no \$\.due\[7\]; \$\.due has 2 items"),
        (4, {"set": {"$.order.x": 1}}, r"there is no \$\.order\.x; \$\.order is a plain value"),
        (4, {"set": {"$..": 1}}, "is not a path"),
        (4, {"error": "NoSuchError"}, "is not a built-in exception"),
        (4, {"error": ""}, "'': names no exception"),
        (4, {"error": "os.system"}, "os.system: is not an exception"),
        (4, {"set": {'$["\\x"]': 1}}, "is not a JSON text"),
        (4, {"error": "500"}, "event 5 is not an HTTP answer"),
        (4, {"set": {"$.due": 1}, "replace": 1}, "choose one of set, replace and error"),
        (4, {"sat": {}}, "'sat' is unknown; choose from set, replace"),
        (4, {"set": 1}, "change: Expected `object`"),
        (4, 7, "7 is not a change"),
    ],
)
def test_what_cannot_be_meant_is_said_at_once(parent: Path, at: int, change: Any, said: str) -> None:
    """In one line, and nothing runs or is written."""
    with pytest.raises(reenact.UsageError, match=said):
        forked(parent, at=at, change=change)
    assert [each.name for each in parent.parent.iterdir()] == ["parent"]


def test_the_path_is_named_as_it_was_given(parent: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(parent.parent)
    with pytest.raises(reenact.UsageError, match=r"^parent: there is no event 99"):
        forked(Path("parent"), at=99)


def test_another_agent_is_no_fork(parent: Path) -> None:
    """What differs before the point is said to be before it; what never comes to it as well."""

    def other() -> None:
        ask("good day")

    with pytest.raises(reenact.Diverged, match=r"before the point of the fork: .*a model is asked differs"):
        forked(parent, agent=other, at=8)
    with pytest.raises(reenact.Diverged, match=r"the call at event 4 .* was not made"):
        forked(parent, agent=lambda: ask("hello"), at=8, change={"replace": 1})
    assert [each.name for each in parent.parent.iterdir()] == ["parent"]


@pytest.mark.parametrize(
    "change",
    [
        {"set": {"$.password": "correct-horse", "$.word": ["tellme-not"]}},
        {"replace": {"password": "correct-horse", "word": "tellme-not"}},
        {"error": "ValueError: password='correct-horse' tellme-not"},
    ],
)
def test_a_secret_in_the_change_is_hidden(tmp_path: Path, change: Any) -> None:
    """In what is told of the change as in the changed event; a name may stand in the path."""

    @reenact.tool
    def account() -> Any:
        return {"password": "", "word": ""}

    with reenact.capture(tmp_path / "parent"):
        account()
    fork = reenact.fork(
        tmp_path / "parent", output=tmp_path / "fork", change=change, at=2, redact=["tellme-not"]
    )
    with fork, suppress(ValueError):
        account()
    files = [file.read_bytes() for file in (tmp_path / "fork").rglob("*") if file.is_file()]
    assert any(b"<secret:" in file for file in files)
    assert not any(b"correct-horse" in file or b"tellme-not" in file for file in files)


def test_the_output_is_left_as_it_is(parent: Path) -> None:
    """A fork never takes the place of anything."""
    with pytest.raises(reenact.StoreError, match="exists already"):
        forked(parent, "parent", at=4)
    late = parent.with_name("late")
    with (
        pytest.raises(reenact.StoreError, match="exists already"),
        reenact.fork(parent, at=4, output=late) as run,
    ):
        run.final_output = agent()
        late.mkdir()
        (late / "notes").touch()
    assert sorted(each.name for each in parent.parent.iterdir()) == ["late", "parent"]
    assert [each.name for each in late.iterdir()] == ["notes"]


@reenact.tool
def count_to(last: int) -> Iterator[int]:
    LIVE.append(f"to {last}")
    yield from range(1, last + 1)


@reenact.tool
async def count_later(last: int) -> AsyncIterator[int]:
    LIVE.append(f"to {last}")
    for number in range(1, last + 1):
        yield number


async def _items(last: int, taken: int) -> list[int]:
    found: list[int] = []
    stream = count_later(last)
    async for number in stream:
        found.append(number)
        if len(found) == taken:
            await stream.aclose()
    return found


def taken_from_stream(last: int, taken: int, *, is_async: bool) -> list[int]:
    """The first items, then the stream is left."""
    return asyncio.run(_items(last, taken)) if is_async else list(islice(count_to(last), taken))


STREAMS: dict[str, tuple[Any, list[Any]]] = {
    "an item": ({"set": {"$[1]": 7}}, [1, 7]),
    "all of them": ({"replace": [8, 9]}, [8, 9]),
    "none": ({"replace": []}, []),
    "a function": (lambda items: [item * 2 for item in items], [2, 4]),
}


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize("is_left", [False, True])
@pytest.mark.parametrize("case", STREAMS)
def test_the_items_of_a_stream_are_changed(tmp_path: Path, case: str, is_left: bool, is_async: bool) -> None:
    """The outcome of a tool that is a generator is the list of its items, all those that were taken."""

    def counting() -> list[int]:
        return taken_from_stream(4 if is_left else 2, 2 if is_left else 9, is_async=is_async)

    with reenact.capture(tmp_path / "parent"):
        assert counting() == [1, 2]
    LIVE.clear()
    change, expected = STREAMS[case]
    run = forked(tmp_path / "parent", agent=counting, at=2, change=change)
    assert (run.final_output, LIVE) == (expected, [])


@pytest.mark.parametrize("change", [{"replace": 3}, lambda items: len(items)])
def test_a_stream_stays_one(tmp_path: Path, change: Any) -> None:
    """What is no list of items is refused, even where the agent does not mind."""

    def careless() -> None:
        with suppress(Exception):
            list(count_to(2))

    with reenact.capture(tmp_path / "parent"):
        careless()
    with pytest.raises(reenact.UsageError, match="event 3 is a stream; its outcome is a list of its items"):
        forked(tmp_path / "parent", agent=careless, at=2, change=change)
    assert [file.name for file in tmp_path.iterdir()] == ["parent"]


@reenact.tool
def order_all(due: str) -> list[str]:
    """Tells something of its own, and something that depends on *due*."""
    return [tell("always the same"), tell(f"due {due}"), find("C-3")["order"]]


def test_what_is_inside_a_call_is_not_made_again(tmp_path: Path) -> None:
    """A tool that must run calls others: those that equal recorded ones are answered from there."""

    def ordering() -> list[str]:
        return order_all(find("A-1")["due"][0])

    with reenact.capture(tmp_path / "parent"):
        ordering()
    LIVE.clear()
    run = forked(
        tmp_path / "parent",
        agent=ordering,
        at=2,
        change={"set": {"$.due[0]": "Friday"}},
        on_miss="live",
    )
    assert LIVE == ["due Friday"]
    assert (run.shares.recording, run.shares.live) == (2, 2)
    events = [json.loads(line) for line in CaptureReader(run.path).lines()]
    called = {event["data"]["callId"]: event["data"] for event in events if event["type"] == "tool_call"}
    outer = next(call_id for call_id, data in called.items() if data["tool"] == "order_all")
    assert [data["tool"] for data in called.values() if data.get("parent") == outer] == [
        "tell",
        "tell",
        "find",
    ]


def test_a_tool_is_called_that_another_had_called(tmp_path: Path) -> None:
    """What was inside a call is answered where the agent now makes it itself, and is not told twice."""

    def ordering() -> Any:
        due = find("A-1")["due"][0]
        first = tell("always the same") if due == "Friday" else None
        return [first, order_all("Thursday")]

    with reenact.capture(tmp_path / "parent"):
        ordering()
    LIVE.clear()
    run = forked(tmp_path / "parent", agent=ordering, at=2, change={"set": {"$.due[0]": "Friday"}})
    assert LIVE == []
    events = [json.loads(line) for line in CaptureReader(run.path).lines()]
    told = [event["data"] for event in events if event["data"].get("args") == {"text": "always the same"}]
    assert [data.get("parent") for data in told] == [None]


def test_a_task_that_made_no_call_makes_one_now(tmp_path: Path) -> None:
    """It is called as it was when only the task below it made one."""

    async def below() -> str:
        return tell("below")

    async def task() -> str:
        told = await asyncio.create_task(below())
        return tell("new") if told == "changed" else told

    async def main() -> str:
        return await asyncio.create_task(task())

    with reenact.capture(tmp_path / "parent"):
        asyncio.run(main())
    LIVE.clear()
    run = forked(
        tmp_path / "parent",
        agent=lambda: asyncio.run(main()),
        at=2,
        change={"replace": "changed"},
        on_miss="live",
    )
    assert LIVE == ["new"]
    events = map(json.loads, CaptureReader(run.path).lines())
    lanes = [event["data"]["lane"] for event in events if event["type"] == "tool_call"]
    assert lanes[0].startswith(f"{lanes[1]}.")


def test_what_cannot_be_recorded_is_no_fork(parent: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Said in one line, and nothing is left of it."""

    def refuse(self: object, event: bytes) -> None:
        raise OSError("the disk is full")

    monkeypatch.setattr("reenact.forks.recorder.NewEvents.append", refuse)
    options = {"at": 4, "change": {"set": {"$.due[0]": "Friday"}}, "on_miss": "live"}
    with pytest.raises(reenact.ReenactError, match=r"^recording failed: the disk is full; no fork was made$"):
        forked(parent, **options)
    assert [file.name for file in parent.parent.iterdir()] == ["parent"]


@pytest.mark.parametrize("path", ["$['a \\'key\\'']", "$[\"a 'key'\"]"])
def test_keys_may_stand_in_either_quotes(path: str) -> None:
    """As JSONPath has them, the empty one too."""
    assert set_at({"a 'key'": {"": 1}}, f"{path}['']", 2) == {"a 'key'": {"": 2}}

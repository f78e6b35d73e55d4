"""``@reenact.tool``: each kind of function is recorded once and answered from the recording ever after."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import inspect
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import reenact
from reenact.errors import FormatError
from tests.twice import captured, events, replayed, twice

went_live: list[Any] = []


@pytest.fixture(autouse=True)
def _forget_calls() -> None:
    went_live.clear()


def live(*what: Any) -> None:
    went_live.append(what)


def once(path: Path, agent: Any) -> Any:
    """What *agent* comes to, in both runs the same; nothing went live in the second."""
    first = captured(path, agent)
    calls = len(went_live)
    assert calls
    assert replayed(path, agent) == first
    assert len(went_live) == calls
    return first


@reenact.tool
def search(query: str, limit: int = 10, *, exact: bool = False) -> list[str]:
    live(query, limit, exact)
    return [f"{query} {number}" for number in range(limit)][:2]


@reenact.tool
async def fetch(url: str) -> dict[str, Any]:
    live(url)
    await asyncio.sleep(0)
    return {"url": url, "body": "…"}


@reenact.tool
def gather_all(first: int, /, *rest: int, **options: Any) -> Any:
    live(first, rest, options)
    return [first, list(rest), options]


class Shop:
    def __init__(self, name: str) -> None:
        self.name = name

    @reenact.tool
    def price(self, item: str) -> int:
        live(self.name, item)
        return len(item)

    @classmethod
    @reenact.tool
    def open_at(cls, day: str) -> str:
        live(day)
        return f"{cls.__name__} {day}"

    @staticmethod
    @reenact.tool
    def currency() -> str:
        live()
        return "EUR"

    @reenact.tool
    @classmethod
    def closed_at(cls, day: str) -> str:
        live(day)
        return f"{cls.__name__} not {day}"

    @reenact.tool
    @staticmethod
    def country(code: str) -> str:
        live(code)
        return code.upper()

    @reenact.tool
    async def stock(self, item: str) -> int:
        live(item)
        return 3


def test_a_function(tmp_path: Path) -> None:
    """A plain function is called once, in the run that is recorded."""
    assert once(tmp_path / "run", lambda run: search("bolt")) == ["bolt 0", "bolt 1"]


def test_a_coroutine_function(tmp_path: Path) -> None:
    """So is a coroutine function."""
    assert once(tmp_path / "run", lambda run: fetch("x"))["url"] == "x"


def test_methods_of_every_kind(tmp_path: Path) -> None:
    """Methods, class methods and static methods, whichever decorator comes first; ``self`` is no argument."""

    async def agent(run: reenact.Run) -> list[Any]:
        shop = Shop("corner")
        return [
            shop.price("bolt"),
            Shop.open_at("monday"),
            shop.open_at(day="monday"),
            Shop.closed_at("sunday"),
            Shop.currency(),
            shop.country("de"),
            await shop.stock("bolt"),
        ]

    once(tmp_path / "run", agent)
    calls = [(data["tool"], data["args"]) for kind, data in events(tmp_path / "run") if kind == "tool_call"]
    assert calls == [
        ("Shop.price", {"item": "bolt"}),
        ("Shop.open_at", {"day": "monday"}),
        ("Shop.open_at", {"day": "monday"}),
        ("Shop.closed_at", {"day": "sunday"}),
        ("Shop.currency", {}),
        ("Shop.country", {"code": "de"}),
        ("Shop.stock", {"item": "bolt"}),
    ]


SAME_CALLS = {
    "keyword": lambda: search(query="bolt"),
    "default given": lambda: search("bolt", 10),
    "all keywords": lambda: search(exact=False, limit=10, query="bolt"),
}


@pytest.mark.parametrize("name", SAME_CALLS)
def test_how_arguments_are_passed_does_not_matter(tmp_path: Path, name: str) -> None:
    """Positional, keyword and default arguments make the same call."""
    captured(tmp_path / "run", lambda run: search("bolt"))
    replayed(tmp_path / "run", lambda run: SAME_CALLS[name]())


OTHER_CALLS = {
    "other argument": lambda: search("nut"),
    "other default": lambda: search("bolt", 9),
    "other keyword": lambda: search("bolt", exact=True),
}


@pytest.mark.parametrize("name", OTHER_CALLS)
def test_other_arguments_are_another_call(tmp_path: Path, name: str) -> None:
    """Any other argument is refused."""
    captured(tmp_path / "run", lambda run: search("bolt"))
    with pytest.raises(reenact.Diverged, match="event_payload_mismatch"):
        replayed(tmp_path / "run", lambda run: OTHER_CALLS[name]())


def test_variable_arguments(tmp_path: Path) -> None:
    """``*args`` and ``**kwargs`` are arguments like others; the order of keywords does not matter."""
    captured(tmp_path / "run", lambda run: gather_all(1, 2, 3, a=4, b=5))
    assert replayed(tmp_path / "run", lambda run: gather_all(1, 2, 3, b=5, a=4)) == [
        1,
        [2, 3],
        {"a": 4, "b": 5},
    ]


@pytest.mark.parametrize("arguments", [{"query": "a", "nonsense": 1}, {}, {"limit": 3}])
def test_a_wrong_call_fails_as_it_would_without_us(tmp_path: Path, arguments: dict[str, Any]) -> None:
    """A call that Python refuses is refused with Python's own words, in both runs."""

    def agent(run: reenact.Run) -> str:
        with pytest.raises(TypeError) as refused:
            search(**arguments)
        return str(refused.value)

    with pytest.raises(TypeError) as refused:
        search(**arguments)
    assert twice(tmp_path / "run", agent) == str(refused.value)


def test_too_many_arguments_fail_as_they_would_without_us(tmp_path: Path) -> None:
    """So is one with more arguments than the function takes."""

    def agent(run: reenact.Run) -> str:
        with pytest.raises(TypeError) as refused:
            search("a", 1, 2, 3)  # type: ignore[misc]
        return str(refused.value)

    twice(tmp_path / "run", agent)


def test_the_tool_looks_like_its_function() -> None:
    """Frameworks read a tool's name, signature, docstring and kind."""

    def shown(number: int = 3) -> str:
        """What it does."""
        return str(number)

    wrapped = reenact.tool(shown)
    assert inspect.signature(wrapped) == inspect.signature(shown)
    assert (wrapped.__name__, wrapped.__doc__) == ("shown", "What it does.")
    assert inspect.iscoroutinefunction(fetch)
    assert inspect.isgeneratorfunction(count)
    assert inspect.isasyncgenfunction(count_async)


def test_a_tool_of_another_name(tmp_path: Path) -> None:
    """``name=`` is what is recorded, so that a function can be renamed."""

    @reenact.tool(name="lookup")
    def first(x: int) -> int:
        return x

    @reenact.tool(name="lookup")
    def renamed(x: int) -> int:
        raise AssertionError("went live")

    captured(tmp_path / "run", lambda run: first(1))
    assert replayed(tmp_path / "run", lambda run: renamed(1)) == 1


def test_anything_callable(tmp_path: Path) -> None:
    """Built-ins, partials and objects with ``__call__`` are tools too."""

    class Adder:
        def __call__(self, x: int) -> int:
            live(x)
            return x + 1

    add = reenact.tool(Adder(), name="add")
    length = reenact.tool(len)
    twelve = reenact.tool(functools.partial(search, "bolt", 12), name="twelve")
    assert once(tmp_path / "run", lambda run: [add(1), length("abc"), twelve()])[:2] == [2, 3]


def test_outside_a_run_a_tool_is_its_function() -> None:
    """Nothing is recorded and nothing is changed."""
    assert search("a", 1) == ["a 0"]
    assert list(count(2)) == [0, 1]


# Errors


class Refused(Exception):
    def __init__(self, reason: str, *, status: int) -> None:
        super().__init__(reason)
        self.status = status


@reenact.tool
def refuse(status: int) -> None:
    live(status)
    raise Refused("no", status=status)


@reenact.tool
async def refuse_later(status: int) -> None:
    live(status)
    await asyncio.sleep(0)
    raise Refused("no", status=status) from KeyError("inner")


def test_an_exception_is_raised_again(tmp_path: Path) -> None:
    """With its class, arguments and attributes, so that the agent's handling of it is replayed too."""

    async def agent(run: reenact.Run) -> list[Any]:
        with pytest.raises(Refused) as first:
            refuse(429)
        with pytest.raises(Refused) as second:
            await refuse_later(500)
        return [
            first.value.args,
            first.value.status,
            second.value.status,
            repr(second.value.__cause__),
        ]

    assert once(tmp_path / "run", agent) == [("no",), 429, 500, "KeyError('inner')"]


@pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt(), asyncio.CancelledError("inner")])
def test_what_is_not_an_exception_is_an_outcome_too(tmp_path: Path, error: BaseException) -> None:
    """Also what ``except Exception`` does not catch, when the tool raised it by itself."""

    @reenact.tool
    def stop() -> None:
        live()
        raise error

    def agent(run: reenact.Run) -> str:
        with pytest.raises(type(error)) as stopped:
            stop()
        return repr(stopped.value)

    once(tmp_path / "run", agent)


def test_a_cancellation_from_within_is_an_outcome(tmp_path: Path) -> None:
    """A tool whose inner task was cancelled by itself has failed; nobody gave up waiting for it."""

    @reenact.tool
    async def cancels_its_own() -> None:
        live()
        inner = asyncio.ensure_future(asyncio.sleep(60))
        await asyncio.sleep(0)
        inner.cancel()
        await inner

    async def agent(run: reenact.Run) -> str:
        try:
            await cancels_its_own()
        except asyncio.CancelledError:
            return "cancelled inside"
        return "went through"

    assert once(tmp_path / "run", agent) == "cancelled inside"


@reenact.tool
async def slow(seconds: float) -> str:
    live(seconds)
    await asyncio.sleep(seconds)
    return "done"


def test_a_call_that_timed_out(tmp_path: Path) -> None:
    """The agent's own timeout fires again."""

    async def agent(run: reenact.Run) -> str:
        try:
            async with asyncio.timeout(0.02):
                return await slow(60)
        except TimeoutError:
            return "timed out"

    assert once(tmp_path / "run", agent) == "timed out"


def test_a_call_that_was_cancelled(tmp_path: Path) -> None:
    """A task that is cancelled in its call is cancelled there again."""

    async def agent(run: reenact.Run) -> list[Any]:
        task = asyncio.create_task(slow(60))
        await asyncio.sleep(0.01)
        task.cancel()
        results = await asyncio.gather(task, return_exceptions=True)
        return [type(result).__name__ for result in results]

    assert once(tmp_path / "run", agent) == ["CancelledError"]


def test_a_timeout_inside_the_tool(tmp_path: Path) -> None:
    """A timeout that the tool itself set is the tool's failure."""

    @reenact.tool
    async def impatient() -> None:
        live()
        async with asyncio.timeout(0.01):
            await asyncio.sleep(60)

    async def agent(run: reenact.Run) -> str:
        try:
            await impatient()
        except TimeoutError as error:
            return repr(error)
        return "went through"

    assert once(tmp_path / "run", agent) == "TimeoutError()"


# Values


@dataclass
class Basket:
    items: tuple[str, ...]


@reenact.tool
def give(value: Any) -> Any:
    live()
    return value


def test_values_keep_their_types(tmp_path: Path) -> None:
    """What is not JSON comes back equal and of the same type; the formats' tests have the full list."""
    values: list[Any] = [Basket(("a",)), {1: {2}}, b"\xff", 2**100, "\ud800"]
    assert once(tmp_path / "run", lambda run: [give(value) for value in values]) == values


def test_the_order_of_members_in_an_answer_is_kept(tmp_path: Path) -> None:
    """An agent that prints an answer into its next prompt prints it in the same order."""
    assert once(tmp_path / "run", lambda run: list(give({"b": 1, "a": 2}))) == ["b", "a"]


def test_the_order_of_members_in_arguments_does_not_matter(tmp_path: Path) -> None:
    """Also where the names are not JSON's or start with our own sign."""
    captured(
        tmp_path / "run", lambda run: [give({"b": 1, "a": 2}), give({"$b": 1, "$a": 2}), give({2: 1, 1: 2})]
    )
    replayed(
        tmp_path / "run", lambda run: [give({"a": 2, "b": 1}), give({"$a": 2, "$b": 1}), give({1: 2, 2: 1})]
    )


def test_an_opaque_result_is_refused_in_replay(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A result that cannot be recorded does not break the run; recording and replay say what it was."""

    class Connection:
        pass

    with reenact.capture(tmp_path / "run"):
        for _ in range(2):
            give(Connection())
    [told] = [record.getMessage() for record in caplog.records]
    assert "give returned a " in told
    assert "Connection, which cannot be recorded: a replay cannot answer the call" in told
    with pytest.raises(FormatError, match=r"Connection, which cannot be recorded; let the tool"):
        replayed(tmp_path / "run", lambda run: give(Connection()))


def test_arguments_are_recorded_as_they_were_when_the_call_was_made(tmp_path: Path) -> None:
    """A tool that changes its argument does not change the record of the call."""

    @reenact.tool
    def drain(items: list[int]) -> int:
        live()
        total = sum(items)
        items.clear()
        return total

    assert once(tmp_path / "run", lambda run: drain([1, 2])) == 3


# Generators


@reenact.tool
def count(limit: int, fail: bool = False) -> Iterator[int]:
    live(limit)
    yield from range(limit)
    if fail:
        raise Refused("enough", status=limit)
    return "counted"  # type: ignore[return-value]


@reenact.tool
async def count_async(limit: int, fail: bool = False) -> AsyncIterator[int]:
    live(limit)
    for number in range(limit):
        await asyncio.sleep(0)
        yield number
    if fail:
        raise Refused("enough", status=limit)


@pytest.mark.parametrize("limit", [0, 1, 5])
def test_a_generator(tmp_path: Path, limit: int) -> None:
    """All items and the return value."""

    def agent(run: reenact.Run) -> Any:
        items = []

        def through() -> Iterator[Any]:
            items.append((yield from count(limit)))

        return [list(through()), items]

    assert once(tmp_path / "run", agent) == [list(range(limit)), ["counted"]]


@pytest.mark.parametrize("limit", [0, 3])
def test_a_generator_that_fails_on_the_way(tmp_path: Path, limit: int) -> None:
    """The items that came, then the exception."""

    def agent(run: reenact.Run) -> Any:
        seen: list[Any] = []
        try:
            for item in count(limit, fail=True):
                seen.append(item)  # noqa: PERF402 — what came before the failure counts
        except Refused as error:
            seen.append(error.status)
        return seen

    assert once(tmp_path / "run", agent) == [*range(limit), limit]


def test_a_generator_left_half_way(tmp_path: Path) -> None:
    """Left by ``break``, closed by hand, or never touched again: all replay."""
    kept: list[Any] = []

    def agent(run: reenact.Run) -> list[int]:
        seen = []
        for item in count(5):
            seen.append(item)
            if item == 1:
                break
        with contextlib.closing(count(4)) as items:
            seen.append(next(items))
        kept.append(count(3))
        seen.append(next(kept[-1]))
        return seen

    assert once(tmp_path / "run", agent) == [0, 1, 0, 0]


def test_reading_further_than_recorded_is_a_divergence(tmp_path: Path) -> None:
    """Nobody knows what would have come."""

    def read(items: int) -> list[int]:
        with contextlib.closing(count(5)) as numbers:
            return [next(numbers) for _ in range(items)]

    captured(tmp_path / "run", lambda run: read(2))
    assert replayed(tmp_path / "run", lambda run: read(2)) == [0, 1]
    with pytest.raises(reenact.Diverged, match="read further than it was recorded"):
        replayed(tmp_path / "run", lambda run: read(3))


def test_reading_less_than_recorded_is_no_divergence(tmp_path: Path) -> None:
    """What was left unread changes nothing outside."""

    def read(items: int) -> list[int]:
        with contextlib.closing(count(5)) as numbers:
            return [next(numbers) for _ in range(items)]

    captured(tmp_path / "run", lambda run: read(4))
    assert replayed(tmp_path / "run", lambda run: read(2)) == [0, 1]


def test_a_generator_never_started_is_no_call(tmp_path: Path) -> None:
    """As without us: nothing happens before the first item is asked for."""

    def agent(run: reenact.Run) -> int:
        count(5)
        return len(search("x"))

    twice(tmp_path / "run", agent)
    assert [kind for kind, _ in events(tmp_path / "run")] == ["tool_call", "tool_result"]


@reenact.tool
def echo() -> Iterator[Any]:
    live()
    heard: Any = None
    while heard != "stop":
        try:
            heard = yield f"heard {heard}"
        except ValueError as error:
            heard = repr(error)


def test_values_sent_and_errors_thrown_reach_the_generator(tmp_path: Path) -> None:
    """``send`` and ``throw`` work as without us."""

    def agent(run: reenact.Run) -> list[Any]:
        talk: Any = echo()
        return [next(talk), talk.send("a"), talk.throw(ValueError("b")), next(talk, None), next(talk, "end")]

    bare = agent(reenact.capture(tmp_path / "none", mode="off"))
    assert once(tmp_path / "run", agent) == bare


def test_an_async_generator(tmp_path: Path) -> None:
    """All items; the exception on the way; left half-way."""

    async def agent(run: reenact.Run) -> list[Any]:
        seen: list[Any] = [item async for item in count_async(3)]
        try:
            async for item in count_async(2, fail=True):
                seen.append(item)  # noqa: PERF401 — what came before the failure counts
        except Refused as error:
            seen.append(error.status)
        async with contextlib.aclosing(count_async(9)) as items:
            async for item in items:
                seen.append(item)
                if item == 1:
                    break
        return seen

    assert once(tmp_path / "run", agent) == [0, 1, 2, 0, 1, 2, 0, 1]


@reenact.tool
async def echo_async() -> AsyncIterator[Any]:
    live()
    heard: Any = None
    while heard != "stop":
        try:
            heard = yield f"heard {heard}"
        except ValueError as error:
            heard = repr(error)


def test_values_sent_and_errors_thrown_reach_the_async_generator(tmp_path: Path) -> None:
    """``asend`` and ``athrow`` work as without us."""

    async def agent(run: reenact.Run) -> list[Any]:
        talk: Any = echo_async()
        said = [await anext(talk), await talk.asend("a"), await talk.athrow(ValueError("b"))]
        await talk.aclose()
        return said

    assert once(tmp_path / "run", agent) == ["heard None", "heard a", "heard ValueError('b')"]


def test_cleaning_up_belongs_to_the_generator(tmp_path: Path) -> None:
    """What a generator calls when it is closed is its own doing and does not come again in replay."""

    @reenact.tool
    def stream() -> Iterator[int]:
        live()
        try:
            yield 1
            yield 2
        finally:
            search("goodbye")

    def agent(run: reenact.Run) -> list[Any]:
        with contextlib.closing(stream()) as items:
            first = next(items)
        return [first, *search("after")]

    assert once(tmp_path / "run", agent) == [1, "after 0", "after 1"]


def test_cleaning_up_belongs_to_the_async_generator(tmp_path: Path) -> None:
    """The same on an event loop."""

    @reenact.tool
    async def stream() -> AsyncIterator[int]:
        live()
        try:
            yield 1
            yield 2
        finally:
            await fetch("goodbye")

    async def agent(run: reenact.Run) -> list[Any]:
        async with contextlib.aclosing(stream()) as items:
            first = await anext(items)
        return [first, await fetch("after")]

    once(tmp_path / "run", agent)


# Streams and what happens between their items


def test_calls_between_two_items_are_the_agents_own(tmp_path: Path) -> None:
    """A consumer that calls tools while it reads a stream replays with both in place."""

    def agent(run: reenact.Run) -> list[Any]:
        return [[item, search(str(item), 1)] for item in count(3)]

    once(tmp_path / "run", agent)
    assert [kind for kind, _ in events(tmp_path / "run")].count("tool_call") == 4


def test_calls_inside_and_between_items(tmp_path: Path) -> None:
    """A stream whose source makes calls of its own: only the agent's are expected again."""

    @reenact.tool
    def searching(words: list[str]) -> Iterator[str]:
        live()
        for word in words:
            yield search(word, 1)[0]

    def agent(run: reenact.Run) -> list[Any]:
        return [[found, search(found, 2)] for found in searching(["a", "b", "c"])]

    once(tmp_path / "run", agent)


def test_two_streams_read_in_turns(tmp_path: Path) -> None:
    """Streams that overlap each keep their own items."""

    def agent(run: reenact.Run) -> list[Any]:
        left, right = count(4), count(3)
        pairs = [[one, next(right)] for one, _ in zip(left, range(2), strict=False)]
        return [pairs, list(right), list(left)]

    once(tmp_path / "run", agent)


def test_a_stream_begins_before_other_events(tmp_path: Path) -> None:
    """The first item is there when it was there, not when the stream ended."""

    @reenact.tool
    async def trickle() -> AsyncIterator[int]:
        live()
        for number in range(3):
            yield number
            await asyncio.sleep(0.02)

    async def agent(run: reenact.Run) -> list[Any]:
        order: list[Any] = []

        async def read() -> None:
            async for item in trickle():
                order.append(item)
                if item == 0:
                    order.append(await fetch("in the middle"))

        await read()
        return order

    assert once(tmp_path / "run", agent)[0] == 0


def test_a_reader_that_another_task_cancels(tmp_path: Path) -> None:
    """A stream task that is cancelled between two items is cancelled again, not said to read on."""

    @reenact.tool
    async def endless() -> AsyncIterator[int]:
        live()
        number = 0
        while True:
            yield number
            number += 1
            await asyncio.sleep(0.005)

    async def agent(run: reenact.Run) -> list[int]:
        queue: asyncio.Queue[int] = asyncio.Queue()

        async def read() -> None:
            async for item in endless():
                queue.put_nowait(item)

        reader = asyncio.create_task(read())
        seen = [await queue.get() for _ in range(3)]
        reader.cancel()
        await asyncio.gather(reader, return_exceptions=True)
        return seen

    assert once(tmp_path / "run", agent) == [0, 1, 2]


def test_other_tasks_run_between_two_items(tmp_path: Path) -> None:
    """A replayed stream lets the loop go on between its items, as the recorded one did."""

    async def agent(run: reenact.Run) -> bool:
        was_seen: list[int] = []

        async def read() -> None:
            async for item in count_async(5):
                was_seen.append(item)  # noqa: PERF401 — one at a time is the point

        task = asyncio.create_task(read())
        while not was_seen:
            await asyncio.sleep(0)
        early = len(was_seen) < 5
        await task
        return early

    assert once(tmp_path / "run", agent) is True


# Nesting


@reenact.tool
def outer(word: str, run: Any = None) -> list[Any]:
    live(word)
    return [search(word), inner(word)]


@reenact.tool
def inner(word: str) -> Any:
    live(word)
    return give(word)


def test_inner_calls_are_recorded_but_not_expected(tmp_path: Path) -> None:
    """A tool that calls tools is answered as one; its own calls are in the record, under their parent."""

    def agent(run: reenact.Run) -> Any:
        return [outer("a"), search("b")]

    once(tmp_path / "run", agent)
    calls = {data["callId"]: data for kind, data in events(tmp_path / "run") if kind == "tool_call"}
    parents = {data["tool"]: calls.get(data.get("parent"), {}).get("tool") for data in calls.values()}
    assert parents == {"outer": None, "inner": "outer", "give": "inner", "search": None}


def test_the_clock_inside_a_tool_is_not_expected(tmp_path: Path) -> None:
    """So are reads of time and chance, in tasks and threads that the tool starts as well."""

    async def agent(run: reenact.Run) -> Any:
        @reenact.tool
        async def timed() -> list[float]:
            live()
            one = asyncio.create_task(fetch("a"))
            two = asyncio.to_thread(run.clock.now)
            await asyncio.gather(one, two)
            return [run.clock.now(), run.rng.random()]

        return [await timed(), run.clock.now()]

    once(tmp_path / "run", agent)

"""Tools that really run in replay: their own outside calls are real, everybody else's are refused."""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import reenact
from tests.greeting import greeting
from tests.twice import captured, replayed

ran: list[str] = []


@pytest.fixture(autouse=True)
def _forget() -> None:
    ran.clear()


@reenact.tool
def price(item: str) -> int:
    ran.append(f"price {item}")
    return len(ran)


@reenact.tool
def basket(items: list[str]) -> dict[str, Any]:
    """A tool that calls a tool."""
    ran.append("basket")
    return {"total": sum(price(item) for item in items), "lines": len(items)}


def test_a_tool_that_passes_through_really_runs(tmp_path: Path) -> None:
    """Its answer is its own, not the recorded one."""
    captured(tmp_path / "run", lambda run: price("bolt"))
    assert replayed(tmp_path / "run", lambda run: price("bolt"), passthrough=["price"]) == 2
    assert replayed(tmp_path / "run", lambda run: price("bolt")) == 1


def test_what_it_calls_is_answered_from_the_capture(tmp_path: Path) -> None:
    """Recorded calls inside it are served; the tool around them runs."""
    first = captured(tmp_path / "run", lambda run: basket(["a", "b"]))
    ran.clear()
    again = replayed(tmp_path / "run", lambda run: basket(["a", "b"]), passthrough=["basket"])
    assert again == first
    assert ran == ["basket"]


def test_what_it_calls_must_be_what_it_called(tmp_path: Path) -> None:
    """A tool that was changed and now asks for something else diverges."""
    words = ["a"]

    @reenact.tool
    def outer() -> int:
        return sum(price(word) for word in words)

    captured(tmp_path / "run", lambda run: outer())
    words[0] = "b"
    with pytest.raises(reenact.Diverged) as caught:
        replayed(tmp_path / "run", lambda run: outer(), passthrough=["outer"])
    assert caught.value.divergence.json_path == "$.data.args.item"


def test_what_it_no_longer_calls_is_missing(tmp_path: Path) -> None:
    """Calls inside it that do not come are left over like any others."""
    words = ["a", "b"]

    @reenact.tool
    def outer() -> int:
        return sum(price(word) for word in words)

    captured(tmp_path / "run", lambda run: outer())
    words.pop()
    with pytest.raises(reenact.Diverged, match="event_missing"):
        replayed(tmp_path / "run", lambda run: outer(), passthrough=["outer"])


def test_a_call_that_passes_through_must_be_recorded(tmp_path: Path) -> None:
    """Its arguments are compared like any other call's, before it runs."""
    captured(tmp_path / "run", lambda run: price("bolt"))
    ran.clear()
    with pytest.raises(reenact.Diverged, match="event_payload_mismatch"):
        replayed(tmp_path / "run", lambda run: price("nut"), passthrough=["price"])
    assert ran == []


def test_a_stream_that_passes_through(tmp_path: Path) -> None:
    """Each of its pulls may make calls, which are served; the agent's between them as well."""

    @reenact.tool
    def prices(items: list[str]) -> Iterator[int]:
        for item in items:
            ran.append(f"pulled {item}")
            yield price(item)

    def agent(run: reenact.Run) -> list[Any]:
        return [[found, price("between")] for found in prices(["a", "b", "c"])]

    first = captured(tmp_path / "run", agent)
    ran.clear()
    assert replayed(tmp_path / "run", agent, passthrough=["prices"]) == first
    assert ran == ["pulled a", "pulled b", "pulled c"]


def test_an_async_stream_that_passes_through(tmp_path: Path) -> None:
    """The same on an event loop, with tasks inside."""

    @reenact.tool
    async def prices(items: list[str]) -> AsyncIterator[int]:
        for item in items:
            ran.append(f"pulled {item}")
            yield sum(
                await asyncio.gather(asyncio.to_thread(price, item), asyncio.to_thread(price, item + "2"))
            )

    async def agent(run: reenact.Run) -> list[Any]:
        return [found async for found in prices(["a", "b"])]

    first = captured(tmp_path / "run", agent)
    ran.clear()
    assert replayed(tmp_path / "run", agent, passthrough=["prices"]) == first
    assert ran == ["pulled a", "pulled b"]


def test_parallel_tools_that_pass_through(tmp_path: Path) -> None:
    """Each is served the calls made inside its own recording."""

    def agent(run: reenact.Run) -> list[Any]:
        with ThreadPoolExecutor(4) as pool:
            return list(pool.map(lambda name: basket([name, name + "2"]), "abcdef"))

    first = captured(tmp_path / "run", agent)
    ran.clear()
    assert replayed(tmp_path / "run", agent, passthrough=["basket"]) == first
    assert ran == ["basket"] * 6


def test_the_clock_inside_it_is_recorded(tmp_path: Path) -> None:
    """Time and chance inside a tool that passes through are the recorded ones."""

    def agent(run: reenact.Run) -> Any:
        @reenact.tool
        def stamped() -> list[Any]:
            ran.append("stamped")
            return [run.clock.now(), run.rng.random(), str(run.uuid4())]

        return stamped()

    first = captured(tmp_path / "run", agent)
    assert replayed(tmp_path / "run", agent, passthrough=["stamped"]) == first
    assert len(ran) == 2


# Outside calls


@pytest.fixture
def port() -> Iterator[int]:
    with greeting() as port:
        yield port


def hello(port: int) -> str:
    with socket.create_connection(("127.0.0.1", port)) as line:
        return line.recv(100).decode()


def spoken() -> str:
    return subprocess.run(
        [sys.executable, "-c", "print('hi')"], capture_output=True, text=True, check=True
    ).stdout


@reenact.tool
def call_out(port: int) -> list[str]:
    return [hello(port), spoken()]


@reenact.tool
def call_out_in_a_thread(port: int) -> str:
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(hello, port).result()


@reenact.tool
async def call_out_async(port: int) -> str:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    answer = await reader.read(100)
    writer.close()
    await writer.wait_closed()
    return answer.decode()


ALL = ["call_out", "call_out_in_a_thread", "call_out_async"]


def test_its_own_sockets_and_processes_are_real(tmp_path: Path, port: int) -> None:
    """Also in threads that it starts and on event loops."""

    async def agent(run: reenact.Run) -> list[Any]:
        return [call_out(port), call_out_in_a_thread(port), await call_out_async(port)]

    expected = [["hello", "hi\n"], "hello", "hello"]
    assert captured(tmp_path / "run", agent, allow="loopback") == expected
    with reenact.replay(tmp_path / "run", passthrough=ALL) as run:
        assert asyncio.run(agent(run)) == expected
    assert run.blocked == []


def test_everybody_elses_are_refused(tmp_path: Path, port: int) -> None:
    """Before, after and beside the tool that passes through."""

    def agent(run: reenact.Run) -> Any:
        found: list[Any] = [call_out(port)]
        for attempt in (lambda: hello(port), spoken):
            try:
                found.append(attempt())
            except Exception as error:
                found.append(type(error).__name__)
        return found

    with reenact.capture(tmp_path / "run", sources=()) as capture:
        agent(capture)
    assert len(capture.warnings) == 2  # the recording says so already
    with (
        pytest.raises(reenact.LiveCallBlocked),
        reenact.replay(tmp_path / "run", passthrough=ALL) as run,
    ):
        assert agent(run) == [["hello", "hi\n"], "LiveCallBlocked", "LiveCallBlocked"]
    assert [call.kind for call in run.blocked] == ["connect", "spawn"]


def test_beside_it_nothing_goes_live(tmp_path: Path, port: int) -> None:
    """While the tool is out, another thread of the agent is not."""
    inside, tried = threading.Event(), threading.Event()

    @reenact.tool
    def slow(port: int) -> str:
        inside.set()
        tried.wait(5)
        return hello(port)

    def other() -> str:
        inside.wait(5)
        try:
            return hello(port)
        except Exception as error:
            return type(error).__name__
        finally:
            tried.set()

    def agent(run: reenact.Run) -> Any:
        inside.clear(), tried.clear()
        with ThreadPoolExecutor(2) as pool:
            return [job.result() for job in [pool.submit(slow, port), pool.submit(other)]]

    assert captured(tmp_path / "run", agent, allow="loopback") == ["hello", "hello"]
    with (
        pytest.raises(reenact.LiveCallBlocked),
        reenact.replay(tmp_path / "run", passthrough=["slow"]) as run,
    ):
        assert agent(run) == ["hello", "LiveCallBlocked"]
    assert len(run.blocked) == 1


def test_without_permission_nothing_passes_through(tmp_path: Path, port: int) -> None:
    """The same tools are answered from the capture when they are not named."""
    captured(tmp_path / "run", lambda run: [call_out(port), call_out_in_a_thread(port)])
    assert replayed(tmp_path / "run", lambda run: [call_out(port), call_out_in_a_thread(port)]) == [
        ["hello", "hi\n"],
        "hello",
    ]

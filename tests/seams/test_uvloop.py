"""On uvloop, which is an event loop in C: the same lanes, the same order, the same refusals."""

from __future__ import annotations

import asyncio
import random
import socket
import sys
import tempfile
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import uvloop
from hypothesis import given, settings
from hypothesis import strategies as st

import reenact
from tests.replayer.programs import Step, World, async_steps, run_program


@settings(max_examples=100)
@given(program=async_steps, seed=st.integers(0, 2**16))
def test_programs_recorded_on_uvloop_replay_on_any_loop(program: Step, seed: int) -> None:
    """Each call gets its own outcome, on uvloop and on asyncio's."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run"
        world = World(random.Random(seed))
        with reenact.capture(path):
            recorded = run_program(program, world, uvloop.new_event_loop)
        live_calls = world.live_calls
        for loop_factory in (uvloop.new_event_loop, None):
            with reenact.replay(path, stall_s=5):
                assert run_program(program, world, loop_factory) == recorded
        assert world.live_calls == live_calls


def test_completion_order_repeats(tmp_path: Path) -> None:
    """Although the loop does not show what is due, and nothing takes any time in replay."""
    delays_ms = random.Random(1).sample(range(0, 180, 15), 12)

    @reenact.tool
    async def look_up(place: int) -> int:
        await asyncio.sleep(delays_ms[place] / 1000)
        return place

    async def deeper(place: int, depth: int) -> int:
        if depth:
            return await asyncio.create_task(deeper(place, depth - 1))
        return await look_up(place)

    async def main() -> list[int]:
        tasks = [deeper(place, place % 5) for place in range(len(delays_ms))]
        return [await done for done in asyncio.as_completed(tasks)]

    with reenact.capture(tmp_path / "run"):
        recorded = uvloop.run(main())
    for _ in range(5):
        with reenact.replay(tmp_path / "run") as run:
            assert uvloop.run(main()) == recorded
        assert not run.notes


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(0.05)
        yield listener


Escape = Callable[[Any, int], Awaitable[Any]]
ESCAPES: dict[str, tuple[Escape, str]] = {
    "a connection": (
        lambda loop, port: loop.create_connection(asyncio.Protocol, "127.0.0.1", port),
        "127.0.0.1",
    ),
    "a connection by name": (
        lambda loop, port: loop.create_connection(asyncio.Protocol, "somewhere.example", port),
        "somewhere.example",
    ),
    "a stream": (lambda _, port: asyncio.open_connection("localhost", port), "localhost"),
    "a local socket": (
        lambda loop, _: loop.create_unix_connection(asyncio.Protocol, "/tmp/nobody.sock"),
        "/tmp/nobody.sock",
    ),
    "datagrams": (
        lambda loop, port: loop.create_datagram_endpoint(
            asyncio.DatagramProtocol, remote_addr=("127.0.0.1", port)
        ),
        "127.0.0.1",
    ),
    "a lookup": (lambda loop, port: loop.getaddrinfo("somewhere.example", port), "somewhere.example"),
    "a reverse lookup": (lambda loop, port: loop.getnameinfo(("192.0.2.1", port)), "192.0.2.1"),
    "a program": (
        lambda loop, _: loop.subprocess_exec(asyncio.SubprocessProtocol, sys.executable, "-c", "1"),
        sys.executable,
    ),
    "a command line": (
        lambda loop, _: loop.subprocess_shell(asyncio.SubprocessProtocol, "echo live"),
        "echo live",
    ),
}


@pytest.mark.parametrize("way", ESCAPES)
def test_nothing_goes_live_in_replay(way: str, tmp_path: Path, listener: socket.socket) -> None:
    """Each way out that the loop has is refused, counted, and nobody is reached."""
    escape, target = ESCAPES[way]
    with reenact.capture(tmp_path / "run", sources=()):  # so that no seam answers
        pass

    async def main() -> None:
        with pytest.raises(reenact.LiveCallBlocked):
            await escape(asyncio.get_running_loop(), listener.getsockname()[1])

    with pytest.raises(reenact.LiveCallBlocked), reenact.replay(tmp_path / "run") as run:
        uvloop.run(main())
    assert target in run.blocked[0].target
    with pytest.raises(TimeoutError):
        listener.accept()


def test_no_trace_is_left(tmp_path: Path) -> None:
    """What the class inherits it inherits again, also where it was loaded while the run was open."""
    before = dict(vars(uvloop.Loop))
    with reenact.capture(tmp_path / "run"):
        assert dict(vars(uvloop.Loop)) != before
    assert dict(vars(uvloop.Loop)) == before

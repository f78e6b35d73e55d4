"""Connections that carry nothing, as programs make them to see whether somebody is there."""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
import time

import httpx
import pytest

import reenact
from reenact.errors import LiveCallBlocked
from tests.twice import events

SERVER = "import http.server, sys; http.server.HTTPServer(('127.0.0.1', int(sys.argv[1])), " + (
    "http.server.SimpleHTTPRequestHandler).serve_forever()"
)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def wait_for(port: int) -> int:
    """How often it took."""
    for count in range(500):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return count
        time.sleep(0.02)
    raise TimeoutError


def agent(port: int) -> tuple[int, int]:
    with subprocess.Popen(
        [sys.executable, "-c", SERVER, str(port)], stderr=subprocess.DEVNULL, cwd="/"
    ) as server:
        try:
            return wait_for(port), httpx.get(f"http://127.0.0.1:{port}/").status_code
        finally:
            server.terminate()


def test_a_server_that_the_agent_starts_and_waits_for_need_not_be_there(tmp_path):
    """The program is answered from the recording, and so is whether it listens."""
    port = free_port()
    with reenact.capture(tmp_path / "run", sources=["subprocess"]) as run:
        recorded = agent(port)
    assert run.warnings == []
    assert recorded[0] > 0
    with reenact.replay(tmp_path / "run") as replay:
        assert agent(port) == recorded
    assert (replay.blocked, replay.divergences) == ([], [])


def test_the_port_of_such_a_server_may_be_another_each_time(tmp_path):
    """The agent asked the system for a free one, and tells it the program that it starts."""
    with reenact.capture(tmp_path / "run", sources=["subprocess"]):
        recorded = agent(free_port())
    with reenact.replay(tmp_path / "run") as replay:
        assert agent(free_port()) == recorded
    assert replay.divergences == []
    assert len(replay.receipt.renamed) == 1


def test_another_port_that_nobody_gave_is_a_difference(tmp_path):
    port = free_port()
    with reenact.capture(tmp_path / "run", sources=["subprocess"]):
        agent(port)
    with pytest.raises(reenact.Diverged), reenact.replay(tmp_path / "run"):
        agent(port + 1 if port < 60_000 else port - 1)


def reach(port: int) -> object:
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=5) as connection:
            peer = connection.getpeername()
            connection.shutdown(socket.SHUT_RDWR)
            return peer
    except OSError as error:
        return type(error), error.errno


def test_who_is_there_and_who_is_not_is_recorded(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as server:
        ports = server.getsockname()[1], free_port()
        with reenact.capture(tmp_path / "run", sources=()):
            recorded = [reach(port) for port in ports]
    assert recorded[0] == ("127.0.0.1", ports[0])
    with reenact.replay(tmp_path / "run") as replay:
        assert [reach(port) for port in ports] == recorded
    assert replay.blocked == []


def talk(port: int) -> bytes:
    with socket.create_connection(("127.0.0.1", port), timeout=5) as connection:
        connection.sendall(b"hello")
        return connection.recv(5)


def test_what_goes_over_such_a_connection_is_refused(tmp_path, echo_port):
    """It was not recorded, and the recording said so."""
    with reenact.capture(tmp_path / "run", sources=()) as run:
        assert talk(echo_port) == b"hello"
    assert len(run.warnings) == 1
    with pytest.raises(LiveCallBlocked), reenact.replay(tmp_path / "run") as replay:
        talk(echo_port)
    assert [call.target for call in replay.blocked] == [f"127.0.0.1:{echo_port}"]


def test_where_a_run_may_go_nothing_is_recorded(tmp_path):
    """So that another port may be chosen each time."""
    for mode in (reenact.capture, reenact.replay):
        with socket.create_server(("127.0.0.1", 0)) as server:
            with mode(tmp_path / "run", allow="loopback"):
                reach(server.getsockname()[1])
            server.accept()[0].close()
    assert events(tmp_path / "run") == []


def test_where_a_replay_may_go_it_really_goes(tmp_path, echo_port):
    with reenact.capture(tmp_path / "run", sources=()):
        talk(echo_port)
    with reenact.replay(tmp_path / "run", allow=[echo_port]):
        assert talk(echo_port) == b"hello"


def test_what_an_event_loop_or_a_client_connects_is_left_alone(tmp_path, echo_port):
    async def converse() -> bytes:
        reader, writer = await asyncio.open_connection("127.0.0.1", echo_port)
        writer.write(b"hello")
        heard = await reader.readexactly(5)
        writer.close()
        return heard

    with reenact.capture(tmp_path / "run", sources=()):
        assert asyncio.run(converse()) == b"hello"
    assert events(tmp_path / "run") == []


@pytest.fixture
def echo_port():
    """Of a server that says what it hears, in another process."""
    code = (
        "import socket\ns = socket.create_server(('127.0.0.1', 0))\nprint(s.getsockname()[1], flush=True)\n"
        "while True:\n c, _ = s.accept()\n c.sendall(c.recv(5)); c.close()"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as server:
        yield int(server.stdout.readline())
        server.kill()

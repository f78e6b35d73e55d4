"""gRPC connects in C: its calls are not recorded, and the recording says so."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import grpc
import pytest

import reenact


class _Echo(grpc.GenericRpcHandler):  # type: ignore[misc]  # grpcio has no types
    def service(self, _: object) -> Any:
        return grpc.unary_unary_rpc_method_handler(lambda request, _: request + b"!")


@pytest.fixture
def server() -> Iterator[int]:
    """A server from before the run."""
    started, port = _start_server()
    yield port
    started.stop(None).wait()


def _start_server() -> tuple[Any, int]:
    server = grpc.server(ThreadPoolExecutor(1), [_Echo()])
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    return server, port


def _ask(port: int, target: str = "127.0.0.1:{}") -> object:
    with grpc.insecure_channel(target.format(port)) as channel:
        return channel.unary_unary("/echo/Echo")(b"hi", timeout=5)


async def _ask_async(port: int) -> object:
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        return await channel.unary_unary("/echo/Echo")(b"hi", timeout=5)


@pytest.mark.parametrize("target", ["127.0.0.1:{}", "dns:///127.0.0.1:{}", "ipv4:127.0.0.1:{}"])
def test_a_call_is_not_recorded_and_the_recording_says_so(tmp_path: Path, server: int, target: str) -> None:
    """Although the channel is closed at the end of the run, and the library was imported before it."""
    with reenact.capture(tmp_path / "run") as run:
        assert _ask(server, target) == b"hi!"
        _ask(server, target)
    [warning] = run.warnings
    assert "test_grpc.py" in warning
    assert f"gRPC asks 127.0.0.1:{server} outside Python" in warning


def test_an_async_channel_is_named_too(tmp_path: Path, server: int) -> None:
    with reenact.capture(tmp_path / "run") as run:
        assert asyncio.run(_ask_async(server)) == b"hi!"
    [warning] = run.warnings
    assert f"gRPC asks 127.0.0.1:{server} outside Python" in warning


def test_a_call_inside_a_tool_is_fine(tmp_path: Path, server: int) -> None:
    """The tool's answer is recorded, so a replay needs no server."""
    ask = reenact.tool(_ask)
    with reenact.capture(tmp_path / "run") as run:
        assert ask(server) == b"hi!"
    assert run.warnings == []


def test_a_server_of_the_run_is_no_part_of_the_outside(tmp_path: Path) -> None:
    """Its calls are really made in replay."""

    def act() -> object:
        started, port = _start_server()
        try:
            return _ask(port)
        finally:
            started.stop(None).wait()

    with reenact.capture(tmp_path / "run") as run:
        assert act() == b"hi!"
    assert run.warnings == []
    with reenact.replay(tmp_path / "run"):
        assert act() == b"hi!"


def test_a_port_is_forgotten_with_its_server(tmp_path: Path) -> None:
    """What listens there later is the outside."""
    with reenact.capture(tmp_path / "run") as run:
        started, port = _start_server()
        started.stop(None).wait()
        with grpc.insecure_channel(f"127.0.0.1:{port}") as channel, pytest.raises(grpc.RpcError):
            channel.unary_unary("/echo/Echo")(b"hi", timeout=1)
    [warning] = run.warnings
    assert str(port) in warning


def test_a_unix_socket_is_named_by_its_path(tmp_path: Path) -> None:
    with reenact.capture(tmp_path / "run") as run, pytest.raises(grpc.RpcError):
        _ask(0, f"unix:{tmp_path}/none")
    [warning] = run.warnings
    assert f"gRPC asks {tmp_path}/none" in warning

"""Starting, stopping and counting connections."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from pathlib import Path
from typing import Any

import httpx2
import pytest

import reenact
from reenact.errors import UsageError
from reenact.testing import Reply, ScriptedProvider, Timeout, echo

ASK = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}


def ask(provider: ScriptedProvider, client: httpx2.Client | None = None) -> httpx2.Response:
    return (client or httpx2).post(f"{provider.url}/v1/messages", json=ASK)


def threads() -> set[str]:
    return {thread.name for thread in threading.enumerate() if thread.name.startswith("loopback-server")}


def test_stopping_leaves_nothing_behind() -> None:
    """After the block there is no thread and nobody listens."""
    before = threads()
    with ScriptedProvider(echo()) as provider:
        assert threads() - before
        ask(provider)
    assert threads() == before
    with pytest.raises(httpx2.ConnectError):
        ask(provider)


def test_stopping_does_not_wait_for_answers() -> None:
    """An answer that would take an hour is dropped at once."""
    with (
        ScriptedProvider(Timeout(3600)) as provider,
        socket.create_connection(("127.0.0.1", provider.port)) as client,
    ):
        client.sendall(b"POST /v1/messages HTTP/1.1\r\ncontent-length: 2\r\n\r\n{}")
        while not provider.requests:
            time.sleep(0.001)
        began = time.monotonic()
        provider.stop()
        assert time.monotonic() - began < 30
        assert client.recv(1) == b""


def test_a_restart_keeps_port_and_place() -> None:
    """The address stays, the script goes on and the records stay."""
    with ScriptedProvider([Reply("one"), Reply("two")]) as provider:
        url = provider.url
        first = ask(provider)
        provider.stop()
        provider.start()
        second = ask(provider)
    assert provider.url == url
    assert [answer.json()["content"][0]["text"] for answer in (first, second)] == ["one", "two"]
    assert (len(provider.requests), provider.connections) == (2, 2)


def test_every_accepted_connection_is_counted() -> None:
    """A kept-open connection counts once, each new one counts, and so does one that sends nothing."""
    with ScriptedProvider(echo()) as provider:
        assert provider.connections == 0
        with httpx2.Client() as client:
            ask(provider, client)
            ask(provider, client)
        assert provider.connections == 1
        ask(provider)
        assert provider.connections == 2
        socket.create_connection(("127.0.0.1", provider.port)).close()
        ask(provider)
        assert provider.connections == 4


def test_a_stream_does_not_stall() -> None:
    """Small chunks go out at once, none waits for the acknowledgement of the one before."""
    path = "/v1/chat/completions"
    with ScriptedProvider(echo()) as provider, httpx2.Client() as client:
        took_s = []
        for _ in range(40):
            began = time.monotonic()
            client.post(provider.url + path, json={**ASK, "stream": True})
            took_s.append(time.monotonic() - began)
    # Linux acknowledges at once in a young connection and after 40 ms later on.
    assert min(took_s[20:]) < 0.03


def test_a_port_can_be_chosen() -> None:
    """The port asked for is the port used, and a busy one is the caller's error."""
    with ScriptedProvider(echo()) as first:
        port = first.port
        with pytest.raises(OSError, match="in use"), ScriptedProvider(echo(), port=port):
            pass
    with ScriptedProvider(echo(), port=port) as second:
        assert second.url == f"http://127.0.0.1:{port}"


def test_a_started_provider_cannot_be_started() -> None:
    """Starting twice is a mistake; stopping twice is not."""
    with ScriptedProvider(echo()) as provider:
        with pytest.raises(UsageError, match="already started"):
            provider.start()
        provider.stop()
        provider.stop()


def test_there_is_no_address_before_the_start() -> None:
    """The error says what to do first."""
    with pytest.raises(UsageError, match="enter the with block"):
        _ = ScriptedProvider(echo()).url


async def test_an_async_test_uses_the_same_with() -> None:
    """The server answers while the test's own loop awaits it."""
    with ScriptedProvider(echo()) as provider:
        async with httpx2.AsyncClient() as client:
            answer = await client.post(f"{provider.url}/v1/messages", json=ASK)
    assert answer.json()["content"][0]["text"] == "hi"


def test_a_server_that_was_there_before_the_run_is_no_server_of_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However long its event loop takes to begin: what asks it then is recorded."""
    start_server = asyncio.start_server

    async def start_late(*args: Any, **options: Any) -> asyncio.Server:
        await asyncio.sleep(0.3)
        return await start_server(*args, **options)

    monkeypatch.setattr(asyncio, "start_server", start_late)
    with ScriptedProvider([]) as provider, reenact.capture(tmp_path / "run"):
        time.sleep(0.5)
        httpx2.get(f"{provider.url}/nothing")
    events = (tmp_path / "run" / "events.jsonl").read_text()
    assert "GET http" in events

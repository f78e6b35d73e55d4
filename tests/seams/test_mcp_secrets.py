"""MCP: what a server and its client entrust to each other is not on disk, and still replays."""

from __future__ import annotations

import asyncio
import os
import random
import socket
import string
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import httpx2
import msgspec
import pytest
from mcp.client.session import ClientSession
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client

import reenact
from reenact.formats.capture import RedactionProfile
from tests.recorder.secrets_planted import leaks

SERVER = Path(__file__).with_name("mcp_vault.py")


def drawn(number: int) -> str:
    """A secret without a shape: only its name, or what stands around it, says that it is one."""
    return "".join(random.Random(number).choices(string.ascii_letters + string.digits, k=20))


PASSWORD, OPTION, TOKEN, API_KEY, CLIENT_SECRET, ARGUMENT, BEARER, REGISTERED = map(drawn, range(8))
SHAPED = "ghp_" + drawn(8) + drawn(9)[:16]
"""A token that is known by its shape, in running text."""
SECRETS = [PASSWORD, OPTION, TOKEN, API_KEY, CLIENT_SECRET, ARGUMENT, BEARER, REGISTERED, SHAPED]
ENVIRONMENT = {"VAULT_API_KEY": API_KEY, "VAULT_CLIENT_SECRET": CLIENT_SECRET}
PROFILES: list[RedactionProfile] = ["default", "strict"]


async def use(session: Any) -> list[str]:
    """Everything that a session can ask, with a secret in each."""
    options = {"x-session-token": OPTION, "note": f"use {SHAPED}"}
    asked = {"host": "vault.example", "password": PASSWORD, "options": options}
    connected = await session.call_tool("connect", asked)
    refused = await session.call_tool("refuse", {"token": TOKEN})
    resource = await session.read_resource("vault://settings")
    prompt = await session.get_prompt("introduce", {"name": f"Bob, whom {REGISTERED} lets in with {SHAPED}"})
    return [answer.model_dump_json() for answer in (connected, refused, resource, prompt)]


def everything_in(folder: Path) -> bytes:
    return b"\n".join(path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file())


def record_and_replay(
    folder: Path,
    profile: RedactionProfile,
    agent: Callable[[], Awaitable[list[str]]],
    stop: Callable[[], None],
) -> bytes:
    """All that is on disk of the recording, and the receipt of its replay."""
    with reenact.capture(folder / "run", redact=(profile, [REGISTERED])) as run:
        answers = asyncio.run(agent())
    for secret in (PASSWORD, OPTION, TOKEN, API_KEY, CLIENT_SECRET):
        assert secret in "".join(answers)
    assert run.manifest is not None
    assert run.manifest.status == "ok"
    stop()
    with reenact.replay(folder / "run", redact=(profile, [REGISTERED])) as again:
        replayed = asyncio.run(agent())
    assert again.divergences == []
    assert not leaks("".join(replayed).encode(), [API_KEY, CLIENT_SECRET])  # the client never had these
    assert again.receipt is not None
    return everything_in(folder / "run") + msgspec.json.encode(again.receipt)


@pytest.mark.parametrize("profile", PROFILES)
def test_over_stdio(profile: RedactionProfile, tmp_path: Path) -> None:
    """Arguments of the server's program, its environment, arguments of tools, results, errors, resources."""
    words = ["-P", str(SERVER), "stdio", "--api-key", ARGUMENT, f"--token={TOKEN}", SHAPED]
    server = StdioServerParameters(command=sys.executable, args=words, env=dict(os.environ) | ENVIRONMENT)

    async def agent() -> list[str]:
        with (tmp_path / "stderr").open("a") as errors:
            async with stdio_client(server, errlog=errors) as streams, ClientSession(*streams) as session:
                await session.initialize()
                return await use(session)

    written = record_and_replay(tmp_path, profile, agent, stop=lambda: None)
    assert leaks(written, SECRETS) == []
    assert b'"--api-key"' in written


@pytest.fixture
def http_server(tmp_path: Path) -> Iterator[tuple[str, Callable[[], None]]]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with (tmp_path / "stderr").open("w") as errors:
        process = subprocess.Popen(
            [sys.executable, "-P", str(SERVER), str(port)],
            env=dict(os.environ) | ENVIRONMENT,
            stdout=errors,
            stderr=errors,
        )
        deadline = time.monotonic() + 60
        while True:
            try:
                socket.create_connection(("127.0.0.1", port)).close()
                break
            except OSError:
                assert time.monotonic() < deadline
                time.sleep(0.05)

        def stop() -> None:
            process.kill()
            process.wait()

        yield f"http://127.0.0.1:{port}/mcp", stop
        stop()


@pytest.mark.parametrize("profile", PROFILES)
def test_over_http(
    profile: RedactionProfile, http_server: tuple[str, Callable[[], None]], tmp_path: Path
) -> None:
    """The same, and the client's headers, a key in the address, and the session that the server named."""
    url, stop = http_server
    sessions: set[str] = set()

    async def note_session(response: httpx2.Response) -> None:
        sessions.update(value for name, value in response.headers.items() if name == "mcp-session-id")

    async def agent() -> list[str]:
        headers = {"authorization": f"Bearer {BEARER}", "x-vault-session": OPTION}
        async with (
            httpx2.AsyncClient(headers=headers, event_hooks={"response": [note_session]}) as client,
            streamable_http_client(f"{url}?api_key={ARGUMENT}", http_client=client) as streams,
            ClientSession(*streams) as session,
        ):
            await session.initialize()
            return await use(session)

    written = record_and_replay(tmp_path, profile, agent, stop)
    assert len(sessions) == 1
    assert leaks(written, [*SECRETS, *sessions]) == []


def test_a_session_that_speaks_http_itself(
    http_server: tuple[str, Callable[[], None]], tmp_path: Path
) -> None:
    """A client of one's own, through the plain HTTP client: headers, session and JSON-RPC are hidden too."""
    url, stop = http_server
    shown = {"accept": "application/json, text/event-stream"}
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}
    asked = {"host": "vault.example", "password": PASSWORD, "options": {"x-session-token": OPTION}}
    sessions: list[str] = []

    async def agent() -> list[str]:
        async with httpx2.AsyncClient(headers={**shown, "authorization": f"Bearer {BEARER}"}) as client:
            first = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}
            begun = await client.post(url, json=first)
            sessions.append(begun.headers["mcp-session-id"])
            within = {"mcp-session-id": begun.headers["mcp-session-id"]}
            started = {"jsonrpc": "2.0", "method": "notifications/initialized"}
            await client.post(url, json=started, headers=within)
            calls = [("connect", asked), ("refuse", {"token": TOKEN})]
            answers = []
            for number, (name, arguments) in enumerate(calls, 2):
                params = {"name": name, "arguments": arguments}
                call = {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}
                answers.append((await client.post(url, json=call, headers=within)).text)
            return answers

    written = record_and_replay(tmp_path, "default", agent, stop)
    assert leaks(written, [*SECRETS, sessions[0]]) == []

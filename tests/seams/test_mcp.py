"""MCP: a session's tools, resources and prompts are recorded; in replay there is no server."""

from __future__ import annotations

import asyncio
import json
import socket
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp.client.client import Client
from mcp.client.session import ClientSession
from mcp.client.sse import sse_client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.server.mcpserver import Context, MCPServer
from mcp.shared.exceptions import MCPError
from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher
from mcp_types import CreateMessageResult, SamplingMessage, TextContent

import reenact

SERVER = Path(__file__).with_name("mcp_server.py")
Connect = Callable[[], AbstractAsyncContextManager[Any]]


class Place:
    """Where a test's server leaves its marks, and how it is reached."""

    def __init__(self, folder: Path) -> None:
        self.marks_path = folder / "marks"
        self.run_path = folder / "run"
        self.errors = (folder / "stderr").open("w")

    @property
    def marks(self) -> list[str]:
        return self.marks_path.read_text().splitlines()

    @property
    def events(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in (self.run_path / "events.jsonl").read_text().splitlines()]

    def stdio(self, *more: str) -> StdioServerParameters:
        return StdioServerParameters(
            command=sys.executable, args=["-P", str(SERVER), str(self.marks_path), "stdio", *more]
        )


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    place = Place(tmp_path)
    yield place
    place.errors.close()


@asynccontextmanager
async def stdio_session(place: Place) -> Any:
    async with (
        stdio_client(place.stdio(), errlog=place.errors) as streams,
        ClientSession(*streams) as session,
    ):
        await session.initialize()
        yield session


@asynccontextmanager
async def http_session(url: str, client: httpx2.AsyncClient | None = None) -> Any:
    async with streamable_http_client(url, http_client=client) as streams, ClientSession(*streams) as session:
        await session.initialize()
        yield session


@pytest.fixture(params=["mcp"])
def http_server(place: Place, request: pytest.FixtureRequest) -> Iterator[tuple[str, Callable[[], None]]]:
    """The address of a real server, and what stops it; ``sse`` or, over streamable HTTP, ``mcp``."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    process = subprocess.Popen(
        [sys.executable, "-P", str(SERVER), str(place.marks_path), f"{request.param}:{port}"],
        stderr=place.errors,
        stdout=place.errors,
    )

    def stop() -> None:
        process.kill()
        process.wait()

    deadline_s = time.monotonic() + 30
    while True:
        try:
            socket.create_connection(("127.0.0.1", port)).close()
            break
        except OSError:
            assert time.monotonic() < deadline_s
            time.sleep(0.05)
    yield f"http://127.0.0.1:{port}/{request.param}", stop
    stop()


async def everything(session: Any) -> list[Any]:
    """One of each kind of request, some at once."""
    tools = await session.list_tools()
    at_once = await asyncio.gather(
        session.call_tool("slow", {"name": "a", "seconds": 0.1}),
        session.call_tool("forecast", {"city": "Ulm"}),
        session.call_tool("slow", {"name": "b", "seconds": 0.02}),
    )
    failed = await session.call_tool("broken", {})
    resource = await session.read_resource("weather://now")
    prompt = await session.get_prompt("ask", {"city": "Ulm"})
    return [answer.model_dump() for answer in (tools, *at_once, failed, resource, prompt)]


def replayed(place: Place, agent: Callable[[], Awaitable[Any]]) -> Any:
    """The agent's result in a replay that went nowhere."""
    marks = place.marks
    with reenact.replay(place.run_path) as run:
        result = asyncio.run(agent())
    assert run.blocked == []
    assert place.marks == marks
    return result


def test_a_session_over_stdio(place: Place) -> None:
    """Tools, resources and prompts come from the recording; no process is started."""

    async def agent() -> list[Any]:
        async with stdio_session(place) as session:
            return await everything(session)

    with reenact.capture(place.run_path):
        recorded = asyncio.run(agent())
    assert place.marks.count("started") == 1
    assert replayed(place, agent) == recorded


def test_a_session_over_streamable_http(place: Place, http_server: tuple[str, Callable[[], None]]) -> None:
    """The same; the server is gone in replay, and its HTTP traffic was not recorded a second time."""
    url, stop = http_server

    async def agent() -> list[Any]:
        async with http_session(url) as session:
            return await everything(session)

    with reenact.capture(place.run_path):
        recorded = asyncio.run(agent())
    stop()
    assert replayed(place, agent) == recorded
    assert {event["data"].get("key", "mcp")[:3] for event in place.events} == {"mcp"}


@pytest.mark.parametrize("http_server", ["sse"], indirect=True)
def test_a_session_over_server_sent_events(place: Place, http_server: tuple[str, Callable[[], None]]) -> None:
    """Nothing is listened to in replay."""
    url, stop = http_server

    async def agent() -> list[Any]:
        async with sse_client(url) as streams, ClientSession(*streams) as session:
            await session.initialize()
            return await everything(session)

    with reenact.capture(place.run_path):
        recorded = asyncio.run(agent())
    stop()
    assert replayed(place, agent) == recorded
    assert {event["data"].get("key", "mcp")[:3] for event in place.events} == {"mcp"}


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_the_client_with_negotiation(
    place: Place, http_server: tuple[str, Callable[[], None]], mode: str
) -> None:
    """The high-level client asks for the protocol's version first; that is recorded too."""
    url, stop = http_server

    async def agent() -> list[Any]:
        async with Client(url, mode=mode) as client:
            return [client.protocol_version, *await everything(client)]

    with reenact.capture(place.run_path):
        recorded = asyncio.run(agent())
    stop()
    assert replayed(place, agent) == recorded


def test_other_http_traffic_is_recorded_beside(
    place: Place, http_server: tuple[str, Callable[[], None]]
) -> None:
    """Only the transport is outside the run: the agent's own requests, on the same client, are not."""
    url, stop = http_server

    async def agent() -> int:
        async with httpx2.AsyncClient() as client, http_session(url, client) as session:
            await session.call_tool("forecast", {"city": "Ulm"})
            return (await client.get(url.removesuffix("/mcp") + "/nowhere")).status_code

    with reenact.capture(place.run_path):
        assert asyncio.run(agent()) == 404
    stop()
    assert replayed(place, agent) == 404


def test_a_call_is_a_tool_call(place: Place) -> None:
    """It is recorded with the tool's name, its arguments and the server's name, and its result as sent."""

    async def agent() -> None:
        async with stdio_session(place) as session:
            await session.call_tool("slow", {"name": "x", "seconds": 0})

    with reenact.capture(place.run_path):
        asyncio.run(agent())
    call, result = (event["data"] for event in place.events if event["type"].startswith("tool_"))
    assert (call["tool"], call["args"], call["mcp"]) == (
        "slow",
        {"name": "x", "seconds": 0},
        {"server": "weather"},
    )
    assert result["result"]["content"] == [{"type": "text", "text": "x after 0.0 s"}]
    keys = [event["data"]["key"] for event in place.events if event["type"] == "nondeterministic"]
    assert keys[::2] == ["mcp server", "mcp initialize", "mcp notifications/initialized", "mcp tools/list"]


def test_a_refused_request_is_raised_again(place: Place) -> None:
    """An error of the protocol has the recorded code, message and data."""

    async def agent() -> tuple[int, str, Any]:
        async with stdio_session(place) as session:
            with pytest.raises(MCPError) as caught:
                await session.read_resource("weather://never")
            return caught.value.code, caught.value.message, caught.value.data

    with reenact.capture(place.run_path):
        recorded = asyncio.run(agent())
    assert replayed(place, agent) == recorded


def test_a_request_that_timed_out_times_out_again(place: Place) -> None:
    """At once: nothing is waited for."""

    async def agent() -> str:
        async with stdio_session(place) as session:
            with pytest.raises(MCPError) as caught:
                await session.call_tool("slow", {"name": "x", "seconds": 30}, read_timeout_seconds=0.2)
            return caught.value.message

    with reenact.capture(place.run_path):
        recorded = asyncio.run(agent())
    assert replayed(place, agent) == recorded


def test_a_server_that_cannot_be_started_cannot_in_replay(tmp_path: Path) -> None:
    """The recorded failure is raised again."""

    async def agent() -> str:
        with pytest.raises(FileNotFoundError) as caught:
            async with stdio_client(StdioServerParameters(command="no-such-server")):
                pass
        return str(caught.value)

    with reenact.capture(tmp_path / "run"):
        recorded = asyncio.run(agent())
    with reenact.replay(tmp_path / "run"):
        assert asyncio.run(agent()) == recorded


def test_other_arguments_diverge(place: Place) -> None:
    """With the path to the difference."""

    async def agent(days: int) -> None:
        async with stdio_session(place) as session:
            await session.call_tool("forecast", {"city": "Ulm", "days": days})

    with reenact.capture(place.run_path):
        asyncio.run(agent(1))
    with pytest.raises(reenact.Diverged) as caught, reenact.replay(place.run_path):
        asyncio.run(agent(2))
    assert caught.value.divergence.json_path == "$.data.args.days"


def test_a_changed_tool_list_shows_where_it_is_used(place: Place) -> None:
    """An agent that hands its tools on gives the recorded ones; one with other tools diverges there."""

    @reenact.tool
    def ask_model(tools: list[dict[str, Any]]) -> str:
        return "none of them"

    async def agent(renamed: str | None) -> None:
        async with stdio_session(place) as session:
            tools = [tool.model_dump() for tool in (await session.list_tools()).tools]
            tools[1]["name"] = renamed or tools[1]["name"]
            ask_model(tools)

    with reenact.capture(place.run_path):
        asyncio.run(agent(None))
    replayed(place, lambda: agent(None))
    with pytest.raises(reenact.Diverged) as caught, reenact.replay(place.run_path):
        asyncio.run(agent("slower"))
    assert caught.value.divergence.json_path == "$.data.args.tools[1].name"


@pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning")
def test_what_the_server_asks_is_part_of_the_call(place: Place) -> None:
    """A model asked on the server's behalf is not asked in replay: its call is answered as a whole."""
    asked: list[str] = []

    @reenact.tool
    def model(text: str) -> str:
        asked.append(text)
        return text.upper()

    server = MCPServer("asking")

    @server.tool()
    async def shout(text: str, ctx: Context) -> str:
        message = SamplingMessage(role="user", content=TextContent(type="text", text=text))
        answer = await ctx.session.create_message([message], max_tokens=5)
        return answer.content.text

    async def sampling(context: Any, params: Any) -> CreateMessageResult:
        said = TextContent(type="text", text=model(params.messages[0].content.text))
        return CreateMessageResult(role="assistant", content=said, model="m")

    async def agent() -> str:
        async with Client(server, mode="legacy", sampling_callback=sampling) as client:
            return (await client.call_tool("shout", {"text": "hi"})).content[0].text

    with reenact.capture(place.run_path):
        assert asyncio.run(agent()) == "HI"
    with reenact.replay(place.run_path):
        assert asyncio.run(agent()) == "HI"
    assert asked == ["hi"]


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_a_server_in_the_same_process(place: Place, mode: str) -> None:
    """Its tools are answered from the recording like any others; what they do is not recorded by itself."""
    done: list[str] = []
    server = MCPServer("inside")

    @reenact.tool
    def inner(text: str) -> str:
        done.append(text)
        return text

    @server.tool()
    def outer(text: str) -> str:
        return inner(text) + inner(text)

    async def agent() -> str:
        async with Client(server, mode=mode) as client:
            return (await client.call_tool("outer", {"text": "hi"})).content[0].text

    with reenact.capture(place.run_path):
        assert asyncio.run(agent()) == "hihi"
    with reenact.replay(place.run_path):
        assert asyncio.run(agent()) == "hihi"
    assert done == ["hi", "hi"]


def test_outside_a_run_sessions_are_untouched(place: Place) -> None:
    """Nothing of ours is left in the library."""
    theirs = JSONRPCDispatcher.send_raw_request
    with reenact.capture(place.run_path):
        assert JSONRPCDispatcher.send_raw_request is not theirs
    assert JSONRPCDispatcher.send_raw_request is theirs

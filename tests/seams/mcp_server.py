"""A real MCP server for the tests, on any transport; each start and each call leaves a mark."""

from __future__ import annotations

import sys
import time
from pathlib import Path

from mcp.server.mcpserver import MCPServer

MARKS = Path(sys.argv[1])
server = MCPServer("weather")


def mark(what: str) -> None:
    with MARKS.open("a") as file:
        file.write(f"{what}\n")


@server.tool()
def forecast(city: str, days: int = 1) -> dict[str, str | int]:
    """The weather to come."""
    mark(f"forecast {city}")
    return {"city": city, "days": days, "at": time.time_ns()}


@server.tool()
async def slow(name: str, seconds: float) -> str:
    """Takes its time."""
    import anyio

    mark(f"slow {name}")
    await anyio.sleep(seconds)
    return f"{name} after {seconds} s"


@server.tool()
def broken() -> str:
    """Fails."""
    raise RuntimeError("the barometer is broken")


@server.resource("weather://now")
def now() -> str:
    """What it is like."""
    return f"sunny since {time.time_ns()}"


@server.prompt()
def ask(city: str) -> str:
    """A question."""
    return f"How is {city}?"


if len(sys.argv) > 3:
    server.tool(name=sys.argv[3])(lambda: "new")

if __name__ == "__main__":
    mark("started")
    if sys.argv[2] == "stdio":
        server.run("stdio")
    else:
        kind, port = sys.argv[2].split(":")
        server.run("sse" if kind == "sse" else "streamable-http", host="127.0.0.1", port=int(port))

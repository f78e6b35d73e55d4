"""An MCP server over stdio, or over HTTP on the port given."""

import sys

from mcp.server.fastmcp import FastMCP

server = FastMCP("weather", host="127.0.0.1", port=int(sys.argv[1]) if sys.argv[1:] else 0, log_level="ERROR")


@server.tool()
def get_weather(city: str) -> str:
    """The weather in a city."""
    return f"{len(city)} degrees in {city}"


server.run("streamable-http" if sys.argv[1:] else "stdio")

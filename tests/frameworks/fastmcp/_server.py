"""A server over stdio, or over HTTP on the port given."""

import sys

from fastmcp import FastMCP

server = FastMCP("weather")


@server.tool
def get_weather(city: str) -> str:
    """The weather in a city."""
    return f"{len(city)} degrees in {city}"


if __name__ == "__main__":
    if sys.argv[1:]:
        server.run(
            transport="http", host="127.0.0.1", port=int(sys.argv[1]), show_banner=False, log_level="ERROR"
        )
    else:
        server.run(show_banner=False, log_level="ERROR")

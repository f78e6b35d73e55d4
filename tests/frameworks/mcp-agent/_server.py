from mcp.server.fastmcp import FastMCP

server = FastMCP("weather")


@server.tool()
def get_weather(city: str) -> str:
    """The weather in a city."""
    return f"{len(city)} degrees in {city}"


server.run()

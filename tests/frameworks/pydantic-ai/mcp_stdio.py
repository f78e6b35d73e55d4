"""Runs in parallel that share one MCP server, and the events of another."""

import asyncio
import sys

from fastmcp.client.transports import StdioTransport
from pydantic_ai import Agent
from pydantic_ai.mcp import MCPToolset

server = MCPToolset(StdioTransport(sys.executable, ["_server.py"]))
agent = Agent("anthropic:claude-sonnet-4-5", toolsets=[server])


async def main():
    async with agent:
        asked = [agent.run(f"How is the weather in {city} and Rome?") for city in ("Paris", "Oslo", "Lima")]
        print([result.output for result in await asyncio.gather(*asked)])
        async with agent.run_stream_events("How is the weather in Tokyo and Delhi?") as events:
            async for event in events:
                print(type(event).__name__)


asyncio.run(main())

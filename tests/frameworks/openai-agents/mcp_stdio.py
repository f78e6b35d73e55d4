import asyncio
import sys

from agents.mcp import MCPServerStdio

from agents import Agent, Runner


async def main():
    async with MCPServerStdio(params={"command": sys.executable, "args": ["_server.py"]}) as server:
        agent = Agent(
            name="Forecaster", instructions="Be helpful.", model="gpt-4o-mini", mcp_servers=[server]
        )
        print((await Runner.run(agent, "How is the weather in Paris and Rome?")).final_output)


asyncio.run(main())

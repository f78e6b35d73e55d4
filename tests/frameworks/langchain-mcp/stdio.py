import asyncio
import sys

from langchain.agents import create_agent
from langchain_mcp_adapters.client import MultiServerMCPClient


async def main():
    client = MultiServerMCPClient(
        {"weather": {"transport": "stdio", "command": sys.executable, "args": ["_server.py"]}}
    )
    agent = create_agent("openai:gpt-4o-mini", tools=await client.get_tools())
    state = await agent.ainvoke(
        {"messages": [{"role": "user", "content": "How is the weather in Paris and Rome?"}]}
    )
    print([message.text for message in state["messages"]])


asyncio.run(main())

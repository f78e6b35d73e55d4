"""The server is a process of its own, started by the agent."""

import asyncio
import socket
import subprocess
import sys
import time

from langchain.agents import create_agent
from langchain_mcp_adapters.client import MultiServerMCPClient


def wait_for(port):
    for _ in range(200):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)


async def main():
    client = MultiServerMCPClient(
        {"weather": {"transport": "streamable_http", "url": "http://127.0.0.1:8932/mcp"}}
    )
    agent = create_agent("openai:gpt-4o-mini", tools=await client.get_tools())
    question = {"messages": [{"role": "user", "content": "How is the weather in Paris and Rome?"}]}
    print([message.text for message in (await agent.ainvoke(question))["messages"]])


server = subprocess.Popen([sys.executable, "_server.py", "8932"])
try:
    wait_for(8932)
    asyncio.run(main())
finally:
    server.terminate()
    server.wait()

"""The server is a process of its own, started by the agent."""

import asyncio
import socket
import subprocess
import sys
import time

from _agent import answer
from fastmcp import Client


def wait_for(port):
    for _ in range(200):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)


async def main():
    async with Client("http://127.0.0.1:8931/mcp") as client:
        print(await answer(client, "How is the weather in Paris and Rome?"))


server = subprocess.Popen([sys.executable, "_server.py", "8931"])
try:
    wait_for(8931)
    asyncio.run(main())
finally:
    server.terminate()
    server.wait()

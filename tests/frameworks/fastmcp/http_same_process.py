"""The server is served by the same program on a free port."""

import asyncio
import socket

from _agent import answer
from _server import server
from fastmcp import Client


async def main():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    serving = asyncio.create_task(
        server.run_http_async(host="127.0.0.1", port=port, show_banner=False, log_level="ERROR")
    )
    await asyncio.sleep(1)
    async with Client(f"http://127.0.0.1:{port}/mcp") as client:
        print(await answer(client, "How is the weather in Paris and Rome?"))
    serving.cancel()
    await asyncio.gather(serving, return_exceptions=True)


asyncio.run(main())

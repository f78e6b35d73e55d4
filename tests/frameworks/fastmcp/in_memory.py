import asyncio

from _agent import answer
from _server import server
from fastmcp import Client


async def main():
    async with Client(server) as client:
        print(await answer(client, "How is the weather in Paris and Rome?"))


asyncio.run(main())

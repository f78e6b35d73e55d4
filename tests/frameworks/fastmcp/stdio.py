import asyncio

from _agent import answer
from fastmcp import Client


async def main():
    async with Client("_server.py") as client:
        print(await answer(client, "How is the weather in Paris and Rome?"))


asyncio.run(main())

import asyncio

from _ask import TOPICS, ask_async
from litestar import Litestar, get
from litestar.testing import AsyncTestClient


@get("/ask")
async def respond(topic: str) -> str:
    return await ask_async(f"Say something about {topic}")


async def main():
    async with AsyncTestClient(app=Litestar([respond])) as client:
        answers = await asyncio.gather(*(client.get("/ask", params={"topic": topic}) for topic in TOPICS))
        print([each.text for each in answers])


asyncio.run(main())

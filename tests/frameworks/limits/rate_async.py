import asyncio

from _ask import TOPICS, ask_async
from aiolimiter import AsyncLimiter

said = []


async def one(limiter, topic):
    async with limiter:
        said.append(await ask_async(f"Say something about {topic}"))


async def main():
    limiter = AsyncLimiter(2, 0.2)
    await asyncio.gather(*(one(limiter, topic) for topic in TOPICS))
    print(await ask_async("Sum up " + "; ".join(said)))


asyncio.run(main())

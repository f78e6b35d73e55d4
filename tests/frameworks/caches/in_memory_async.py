import asyncio

from _ask import TOPICS, ask_async
from aiocache import cached


@cached(ttl=60)
async def told(topic):
    return await ask_async(f"Say something about {topic}")


async def main():
    said = await asyncio.gather(*map(told, TOPICS[:4]))
    again = [await told(topic) for topic in TOPICS[:4]]
    print(said == again, await ask_async("Sum up " + "; ".join(again)))


asyncio.run(main())

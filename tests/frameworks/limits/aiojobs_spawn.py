import asyncio

import aiojobs
from _ask import TOPICS, ask_async

said = []


async def one(topic):
    said.append(await ask_async(f"Say something about {topic}"))


async def main():
    async with aiojobs.Scheduler(limit=2) as jobs:
        for topic in TOPICS:
            await jobs.spawn(one(topic))
        await jobs.wait_and_close()
    print(await ask_async("Sum up " + "; ".join(said)))


asyncio.run(main())

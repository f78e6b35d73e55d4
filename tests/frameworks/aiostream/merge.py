import asyncio

from _ask import TOPICS, ask_async
from aiostream import pipe, stream


async def work(topic):
    return await ask_async(f"Say something about {topic}")


async def main():
    said = await (stream.iterate(TOPICS) | pipe.map(work, ordered=False, task_limit=3) | pipe.list())
    print(said)
    print(await ask_async("Sum up: " + "; ".join(said)))


asyncio.run(main())

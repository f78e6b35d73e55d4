import asyncio

import aiometer
from _ask import TOPICS, ask_async


async def main():
    questions = [f"Say something about {topic}" for topic in TOPICS]
    async with aiometer.amap(ask_async, questions, max_at_once=3, max_per_second=50) as results:
        said = [text async for text in results]
    print(await ask_async("Sum up " + "; ".join(said)))


asyncio.run(main())

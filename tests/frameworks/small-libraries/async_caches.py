import asyncio

import asyncstdlib
import backoff
from _ask import TOPICS, ask_async
from aiocache import cached
from aiolimiter import AsyncLimiter

few = AsyncLimiter(3, 0.1)
tries = iter(range(100))


@cached(ttl=60)
async def ask_once(topic):
    async with few:
        return await ask_async(f"Say something about {topic}")


@asyncstdlib.lru_cache(maxsize=None)
async def remember(topic):
    return await ask_async(f"What was that about {topic}?")


@backoff.on_exception(backoff.expo, ValueError, max_tries=5, factor=0.01)
async def ask_until_good(topic):
    number = next(tries)
    said = await ask_async(f"Try {number} about {topic}")
    if number % 3 != 2:
        raise ValueError(said)
    return said


async def main():
    one = await asyncio.gather(*map(ask_once, TOPICS))
    two = await asyncio.gather(*map(ask_once, TOPICS))
    both = await asyncio.gather(remember("ants"), remember("bees"), remember("ants"))
    print(await ask_async(f"{one == two} {both} {await ask_until_good('cats')} " + "; ".join(two)))


asyncio.run(main())

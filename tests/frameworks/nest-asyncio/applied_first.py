import asyncio

import nest_asyncio
from _ask import TOPICS, ask_async

nest_asyncio.apply()


async def ask_all(about):
    return await asyncio.gather(*(ask_async(f"{about} {topic}") for topic in TOPICS[:3]))


async def nested(about):
    await asyncio.sleep(0.01)
    return asyncio.get_running_loop().run_until_complete(ask_all(about))


async def main():
    print(asyncio.run(ask_all("First of")))
    print(await asyncio.gather(nested("Then of"), nested("Also of"), ask_all("Beside of")))


asyncio.run(main())

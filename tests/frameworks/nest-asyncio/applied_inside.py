import asyncio

import nest_asyncio
from _ask import TOPICS, ask_async


async def ask_all(about):
    asked = asyncio.gather(*(ask_async(f"{about} {topic}") for topic in TOPICS[:3]))
    return await asked, await asyncio.to_thread(len, about)


async def main():
    print(await ask_all("Before"))
    nest_asyncio.apply()
    print(asyncio.get_running_loop().run_until_complete(ask_all("Inside")))
    print(asyncio.run(ask_all("Inside again")))


asyncio.run(main())

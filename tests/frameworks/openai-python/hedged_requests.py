import asyncio

from _ask import TOPICS, ask_async


async def ask_twice(topic):
    first = asyncio.create_task(ask_async(f"Say something about {topic}"))
    done, _ = await asyncio.wait({first}, timeout=0.025)
    if done:
        return first.result()
    second = asyncio.create_task(ask_async(f"Say something about {topic}, please"))
    done, late = await asyncio.wait({first, second}, return_when=asyncio.FIRST_COMPLETED)
    for one in late:
        one.cancel()
    await asyncio.gather(*late, return_exceptions=True)
    return done.pop().result()


async def main():
    said = await asyncio.gather(*map(ask_twice, TOPICS))
    print(await ask_async("Sum up: " + "; ".join(said)))


asyncio.run(main())

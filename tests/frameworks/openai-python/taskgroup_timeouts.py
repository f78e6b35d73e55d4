import asyncio

from _ask import TOPICS, ask_async

said = []


async def look(topic, limit):
    try:
        async with asyncio.timeout(limit):
            said.append(await ask_async(f"Say something about {topic}"))
    except TimeoutError:
        said.append(f"{topic} took too long")
        return
    async with asyncio.TaskGroup() as inner:
        short = inner.create_task(ask_async("Shorter: " + said[-1]))
        inner.create_task(note(topic))
    said.append(short.result())


async def note(topic):
    await asyncio.sleep(0.01)
    said.append(f"noted {topic} as {len(said)}")


async def main():
    async with asyncio.TaskGroup() as group:
        for number, topic in enumerate(TOPICS):
            group.create_task(look(topic, 0.05 if number % 2 else 5))
    print("\n".join(said))
    print(await ask_async("Sum up: " + "; ".join(said)))


asyncio.run(main())

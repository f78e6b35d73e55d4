import asyncio

from _ask import TOPICS, ask_async


async def main():
    tasks = [asyncio.create_task(ask_async(f"Say something about {topic}")) for topic in TOPICS]
    done, pending = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for task in pending:
        task.cancel()
    ended = await asyncio.gather(*pending, return_exceptions=True)
    first = done.pop().result()
    print(await ask_async(f"First was: {first}, and {len(ended)} were cancelled"))
    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(ask_async("Say something about gnus"))
            group.create_task(fail())
    except* ValueError as error:
        print(await ask_async(f"What went wrong: {error.exceptions}"))


async def fail():
    await asyncio.sleep(0.01)
    raise ValueError("no more")


asyncio.run(main())

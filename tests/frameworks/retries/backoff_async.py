import asyncio

import backoff
from _ask import ask_async

tries = []


@backoff.on_exception(backoff.expo, ValueError, factor=0.01, max_tries=5, jitter=backoff.full_jitter)
async def ask(topic):
    answer = await ask_async(f"Say something about {topic}")
    tries.append(topic)
    if tries.count(topic) <= len(topic) % 3:
        raise ValueError(topic)
    return answer


async def main():
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(ask(topic)) for topic in ["ants", "bears", "cat", "doves", "eel"]]
    print([task.result() for task in tasks], tries)
    print(await ask("all of: " + ", ".join(tries)))


asyncio.run(main())

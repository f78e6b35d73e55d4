import asyncio
import itertools

from _ask import TOPICS, ask_async

number = itertools.count()
got = []


async def work(queue, slots):
    while True:
        priority, _, question = await queue.get()
        async with slots:
            said = await ask_async(f"{question} ({len(got)})")
        got.append(said)
        if priority > 1:
            queue.put_nowait((priority - 2, next(number), "Shorter: " + said))
        queue.task_done()


async def main():
    queue, slots = asyncio.PriorityQueue(), asyncio.Semaphore(2)
    for topic in TOPICS:
        queue.put_nowait((len(topic), next(number), f"Say something about {topic}"))
    crew = [asyncio.create_task(work(queue, slots)) for _ in range(4)]
    await queue.join()
    for one in crew:
        one.cancel()
    await asyncio.gather(*crew, return_exceptions=True)
    print("\n".join(got))
    print(await ask_async("Sum up: " + "; ".join(got)))


asyncio.run(main())

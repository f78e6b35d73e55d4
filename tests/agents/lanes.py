"""Makes calls from everywhere: nested, in threads, in tasks, and reads the clock."""

import asyncio
import random
import threading

import reenact


@reenact.tool
def search(query: str, limit: int = 2) -> list[str]:
    return [f"{query} {random.random()}" for _ in range(limit)]


@reenact.tool
def order(item: str) -> None:
    search(f"{item} in stock")
    raise KeyError(item)


@reenact.tool
async def ask(number: int) -> float:
    await asyncio.sleep(0.002 * (3 - number))
    return number + random.random()


async def ask_all() -> list[float]:
    return await asyncio.gather(*(ask(number) for number in range(3)))


with reenact.capture("never-made") as run:
    print(run.clock.now(), search("lamp"))
    try:
        order("desk")
    except KeyError as error:
        print("failed:", error)
    threads = [threading.Thread(target=search, args=(f"thread {number}",)) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(asyncio.run(ask_all()))

import asyncio

from _ask import TOPICS, ask_async
from pyee.asyncio import AsyncIOEventEmitter

e = AsyncIOEventEmitter()
said = []


@e.on("ask")
async def one(t):
    said.append(await ask_async(f"Say something about {t}"))
    e.emit("done")


async def main():
    done = asyncio.Event()

    @e.on("done")
    def count():
        if len(said) == len(TOPICS):
            done.set()

    for t in TOPICS:
        e.emit("ask", t)
    await done.wait()
    print(said)
    print(await ask_async("Sum up " + "; ".join(said)))


asyncio.run(main())

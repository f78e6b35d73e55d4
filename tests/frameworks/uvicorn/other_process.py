"""The client is another process, as a browser would be; it asks in any order."""

import asyncio

from _served import serve

TOPICS = ("ants", "bees", "cats", "dogs", "eels")


async def client(address):
    words = ["curl", "--silent", "--parallel", "--parallel-immediate"]
    for topic in TOPICS:
        words += ["-o", f"{topic}.txt", f"{address}/ask?topic={topic}"]
    process = await asyncio.create_subprocess_exec(*words)
    print(await process.wait())


asyncio.run(serve(client))

import os

import httpx
import trio
from _ask import TOPICS

URL = os.environ["OPENAI_BASE_URL"] + "/chat/completions"


async def ask(c, q):
    r = await c.post(URL, json={"model": "gpt-4o-mini", "messages": [{"role": "user", "content": q}]})
    return r.json()["choices"][0]["message"]["content"]


async def worker(c, jobs, out):
    async with jobs, out:
        async for t in jobs:
            await out.send(await ask(c, f"Say something about {t}"))


async def main():
    async with httpx.AsyncClient() as c:
        async with trio.open_nursery() as n:
            js, jr = trio.open_memory_channel(10)
            os_, or_ = trio.open_memory_channel(10)
            for _ in range(3):
                n.start_soon(worker, c, jr.clone(), os_.clone())
            jr.close()
            os_.close()
            for t in TOPICS:
                await js.send(t)
            js.close()
            said = [text async for text in or_]
        print(said)
        print(await ask(c, "Sum up " + "; ".join(said)))


trio.run(main)

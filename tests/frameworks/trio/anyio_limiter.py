import os

import anyio
import httpx
from _ask import TOPICS

URL = os.environ["OPENAI_BASE_URL"] + "/chat/completions"
said = []


async def ask(c, q):
    r = await c.post(URL, json={"model": "gpt-4o-mini", "messages": [{"role": "user", "content": q}]})
    said.append(r.json()["choices"][0]["message"]["content"])


async def main():
    lim = anyio.CapacityLimiter(2)
    async with httpx.AsyncClient() as c:

        async def one(t):
            async with lim:
                await ask(c, f"Say something about {t}")

        async with anyio.create_task_group() as g:
            for t in TOPICS:
                g.start_soon(one, t)
        await ask(c, "Sum up " + "; ".join(said))
    print(said)
    with anyio.move_on_after(0.2):
        await anyio.sleep(5)


anyio.run(main, backend="trio")

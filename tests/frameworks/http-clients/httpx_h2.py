import asyncio
import os

import httpx

URL = os.environ["OPENAI_BASE_URL"] + "/chat/completions"
said = []


async def ask(c, q):
    r = await c.post(URL, json={"model": "gpt-4o-mini", "messages": [{"role": "user", "content": q}]})
    said.append(r.json()["choices"][0]["message"]["content"])


async def main():
    async with httpx.AsyncClient(http2=True) as c:
        async with asyncio.TaskGroup() as g:
            for t in ["ants", "bees", "cats", "dogs"]:
                g.create_task(ask(c, f"Say something about {t}"))
        await ask(c, "Sum up: " + "; ".join(said))
        async with c.stream(
            "POST",
            URL,
            json={"model": "gpt-4o-mini", "stream": True, "messages": [{"role": "user", "content": "count"}]},
        ) as r:
            async for line in r.aiter_lines():
                print(line[:6])
    print(said)


asyncio.run(main())

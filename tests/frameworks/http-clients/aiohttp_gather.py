import asyncio
import os

import aiohttp

URL = os.environ["OPENAI_BASE_URL"] + "/chat/completions"
said = []


async def ask(s, q):
    async with s.post(URL, json={"model": "gpt-4o-mini", "messages": [{"role": "user", "content": q}]}) as r:
        r.raise_for_status()
        said.append((await r.json())["choices"][0]["message"]["content"])


async def main():
    async with aiohttp.ClientSession(headers={"Authorization": "Bearer x"}) as s:
        await asyncio.gather(*(ask(s, f"Say something about {t}") for t in ["ants", "bees", "cats", "dogs"]))
        await ask(s, "Sum up: " + "; ".join(said))
        async with s.post(
            URL,
            json={"model": "gpt-4o-mini", "stream": True, "messages": [{"role": "user", "content": "count"}]},
        ) as r:
            async for line in r.content:
                if line.strip():
                    print(len(line) > 5)
    print(said)


asyncio.run(main())

import asyncio
import os

import niquests

URL = os.environ["OPENAI_BASE_URL"] + "/chat/completions"
said = []


async def ask(s, q):
    r = await s.post(URL, json={"model": "gpt-4o-mini", "messages": [{"role": "user", "content": q}]})
    said.append(r.json()["choices"][0]["message"]["content"])


async def main():
    async with niquests.AsyncSession() as s:
        await asyncio.gather(*(ask(s, f"Say something about {t}") for t in ["ants", "bees", "cats"]))
        await ask(s, "Sum up " + "; ".join(said))
    print(said)


asyncio.run(main())

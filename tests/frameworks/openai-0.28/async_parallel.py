import asyncio
import os

import openai

openai.api_base = os.environ["OPENAI_API_BASE"]
said = []


async def ask(q):
    r = await openai.ChatCompletion.acreate(model="gpt-4o-mini", messages=[{"role": "user", "content": q}])
    said.append(r["choices"][0]["message"]["content"])


async def main():
    await asyncio.gather(*(ask(f"Say something about {t}") for t in ["ants", "bees", "cats"]))
    await ask("Sum up " + "; ".join(said))
    print(said)
    async for c in await openai.ChatCompletion.acreate(
        model="gpt-4o-mini", messages=[{"role": "user", "content": "more"}], stream=True
    ):
        print(c["choices"][0]["delta"].get("content"))


asyncio.run(main())

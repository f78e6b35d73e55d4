import asyncio
import os

from groq import AsyncGroq


async def main():
    client = AsyncGroq(api_key="unused", base_url=os.environ["OPENAI_BASE_URL"].removesuffix("/v1"))

    async def ask(what):
        stream = await client.chat.completions.create(
            model="m", messages=[{"role": "user", "content": f"Tell me of {what}"}], stream=True
        )
        return "".join([chunk.choices[0].delta.content or "" async for chunk in stream if chunk.choices])

    for done in asyncio.as_completed([ask(what) for what in ("ants", "bees", "cats")]):
        print(await done)


asyncio.run(main())

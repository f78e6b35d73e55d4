import asyncio
import os

from mistralai.client import Mistral


async def main():
    client = Mistral(api_key="unused", server_url=os.environ["OPENAI_BASE_URL"].removesuffix("/v1"))

    async def ask(what):
        answer = await client.chat.complete_async(
            model="m", messages=[{"role": "user", "content": f"Tell me of {what}"}]
        )
        return answer.choices[0].message.content

    for done in asyncio.as_completed([ask(what) for what in ("ants", "bees", "cats")]):
        print(await done)


asyncio.run(main())

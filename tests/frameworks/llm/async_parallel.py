import asyncio
import os

import llm


async def ask(number):
    model = llm.get_async_model("gpt-4o-mini")
    model.api_base = os.environ["OPENAI_BASE_URL"]
    return await (await model.prompt(f"Say something about {number}")).text()


async def main():
    print(await asyncio.gather(*map(ask, range(5))))


asyncio.run(main())

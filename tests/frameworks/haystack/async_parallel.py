import asyncio

from haystack.components.generators.chat import OpenAIChatGenerator
from haystack.dataclasses import ChatMessage


async def main():
    model = OpenAIChatGenerator(model="gpt-4o-mini")
    asked = [model.run_async([ChatMessage.from_user(f"Say something about {n}")]) for n in range(6)]
    for answer in asyncio.as_completed(asked):
        print((await answer)["replies"][0].text)


asyncio.run(main())

import asyncio

from beeai_framework.backend import ChatModel, UserMessage


async def main():
    model = ChatModel.from_name("openai:gpt-4o-mini")
    asked = [model.run([UserMessage(f"Tell me of {what}")], stream=True) for what in ("ants", "bees", "cats")]
    for done in asyncio.as_completed([*asked]):
        print((await done).get_text_content())


asyncio.run(main())

import asyncio

import rigging as rg


async def main():
    g = rg.get_generator("openai/gpt-4o-mini")
    chats = await g.chat("Say something about ants").run_many(3)
    print([c.last.content for c in chats])
    b = await g.chat().run_batch(["Say something about bees", "Say something about cats"])
    print([c.last.content for c in b])


asyncio.run(main())

import asyncio

from _agent import make_agent


async def main():
    reply = await make_agent(streaming=True).ask("How is the weather in Oslo and Lima?")
    print(reply.body)


asyncio.run(main())

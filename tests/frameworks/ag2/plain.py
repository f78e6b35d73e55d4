import asyncio

from _agent import make_agent


async def main():
    reply = await make_agent().ask("How is the weather in Paris and Rome?")
    print(reply.body)
    print((await reply.ask("Which of them is nicer?")).body)


asyncio.run(main())

import asyncio

from _agent import make_agent


async def main():
    asked = [
        make_agent(f"agent {city}").ask(f"How is the weather in {city} and Rome?")
        for city in ("Paris", "Oslo", "Lima")
    ]
    for reply in asyncio.as_completed(asked):
        print((await reply).body)


asyncio.run(main())

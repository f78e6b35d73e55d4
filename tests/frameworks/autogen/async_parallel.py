import asyncio

from _agent import make_agent


async def main():
    asked = [
        make_agent().run(task=f"How is the weather in {city} and Rome?") for city in ("Paris", "Oslo", "Lima")
    ]
    for result in await asyncio.gather(*asked):
        print(result.messages[-1].to_text())


asyncio.run(main())

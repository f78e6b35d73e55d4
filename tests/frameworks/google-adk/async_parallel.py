import asyncio

from _weather import ask, make_agent


async def main():
    asked = [
        ask(make_agent(), f"How is the weather in {city} and Rome?") for city in ("Paris", "Oslo", "Lima")
    ]
    for answer in await asyncio.gather(*asked):
        print(answer)


asyncio.run(main())

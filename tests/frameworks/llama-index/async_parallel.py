import asyncio

from _weather import make_agent


async def main():
    asked = (
        make_agent().run(f"How is the weather in {city} and Rome?") for city in ("Paris", "Oslo", "Lima")
    )
    for answer in await asyncio.gather(*asked):
        print(answer)


asyncio.run(main())

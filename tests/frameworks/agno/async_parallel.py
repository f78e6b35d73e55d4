import asyncio

from _weather import make_agent


async def main():
    asked = (
        make_agent().arun(f"How is the weather in {city} and Rome?") for city in ("Paris", "Oslo", "Lima")
    )
    for answer in await asyncio.gather(*asked):
        print(answer.content)


asyncio.run(main())

import asyncio

from _weather import make_agent


async def main():
    asked = [
        make_agent().run(f"How is the weather in {city} and Rome?")
        for city in ("Paris", "Oslo", "Lima", "Cairo")
    ]
    for answer in asyncio.as_completed(asked):
        print((await answer).output)


asyncio.run(main())

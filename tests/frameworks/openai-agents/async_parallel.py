import asyncio

from _weather import make_agent

from agents import Runner


async def main():
    asked = [
        Runner.run(make_agent(), f"How is the weather in {city} and Rome?")
        for city in ("Paris", "Oslo", "Lima")
    ]
    for answer in asyncio.as_completed(asked):
        print((await answer).final_output)


asyncio.run(main())

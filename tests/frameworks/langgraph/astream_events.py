import asyncio

from _weather import ask, make_agent


async def main():
    async for event in make_agent().astream_events(ask("How is the weather in Oslo and Lima?"), version="v2"):
        print(event["event"], event["name"])


asyncio.run(main())

import asyncio

from _weather import make_agent


async def main():
    async for event in make_agent().stream_async("How is the weather in Oslo and Lima?"):
        if "data" in event:
            print(repr(event["data"]))


asyncio.run(main())

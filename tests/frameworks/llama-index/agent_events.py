import asyncio

from _weather import make_agent


async def main():
    handler = make_agent().run("How is the weather in Oslo, Cairo and Lima?")
    async for event in handler.stream_events():
        print(type(event).__name__, getattr(event, "delta", ""))
    print(await handler)


asyncio.run(main())

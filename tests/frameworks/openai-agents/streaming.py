import asyncio

from _weather import make_agent

from agents import Runner


async def main():
    result = Runner.run_streamed(make_agent(), "How is the weather in Oslo and Lima?")
    async for event in result.stream_events():
        print(event.type, getattr(getattr(event, "data", None), "type", getattr(event, "name", "")))
    print(result.final_output)


asyncio.run(main())

import asyncio

from _weather import MODELS, make_agent


async def main():
    async with make_agent(MODELS[2]).run_stream("How is the weather in Oslo and Lima?") as result:
        async for text in result.stream_text(delta=True, debounce_by=None):
            print(repr(text))


asyncio.run(main())

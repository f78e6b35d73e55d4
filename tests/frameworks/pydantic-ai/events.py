import asyncio

from _weather import make_agent


async def main():
    async with make_agent().iter("How is the weather in Paris and Rome?") as run:
        async for node in run:
            print(type(node).__name__)
    print(run.result.output)


asyncio.run(main())

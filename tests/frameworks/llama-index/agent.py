import asyncio

from _weather import make_agent


async def main():
    print(await make_agent().run("How is the weather in Paris and Rome?"))


asyncio.run(main())

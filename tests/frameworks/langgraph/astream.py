import asyncio

from _weather import ask, make_agent


async def main():
    async for mode, item in make_agent().astream(
        ask("How is the weather in Oslo, Cairo and Lima?"), stream_mode=["updates", "messages"]
    ):
        print(mode, sorted(item) if mode == "updates" else repr(item[0].text))


asyncio.run(main())

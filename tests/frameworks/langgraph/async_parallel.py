import asyncio

from _weather import ask, make_agent


async def main():
    agent = make_agent("anthropic:claude-sonnet-4-5")
    asked = [
        agent.ainvoke(ask(f"How is the weather in {city} and Rome?"))
        for city in ("Paris", "Oslo", "Lima", "Cairo")
    ]
    for answered in asyncio.as_completed(asked):
        print((await answered)["messages"][-1].text)


asyncio.run(main())

import asyncio

from mirascope import llm


@llm.tool
async def get_weather(city: str) -> str:
    """The weather in a city."""
    return f"{len(city)} degrees in {city}"


@llm.call("openai/gpt-4o-mini", tools=[get_weather])
async def ask(city: str):
    return f"How is the weather in {city} and Rome?"


async def answer(city):
    response = await ask(city)
    while response.tool_calls:
        response = await response.resume(await response.execute_tools())
    return response.text()


async def main():
    for text in await asyncio.gather(*(answer(city) for city in ("Paris", "Oslo", "Lima"))):
        print(text)


asyncio.run(main())

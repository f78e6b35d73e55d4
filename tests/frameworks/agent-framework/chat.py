import asyncio
from typing import Annotated

from agent_framework import Agent
from agent_framework.openai import OpenAIChatCompletionClient


def get_weather(city: Annotated[str, "The city"]) -> str:
    """The weather of a city."""
    return f"sunny in {city}"


async def main():
    client = OpenAIChatCompletionClient(model="gpt-4o-mini")
    agent = Agent(client=client, name="Weather", instructions="Be brief.", tools=[get_weather])
    session = agent.create_session()
    print(await agent.run("How is the weather in Paris, Rome and Oslo?", session=session))
    async for part in agent.run("And in Lima?", session=session, stream=True):
        print(part.text, end="|")
    print()
    answers = await asyncio.gather(*(agent.run(f"Weather in {city}?") for city in ("Cairo", "Quito")))
    print([answer.text for answer in answers])


asyncio.run(main())

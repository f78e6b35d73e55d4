"""Agents hand over to each other; their tools ask agents of their own, in parallel."""

import asyncio

from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.conditions import MaxMessageTermination
from autogen_agentchat.teams import Swarm
from autogen_ext.models.openai import OpenAIChatCompletionClient

order = []


def make_model():
    return OpenAIChatCompletionClient(model="gpt-4o-mini")


async def get_weather(city: str) -> str:
    """The weather in a city."""
    guessed = await AssistantAgent("guesser", make_model()).run(task=f"Guess it for {city.upper()}")
    order.append(city)
    return f"{guessed.messages[-1].content}, as number {len(order)}"


async def main():
    first = AssistantAgent("first", make_model(), handoffs=["second"])
    second = AssistantAgent("second", make_model(), tools=[get_weather], max_tool_iterations=2)
    team = Swarm([first, second], termination_condition=MaxMessageTermination(6))
    async for message in team.run_stream(task="How is the weather in Paris, Oslo, Rome and Lima?"):
        print(type(message).__name__, getattr(message, "source", ""))
    print(order)


asyncio.run(main())

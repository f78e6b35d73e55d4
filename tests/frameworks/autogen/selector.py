import asyncio

from _agent import make_agent
from autogen_agentchat.conditions import MaxMessageTermination
from autogen_agentchat.teams import SelectorGroupChat
from autogen_ext.models.openai import OpenAIChatCompletionClient


async def main():
    model = OpenAIChatCompletionClient(model="gpt-4o-mini")
    team = SelectorGroupChat(
        [make_agent("one"), make_agent("two")], model, termination_condition=MaxMessageTermination(5)
    )
    async for message in team.run_stream(task="How is the weather in Paris and Rome?"):
        print(type(message).__name__, getattr(message, "source", ""))


asyncio.run(main())

import asyncio

from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.teams import MagenticOneGroupChat
from autogen_ext.models.openai import OpenAIChatCompletionClient


async def main():
    model = OpenAIChatCompletionClient(model="gpt-4o-mini")
    team = MagenticOneGroupChat(
        [AssistantAgent("helper", model_client=model)], model_client=model, max_turns=3
    )
    async for event in team.run_stream(task="Say something about ants"):
        print(getattr(event, "source", type(event).__name__), str(getattr(event, "content", ""))[:60])


asyncio.run(main())

from autogen_agentchat.agents import AssistantAgent
from autogen_ext.models.openai import OpenAIChatCompletionClient


async def get_weather(city: str) -> str:
    """The weather in a city."""
    return f"{len(city)} degrees in {city}"


def make_agent(name="assistant", **options):
    return AssistantAgent(
        name, OpenAIChatCompletionClient(model="gpt-4o-mini"), tools=[get_weather], **options
    )

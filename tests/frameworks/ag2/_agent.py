from ag2 import Agent, tool
from ag2.config import OpenAIConfig


@tool
async def get_weather(city: str) -> str:
    """The weather in a city."""
    return f"{len(city)} degrees in {city}"


def make_agent(name="assistant", **options):
    return Agent(
        name,
        prompt="You are helpful.",
        config=OpenAIConfig(model="gpt-4o-mini", **options),
        tools=[get_weather],
    )

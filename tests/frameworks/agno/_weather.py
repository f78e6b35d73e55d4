from agno.agent import Agent
from agno.models.anthropic import Claude
from agno.models.openai import OpenAIChat, OpenAIResponses


def get_weather(city: str) -> str:
    """The weather in a city."""
    return f"{len(city)} degrees in {city}"


MODELS = {
    "chat": lambda: OpenAIChat(id="gpt-4o-mini"),
    "responses": lambda: OpenAIResponses(id="gpt-4o-mini"),
    "claude": lambda: Claude(id="claude-sonnet-4-5"),
}


def make_agent(model="chat", **options):
    return Agent(model=MODELS[model](), tools=[get_weather], **options)

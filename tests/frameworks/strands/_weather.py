from strands import Agent, tool
from strands.models.anthropic import AnthropicModel
from strands.models.openai import OpenAIModel


@tool
def get_weather(city: str) -> str:
    """The weather in a city."""
    return f"{len(city)} degrees in {city}"


MODELS = {
    "openai": lambda: OpenAIModel(model_id="gpt-4o-mini"),
    "anthropic": lambda: AnthropicModel(model_id="claude-sonnet-4-5", max_tokens=500),
}


def make_agent(model="openai", **options):
    return Agent(model=MODELS[model](), tools=[get_weather], callback_handler=None, **options)

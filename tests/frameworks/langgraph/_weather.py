"""The agent that all of these use."""

from langchain.agents import create_agent
from langchain.chat_models import init_chat_model
from langchain_core.tools import tool


@tool
def get_weather(city: str) -> str:
    """The weather in a city."""
    return f"{len(city)} degrees in {city}"


def make_agent(model: str = "openai:gpt-4o-mini"):
    return create_agent(init_chat_model(model), tools=[get_weather])


def ask(text: str) -> dict:
    return {"messages": [{"role": "user", "content": text}]}

from typing import Annotated

from haystack.components.agents import Agent
from haystack.components.generators.chat import OpenAIChatGenerator
from haystack.dataclasses import ChatMessage
from haystack.tools import tool


@tool
def get_weather(city: Annotated[str, "the city"]) -> str:
    """The weather in a city."""
    return f"{len(city)} degrees in {city}"


agent = Agent(chat_generator=OpenAIChatGenerator(model="gpt-4o-mini"), tools=[get_weather])
result = agent.run(messages=[ChatMessage.from_user("How is the weather in Paris, Oslo and Rome?")])
print(result["messages"][-1].text)

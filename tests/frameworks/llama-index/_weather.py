from llama_index.core.agent.workflow import FunctionAgent
from llama_index.llms.openai import OpenAI


def get_weather(city: str) -> str:
    """The weather in a city."""
    return f"{len(city)} degrees in {city}"


def make_agent(**options):
    return FunctionAgent(
        tools=[get_weather], llm=OpenAI(model="gpt-4o-mini"), system_prompt="Be helpful.", **options
    )

from deepagents import create_deep_agent
from langchain_openai import ChatOpenAI


def get_weather(city: str) -> str:
    """The weather in a city."""
    return f"{len(city)} degrees in {city}"


def make_agent():
    model = ChatOpenAI(model="gpt-4o-mini")
    return create_deep_agent(model=model, tools=[get_weather], system_prompt="Be helpful.")


def ask(text):
    return {"messages": [{"role": "user", "content": text}]}

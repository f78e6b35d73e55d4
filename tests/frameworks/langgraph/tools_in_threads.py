"""Tools that ask a model run in threads, and the stream tells how far they are."""

from langchain.agents import create_agent
from langchain.chat_models import init_chat_model
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.config import get_stream_writer

model = init_chat_model("openai:gpt-4o-mini")
order = []


@tool
def get_weather(city: str) -> str:
    """The weather in a city."""
    guessed = model.invoke(f"Guess the weather in {city.upper()}").text
    order.append(city)
    get_stream_writer()(f"{city} is number {len(order)}")
    return f"{guessed}, as number {len(order)}"


agent = create_agent(model, [get_weather], checkpointer=InMemorySaver())
asked = {"messages": [("user", "How is the weather in Paris, Rome, Oslo, Lima and Cairo?")]}
config = {"configurable": {"thread_id": "1"}}
for mode, part in agent.stream(asked, config, stream_mode=["custom", "updates"]):
    print(mode, part if mode == "custom" else list(part))
print(order, agent.get_state(config).values["messages"][-1].text)

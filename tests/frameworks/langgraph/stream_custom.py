from langchain.agents import create_agent
from langchain.chat_models import init_chat_model
from langchain_core.tools import tool
from langgraph.config import get_stream_writer


@tool
def get_weather(city: str) -> str:
    """The weather in a city."""
    write = get_stream_writer()
    write({"looking at": city})
    return f"{len(city)} degrees in {city}"


agent = create_agent(init_chat_model("openai:gpt-4o-mini"), tools=[get_weather])
question = {"messages": [{"role": "user", "content": "How is the weather in Oslo, one at a time, and Lima?"}]}
for mode, item in agent.stream(question, stream_mode=["custom", "updates"]):
    print(mode, item if mode == "custom" else sorted(item))

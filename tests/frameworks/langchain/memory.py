"""An agent that remembers, asked several things at once in conversations of their own."""

from concurrent.futures import ThreadPoolExecutor

from langchain.agents import create_agent
from langchain.tools import tool
from langgraph.checkpoint.memory import InMemorySaver


@tool
def get_weather(city: str) -> str:
    """The weather in a city."""
    return f"{len(city)} degrees in {city}"


agent = create_agent("openai:gpt-4o-mini", tools=[get_weather], checkpointer=InMemorySaver())


def converse(city):
    said = []
    for question in (f"How is the weather in {city}?", "And is that warm?"):
        asked = {"messages": [{"role": "user", "content": question}]}
        answer = agent.invoke(asked, {"configurable": {"thread_id": city}})
        said.append(answer["messages"][-1].content)
    return said


with ThreadPoolExecutor(3) as pool:
    for said in pool.map(converse, ("Paris", "Oslo", "Lima")):
        print(said)

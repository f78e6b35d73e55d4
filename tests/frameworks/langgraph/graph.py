"""A graph with a fan-out by Send, a subgraph and a reducer."""

import operator
from typing import Annotated, TypedDict

from langchain.chat_models import init_chat_model
from langgraph.graph import END, START, StateGraph
from langgraph.types import Send

model = init_chat_model("openai:gpt-4o-mini")


class State(TypedDict):
    topics: list[str]
    notes: Annotated[list[str], operator.add]
    summary: str


class Topic(TypedDict):
    topic: str


def spread(state: State):
    return [Send("research", {"topic": topic}) for topic in state["topics"]]


def research(state: Topic):
    return {"notes": [model.invoke(f"Say something about {state['topic']}").text]}


def summarise(state: State):
    return {"summary": model.invoke("Summarise: " + " / ".join(state["notes"])).text}


builder = StateGraph(State)
builder.add_node("research", research)
builder.add_node("summarise", summarise)
builder.add_conditional_edges(START, spread, ["research"])
builder.add_edge("research", "summarise")
builder.add_edge("summarise", END)
final = builder.compile().invoke({"topics": ["ants", "bees", "cats", "dogs", "eels"], "notes": []})
print(final["notes"], final["summary"])

import operator
from typing import Annotated, TypedDict

from langchain_openai import ChatOpenAI
from langgraph.graph import END, START, StateGraph
from langgraph.types import Send

model = ChatOpenAI(model="gpt-4o-mini")


class State(TypedDict):
    topics: list[str]
    jokes: Annotated[list[str], operator.add]
    best: str


class One(TypedDict):
    topic: str


def topics(state):
    return {"topics": ["ants", "bees", "cats", "dogs"]}


def joke(state: One):
    return {"jokes": [model.invoke(f"A joke about {state['topic']}").content]}


def best(state):
    return {"best": model.invoke("The best of " + "; ".join(state["jokes"])).content}


graph = StateGraph(State)
graph.add_node(topics)
graph.add_node(joke)
graph.add_node(best)
graph.add_edge(START, "topics")
graph.add_conditional_edges("topics", lambda s: [Send("joke", {"topic": t}) for t in s["topics"]], ["joke"])
graph.add_edge("joke", "best")
graph.add_edge("best", END)
for step in graph.compile().stream({"jokes": []}):
    print(step)

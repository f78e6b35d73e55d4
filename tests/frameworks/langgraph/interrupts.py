"""A person must agree; what is known so far is kept in SQLite."""

import sqlite3
from typing import TypedDict

from langchain.chat_models import init_chat_model
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import START, StateGraph
from langgraph.types import Command, interrupt

model = init_chat_model("openai:gpt-4o-mini")


class State(TypedDict, total=False):
    goal: str
    plan: str
    agreed: str
    done: str


graph = StateGraph(State)
graph.add_node("think", lambda state: {"plan": model.invoke(f"Plan {state['goal']}").text})
graph.add_node("ask", lambda state: {"agreed": interrupt({"plan": state["plan"]})})
graph.add_node("act", lambda state: {"done": model.invoke(f"Do {state['plan']}: {state['agreed']}").text})
graph.add_edge(START, "think").add_edge("think", "ask").add_edge("ask", "act")
agent = graph.compile(checkpointer=SqliteSaver(sqlite3.connect("state.db", check_same_thread=False)))
for number in range(2):
    config = {"configurable": {"thread_id": str(number)}}
    print(agent.invoke({"goal": f"trip {number}"}, config)["__interrupt__"][0].value)
    for mode, part in agent.stream(Command(resume="yes"), config, stream_mode=["values", "tasks"]):
        print(mode, sorted(part))
before = next(state for state in agent.get_state_history(config) if state.next == ("act",))
print(agent.invoke(None, before.config)["done"])

import asyncio
import operator
from typing import Annotated, TypedDict

from langchain_openai import ChatOpenAI
from langgraph.cache.memory import InMemoryCache
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import CachePolicy, RetryPolicy

model = ChatOpenAI(model="gpt-4o-mini")


class State(TypedDict):
    said: Annotated[list[str], operator.add]


def node(name):
    tries = []

    async def run(state):
        tries.append(1)
        if len(tries) == 1 and name == "c":
            raise ConnectionError("again")
        return {"said": [(await model.ainvoke(f"{name} after {len(state['said'])}")).content]}

    return run


graph = StateGraph(State)
for name in "abcd":
    graph.add_node(
        name, node(name), retry_policy=RetryPolicy(initial_interval=0.01), cache_policy=CachePolicy()
    )
graph.add_node("end", node("end"), defer=True)
graph.add_edge(START, "a")
graph.add_edge(START, "b")
graph.add_edge("a", "c")
graph.add_edge("b", "end")
graph.add_edge("c", "d")
graph.add_edge("d", "end")
graph.add_edge("end", END)
app = graph.compile(checkpointer=InMemorySaver(), cache=InMemoryCache())


async def main():
    config = {"configurable": {"thread_id": "1"}}
    print(await app.ainvoke({"said": []}, config))
    history = [state async for state in app.aget_state_history(config)]
    print(await app.ainvoke(None, history[2].config))


asyncio.run(main())

"""Subgraphs for many topics at once, in SQLite, with the tokens of all their models in one stream."""

import asyncio
import operator
from typing import Annotated, TypedDict

from langchain.chat_models import init_chat_model
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.graph import START, StateGraph
from langgraph.types import Send

model = init_chat_model("openai:gpt-4o-mini")
claude = init_chat_model("anthropic:claude-sonnet-4-5")


class Topic(TypedDict):
    topic: str
    said: Annotated[list, operator.add]


class Report(TypedDict):
    topics: list
    said: Annotated[list, operator.add]


async def praise(state):
    return {"said": [(await model.ainvoke(f"Praise {state['topic']}")).text]}


async def blame(state):
    return {"said": [(await claude.ainvoke(f"Blame {state['topic']}")).text]}


async def sum_up(state):
    return {"said": [(await model.ainvoke("Sum up: " + "; ".join(state["said"]))).text]}


both = StateGraph(Topic).add_node(praise).add_node(blame)
both = both.add_edge(START, "praise").add_edge(START, "blame").compile()


async def look(state):
    return {"said": (await both.ainvoke({"topic": state["topic"], "said": []}))["said"]}


graph = StateGraph(Report).add_node(look).add_node(sum_up).add_edge("look", "sum_up")
graph.add_conditional_edges(
    START, lambda state: [Send("look", {"topic": topic}) for topic in state["topics"]]
)


async def main():
    async with AsyncSqliteSaver.from_conn_string("state.db") as saver:
        agent = graph.compile(checkpointer=saver)
        config = {"configurable": {"thread_id": "1"}}
        asked = {"topics": ["ants", "bees", "cats", "dogs"]}
        modes = ["updates", "messages"]
        async for _, mode, part in agent.astream(asked, config, stream_mode=modes, subgraphs=True):
            print(mode, list(part) if mode == "updates" else part[0].text)
        print((await agent.aget_state(config)).values["said"])


asyncio.run(main())

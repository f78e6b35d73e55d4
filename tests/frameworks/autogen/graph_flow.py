import asyncio

from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.teams import DiGraphBuilder, GraphFlow
from autogen_ext.models.openai import OpenAIChatCompletionClient


def make(name):
    model = OpenAIChatCompletionClient(model="gpt-4o-mini")
    return AssistantAgent(name, model_client=model, system_message=f"You are {name}.")


async def main():
    writer, one, two, end = map(make, ("writer", "one", "two", "final"))
    builder = DiGraphBuilder()
    for each in (writer, one, two, end):
        builder.add_node(each)
    builder.add_edge(writer, one).add_edge(writer, two).add_edge(one, end).add_edge(two, end)
    flow = GraphFlow(builder.get_participants(), graph=builder.build())
    async for event in flow.run_stream(task="Say something about ants"):
        print(getattr(event, "source", type(event).__name__), str(getattr(event, "content", ""))[:60])


asyncio.run(main())

import asyncio

from llama_index.core.agent.workflow import AgentWorkflow, FunctionAgent
from llama_index.core.memory import Memory
from llama_index.core.workflow import Context
from llama_index.llms.openai import OpenAI


async def get_weather(ctx: Context, city: str) -> str:
    """The weather in a city."""
    await ctx.store.set("last", city)
    return f"{len(city)} degrees in {city}"


async def main():
    agent = FunctionAgent(
        name="one",
        description="d",
        tools=[get_weather],
        llm=OpenAI(model="gpt-4o-mini"),
        system_prompt="Help.",
    )
    flow = AgentWorkflow(agents=[agent], root_agent="one")
    ctx = Context(flow)
    memory = Memory.from_defaults(session_id="s", token_limit=4000)
    print(await flow.run(user_msg="How is the weather in Oslo?", ctx=ctx, memory=memory))
    print(await flow.run(user_msg="And in Cairo, Rome?", ctx=ctx, memory=memory))


asyncio.run(main())

import asyncio

from _agent import make_agent


async def main():
    result = await make_agent(reflect_on_tool_use=True).run(task="How is the weather in Paris and Rome?")
    print([message.to_text() for message in result.messages])


asyncio.run(main())

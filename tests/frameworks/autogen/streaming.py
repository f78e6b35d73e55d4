import asyncio

from _agent import make_agent


async def main():
    agent = make_agent(reflect_on_tool_use=True, model_client_stream=True)
    async for item in agent.run_stream(task="How is the weather in Oslo and Lima?"):
        print(type(item).__name__, getattr(item, "content", "") if hasattr(item, "to_text") else "")


asyncio.run(main())

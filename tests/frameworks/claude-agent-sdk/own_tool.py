import asyncio

from claude_agent_sdk import ClaudeAgentOptions, ClaudeSDKClient, ResultMessage, create_sdk_mcp_server, tool


@tool("get_weather", "The weather in a city", {"city": str})
async def get_weather(given):
    return {"content": [{"type": "text", "text": f"{len(given['city'])} degrees in {given['city']}"}]}


async def main():
    server = create_sdk_mcp_server("weather", tools=[get_weather])
    options = ClaudeAgentOptions(mcp_servers={"weather": server}, allowed_tools=["mcp__weather__get_weather"])
    async with ClaudeSDKClient(options=options) as client:
        await client.query("How is the weather in Paris?")
        async for message in client.receive_response():
            if isinstance(message, ResultMessage):
                print(message.result)


asyncio.run(main())

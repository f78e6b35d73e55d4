import asyncio

from claude_agent_sdk import AssistantMessage, ClaudeAgentOptions, ResultMessage, query


async def main():
    options = ClaudeAgentOptions(allowed_tools=["Bash"], max_turns=4)
    async for message in query(prompt="How many files are here?", options=options):
        if isinstance(message, ResultMessage):
            print(message.result)
        elif isinstance(message, AssistantMessage):
            print([type(block).__name__ for block in message.content])


asyncio.run(main())

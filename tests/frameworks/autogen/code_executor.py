import asyncio
from pathlib import Path

from autogen_agentchat.agents import CodeExecutorAgent
from autogen_agentchat.messages import TextMessage
from autogen_core import CancellationToken
from autogen_ext.code_executors.local import LocalCommandLineCodeExecutor
from autogen_ext.models.openai import OpenAIChatCompletionClient


async def main():
    Path("code").mkdir(exist_ok=True)
    agent = CodeExecutorAgent(
        "coder",
        LocalCommandLineCodeExecutor(work_dir="code"),
        model_client=OpenAIChatCompletionClient(model="gpt-4o-mini"),
    )
    task = TextMessage(content="Write code that counts", source="user")
    response = await agent.on_messages([task], CancellationToken())
    print(response.chat_message.to_text())


asyncio.run(main())

import asyncio

from semantic_kernel.agents import ChatCompletionAgent, ConcurrentOrchestration
from semantic_kernel.agents.runtime import InProcessRuntime
from semantic_kernel.connectors.ai.open_ai import OpenAIChatCompletion


def member(name):
    return ChatCompletionAgent(
        service=OpenAIChatCompletion(ai_model_id="gpt-4o-mini"), name=name, instructions=f"You are {name}."
    )


async def main():
    team = ConcurrentOrchestration(members=[member(name) for name in ("Ada", "Bob", "Eve")])
    runtime = InProcessRuntime()
    runtime.start()
    result = await team.invoke(task="Say something about ants", runtime=runtime)
    for message in sorted(await result.get(timeout=60), key=lambda each: each.name):
        print(message.name, message.content)
    await runtime.stop_when_idle()


asyncio.run(main())

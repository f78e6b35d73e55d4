"""Tools that ask another agent, and count who came first; the answer is checked once more."""

import asyncio

from pydantic_ai import Agent, ModelRetry, RunContext

helper = Agent("anthropic:claude-sonnet-4-5")
agent = Agent("openai-chat:gpt-4o-mini", deps_type=list)


@agent.tool
async def get_weather(context: RunContext[list], city: str) -> str:
    """The weather in a city."""
    guessed = await helper.run(f"Guess it for {city.upper()}", usage=context.usage)
    context.deps.append(city)
    return f"{guessed.output}, as number {len(context.deps)}"


@agent.output_validator
async def check(context: RunContext[list], output: str) -> str:
    if context.retry == 0:
        raise ModelRetry("Say it again")
    return output


async def main():
    order = []
    result = await agent.run("How is the weather in Paris, Rome, Oslo, Lima and Cairo?", deps=order)
    print(result.output, order, result.usage)


asyncio.run(main())

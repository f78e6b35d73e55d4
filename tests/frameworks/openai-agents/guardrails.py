"""Guardrails that ask an agent run beside the run; tools ask agents in parallel."""

import asyncio

from agents import (
    Agent,
    GuardrailFunctionOutput,
    Runner,
    SQLiteSession,
    function_tool,
    input_guardrail,
    output_guardrail,
)

checker = Agent(name="Checker", instructions="Check it.", model="gpt-4o-mini")
helper = Agent(name="Helper", instructions="Guess it.", model="gpt-4o-mini")
order = []


@input_guardrail
async def check_input(context, agent, text):
    checked = await Runner.run(checker, f"Is it fine to ask this? {len(str(text))}")
    return GuardrailFunctionOutput(checked.final_output, tripwire_triggered=False)


@output_guardrail
async def check_output(context, agent, text):
    checked = await Runner.run(checker, f"Is it fine to say this? {text}")
    return GuardrailFunctionOutput(checked.final_output, tripwire_triggered=False)


@function_tool
async def get_weather(city: str) -> str:
    """The weather in a city."""
    guessed = await Runner.run(helper, f"Guess it for {city.upper()}")
    order.append(city)
    return f"{guessed.final_output}, as number {len(order)}"


async def main():
    agent = Agent(
        name="Forecaster",
        instructions="Be helpful.",
        model="gpt-4o-mini",
        tools=[get_weather],
        input_guardrails=[check_input],
        output_guardrails=[check_output],
    )
    session = SQLiteSession("ada", "sessions.db")
    for text in ("How is the weather in Paris, Rome, Oslo and Lima?", "What did I ask?"):
        print((await Runner.run(agent, text, session=session)).final_output)
    print(order, len(await session.get_items()))


asyncio.run(main())

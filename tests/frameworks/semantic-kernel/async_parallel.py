import asyncio

from semantic_kernel.agents import ChatCompletionAgent
from semantic_kernel.connectors.ai.open_ai import OpenAIChatCompletion
from semantic_kernel.functions import kernel_function


class Weather:
    @kernel_function
    def get_weather(self, city: str) -> str:
        """The weather in a city."""
        return f"{len(city)} degrees in {city}"


async def ask(city):
    agent = ChatCompletionAgent(
        service=OpenAIChatCompletion(ai_model_id="gpt-4o-mini"), name="Weather", plugins=[Weather()]
    )
    return await agent.get_response(f"How is the weather in {city} and Rome?")


async def main():
    for answer in await asyncio.gather(*(ask(city) for city in ("Paris", "Oslo", "Lima"))):
        print(answer)


asyncio.run(main())

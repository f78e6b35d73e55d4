import asyncio

from agno.agent import Agent
from agno.models.openai import OpenAIChat
from agno.workflow import Parallel, Step, Workflow


async def get_weather(city: str) -> str:
    """The weather in a city."""
    await asyncio.sleep(len(city) / 500)
    return f"{len(city)} degrees in {city}"


def make(name):
    return Agent(name=name, model=OpenAIChat(id="gpt-4o-mini"), tools=[get_weather])


async def main():
    print((await make("a").arun("How is the weather in Paris, Oslo and Rome?")).content)
    flow = Workflow(
        name="w",
        steps=[
            Parallel(Step(name="l", agent=make("l")), Step(name="r", agent=make("r")), name="both"),
            Step(name="end", agent=make("e")),
        ],
    )
    print((await flow.arun("Weather in Lima and Cairo?")).content)
    async for event in make("s").arun(
        "How is the weather in Tokyo and Delhi?", stream=True, stream_events=True
    ):
        print(event.event, end=" ")


asyncio.run(main())
print(
    Workflow(
        name="w2",
        steps=[
            Parallel(Step(name="l", agent=make("l")), Step(name="r", agent=make("r")), name="both"),
            Step(name="end", agent=make("e")),
        ],
    )
    .run("Weather in Quito?")
    .content
)

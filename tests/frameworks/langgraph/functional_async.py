import asyncio

from langchain_openai import ChatOpenAI
from langgraph.func import entrypoint, task

model = ChatOpenAI(model="gpt-4o-mini")


@task
async def write(topic: str) -> str:
    return (await model.ainvoke(f"An essay about {topic}")).content


@entrypoint()
async def flow(topics: list[str]):
    said = [await done for done in asyncio.as_completed([write(topic) for topic in topics])]
    return (await model.ainvoke("Sum up " + "; ".join(said))).content


async def main():
    async for item in flow.astream(["cats", "dogs", "eels", "fish"], stream_mode="values"):
        print(item)


asyncio.run(main())

import asyncio

from openai import AsyncOpenAI
from taskiq import InMemoryBroker

broker = InMemoryBroker()


@broker.task
async def ask(topic: str) -> str:
    asked = [{"role": "user", "content": f"Say something about {topic}"}]
    answer = await AsyncOpenAI().chat.completions.create(model="gpt-4o-mini", messages=asked)
    return answer.choices[0].message.content


async def main():
    await broker.startup()
    tasks = [await ask.kiq(topic) for topic in ("ants", "bees", "cats", "dogs")]
    for task in tasks:
        print((await task.wait_result(timeout=60)).return_value)
    await broker.shutdown()


asyncio.run(main())

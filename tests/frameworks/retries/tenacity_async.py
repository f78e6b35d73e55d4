"""Tasks try again after random pauses; who comes first is asked about."""

import asyncio

from _ask import TOPICS, ask_async
from openai import AsyncOpenAI
from tenacity import retry, stop_after_attempt, wait_random_exponential

client = AsyncOpenAI(max_retries=0)
tries = []


@retry(wait=wait_random_exponential(multiplier=0.05, max=0.2), stop=stop_after_attempt(5))
async def ask(topic):
    tries.append(topic)
    asked = [{"role": "user", "content": f"Try {tries.count(topic)}: say something about {topic}"}]
    made = await client.chat.completions.create(model="gpt-4o-mini", messages=asked)
    return made.choices[0].message.content


async def main():
    print(await asyncio.gather(*map(ask, TOPICS)))
    print(await ask_async("Who was first? " + ", ".join(tries)))


asyncio.run(main())

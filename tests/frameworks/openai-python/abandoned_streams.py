import asyncio
import gc

from _ask import TOPICS, ask
from openai import AsyncOpenAI, OpenAI


def asked(topic):
    return [{"role": "user", "content": f"Say something about {topic}"}]


def words(topic):
    pieces = OpenAI().chat.completions.create(model="gpt-4o-mini", messages=asked(topic), stream=True)
    try:
        for piece in pieces:
            if piece.choices and piece.choices[0].delta.content:
                yield piece.choices[0].delta.content
    finally:
        print("left", topic)


async def words_async(topic):
    client = AsyncOpenAI()
    pieces = await client.chat.completions.create(model="gpt-4o-mini", messages=asked(topic), stream=True)
    try:
        async for piece in pieces:
            if piece.choices and piece.choices[0].delta.content:
                yield piece.choices[0].delta.content
    finally:
        print("left", topic)


async def main():
    async for word in words_async("bees"):
        print(word)
        break
    started = words_async("cats")
    print(await anext(started))
    await started.aclose()
    print(await asyncio.gather(*(anext(words_async(topic)) for topic in TOPICS[3:])))


first = words("ants")
print(next(first))
del first
gc.collect()
asyncio.run(main())
print(ask("That was all"))

import asyncio

from openai import AsyncOpenAI, OpenAI


def asked(text):
    return {"model": "gpt-4o-mini", "messages": [{"role": "user", "content": text}]}


client = OpenAI()
heard = []
for topic in ("ants", "bees", "cats"):
    stream = client.chat.completions.create(
        **asked(f"Say a lot about {topic} and many other things"), stream=True
    )
    for number, piece in enumerate(stream):
        heard.append(piece.choices[0].delta.content or "")
        if number == 2:
            break
    stream.close()
print(heard)


async def first(client, topic):
    async with await client.chat.completions.create(
        **asked(f"Say a lot about {topic}"), stream=True
    ) as stream:
        async for piece in stream:
            if piece.choices[0].delta.content:
                return piece.choices[0].delta.content
    return None


async def main():
    client = AsyncOpenAI()
    said = await asyncio.gather(*(first(client, topic) for topic in ("dogs", "eels", "fish")))
    tasks = [asyncio.create_task(first(client, topic)) for topic in ("gnus", "hens")]
    done, left = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for task in left:
        task.cancel()
    await asyncio.gather(*left, return_exceptions=True)
    last = await client.chat.completions.create(**asked(f"{said} {[t.result() for t in done]}"))
    print(last.choices[0].message.content)


asyncio.run(main())

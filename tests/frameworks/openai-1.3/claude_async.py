import asyncio

import anthropic

c = anthropic.AsyncAnthropic()
said = []


async def ask(q):
    m = await c.messages.create(
        model="claude-3-opus-20240229", max_tokens=100, messages=[{"role": "user", "content": q}]
    )
    said.append(m.content[0].text)


async def main():
    await asyncio.gather(*(ask(f"Say something about {t}") for t in ["ants", "bees", "cats"]))
    await ask("Sum up " + "; ".join(said))
    print(said)
    async with c.messages.stream(
        model="claude-3-opus-20240229", max_tokens=100, messages=[{"role": "user", "content": "more"}]
    ) as s:
        async for t in s.text_stream:
            print(t)


asyncio.run(main())

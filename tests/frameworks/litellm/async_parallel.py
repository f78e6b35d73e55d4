import asyncio

import litellm


async def ask(number):
    asked = [{"role": "user", "content": f"Say something about the number {number}"}]
    return (await litellm.acompletion(model="openai/gpt-4o-mini", messages=asked)).choices[0].message.content


async def main():
    print(await asyncio.gather(*map(ask, range(8))))


asyncio.run(main())

import asyncio

from _ask import TOPICS, ask_async

order = []


async def look(topic):
    for attempt in range(2):
        got = await ask_async(f"Say something about {topic}, attempt {attempt}, after {len(order)}")
        order.append(topic)
    return got


async def main():
    got = []
    for soon in asyncio.as_completed([look(topic) for topic in TOPICS]):
        got.append(await soon)
        got.append(await ask_async(f"Number {len(got)}: {got[-1]}"))
    print(order)
    print(await ask_async("Sum up: " + "; ".join(got)))


asyncio.run(main())

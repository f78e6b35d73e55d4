import asyncio

from _ask import TOPICS, ask_async
from tqdm.asyncio import tqdm


async def main():
    asked = [ask_async(f"Say something about {topic}") for topic in TOPICS]
    said = [await done for done in tqdm.as_completed(asked)]
    print(await ask_async("Sum up " + "; ".join(said)))


asyncio.run(main())

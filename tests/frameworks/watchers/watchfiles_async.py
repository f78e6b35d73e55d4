import asyncio
from pathlib import Path

from _ask import TOPICS, ask_async
from watchfiles import awatch

folder = Path("inbox")
folder.mkdir()


async def write():
    for topic in TOPICS[:3]:
        await asyncio.sleep(0.4)
        (folder / f"{topic}.txt").write_text(topic)


async def main():
    writing, said = asyncio.create_task(write()), []
    async for changes in awatch(folder, step=50):
        for _, path in sorted(changes):
            said.append(await ask_async(f"Say something about {Path(path).read_text()}"))
        if len(said) == 3:
            break
    await writing
    print(await ask_async("Sum up " + "; ".join(said)))


asyncio.run(main())

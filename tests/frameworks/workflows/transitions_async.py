import asyncio

from _ask import TOPICS, ask_async
from transitions.extensions.asyncio import AsyncMachine

said = []


class Model:
    def __init__(self, t):
        self.t = t

    async def on_enter_asking(self):
        said.append(await ask_async(f"Say something about {self.t}"))
        await self.finish()


async def main():
    ms = [Model(t) for t in TOPICS]
    AsyncMachine(
        ms,
        states=["idle", "asking", "done"],
        transitions=[["go", "idle", "asking"], ["finish", "asking", "done"]],
        initial="idle",
        queued=False,
    )
    await asyncio.gather(*(m.go() for m in ms))
    print(said, [m.state for m in ms])
    print(await ask_async("Sum up " + "; ".join(said)))


asyncio.run(main())

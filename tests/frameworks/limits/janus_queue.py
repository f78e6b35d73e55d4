import asyncio
import threading

import janus
from _ask import TOPICS, ask, ask_async


async def main():
    wanted, told = janus.Queue(), janus.Queue()

    def work():
        while (topic := wanted.sync_q.get()) is not None:
            told.sync_q.put(ask(f"Say something about {topic}"))

    workers = [threading.Thread(target=work) for _ in range(2)]
    for worker in workers:
        worker.start()
    for topic in [*TOPICS[:4], None, None]:
        await wanted.async_q.put(topic)
    said = [await told.async_q.get() for _ in range(4)]
    for worker in workers:
        worker.join()
    print(await ask_async("Sum up " + "; ".join(said)))
    await wanted.aclose()
    await told.aclose()


asyncio.run(main())

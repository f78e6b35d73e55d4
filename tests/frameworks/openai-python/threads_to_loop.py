import asyncio
import threading

from _ask import TOPICS, ask, ask_async


async def main():
    loop = asyncio.get_running_loop()
    queue = asyncio.Queue()

    def look(t):
        said = ask(f"Say something about {t}")
        loop.call_soon_threadsafe(queue.put_nowait, said)
        fut = asyncio.run_coroutine_threadsafe(ask_async("Shorter: " + said), loop)
        loop.call_soon_threadsafe(queue.put_nowait, fut.result())

    threads = [threading.Thread(target=look, args=[t]) for t in TOPICS]
    for t in threads:
        t.start()
    got = [await queue.get() for _ in range(12)]
    for t in threads:
        await asyncio.to_thread(t.join)
    print(got)
    print(await ask_async("Sum up: " + "; ".join(got)))


asyncio.run(main())

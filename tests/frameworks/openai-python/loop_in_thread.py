"""Threads wait for tasks of an event loop that runs in another thread."""

import asyncio
import threading

from _ask import TOPICS, ask, ask_async

loop = asyncio.new_event_loop()
threading.Thread(target=loop.run_forever, daemon=True).start()
said = []


def look(topic):
    asked = asyncio.run_coroutine_threadsafe(ask_async(f"Say something about {topic}"), loop)
    said.append(asked.result())


threads = [threading.Thread(target=look, args=[topic]) for topic in TOPICS]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(said)
print(ask("Sum up: " + "; ".join(said)))
loop.call_soon_threadsafe(loop.stop)

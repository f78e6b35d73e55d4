import asyncio
import socket

import httpx
from _ask import TOPICS, ask_async
from hypercorn.asyncio import serve
from hypercorn.config import Config
from quart import Quart, request

app = Quart(__name__)
said = []


@app.get("/ask")
async def respond():
    said.append(await ask_async(f"Say something about {request.args['topic']}"))
    return said[-1]


async def main():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    c = Config()
    c.bind = [f"127.0.0.1:{port}"]
    c.loglevel = "ERROR"
    stop = asyncio.Event()
    t = asyncio.create_task(serve(app, c, shutdown_trigger=stop.wait))
    await asyncio.sleep(0.5)
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}") as h:
        r = await asyncio.gather(*(h.get(f"/ask?topic={x}") for x in TOPICS))
    print([x.text for x in r])
    print(await ask_async("Sum up " + "; ".join(said)))
    stop.set()
    await t


asyncio.run(main())

"""A websocket server of its own with an agent behind it, and clients."""

import asyncio

import websockets
from _ask import TOPICS, ask_async

said = []


async def serve(ws):
    async for q in ws:
        await ws.send(await ask_async(q))


async def client(port, t):
    async with websockets.connect(f"ws://127.0.0.1:{port}") as ws:
        await ws.send(f"Say something about {t}")
        said.append(await ws.recv())


async def main():
    async with websockets.serve(serve, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        await asyncio.gather(*(client(port, t) for t in TOPICS))
        await client(port, "all of " + "; ".join(said))
    print(said)


asyncio.run(main())

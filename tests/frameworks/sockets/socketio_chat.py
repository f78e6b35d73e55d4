import asyncio
import socket

import socketio
import uvicorn
from _ask import TOPICS, ask_async

server = socketio.AsyncServer(async_mode="asgi")


@server.event
async def question(sid, topic):
    return await ask_async(f"Say something about {topic}")


async def main():
    listening = socket.create_server(("127.0.0.1", 0))
    app = uvicorn.Server(uvicorn.Config(socketio.ASGIApp(server), log_level="warning"))
    serving = asyncio.create_task(app.serve([listening]))
    client = socketio.AsyncClient()
    await client.connect(f"http://127.0.0.1:{listening.getsockname()[1]}")
    said = [await client.call("question", topic) for topic in TOPICS[:3]]
    print(await ask_async("Sum up " + "; ".join(said)))
    await client.disconnect()
    app.should_exit = True
    await serving


asyncio.run(main())

import asyncio
import socket

import httpx
import uvicorn
from _ask import TOPICS, ask_async
from httpx_sse import aconnect_sse
from sse_starlette import EventSourceResponse
from starlette.applications import Starlette
from starlette.routing import Route


async def events(request):
    async def tell():
        for topic in TOPICS[:3]:
            yield {"event": "said", "data": await ask_async(f"Say something about {topic}")}

    return EventSourceResponse(tell())


async def main():
    listening = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(Starlette(routes=[Route("/", events)]), log_level="warning"))
    serving = asyncio.create_task(server.serve([listening]))
    address = f"http://127.0.0.1:{listening.getsockname()[1]}"
    async with httpx.AsyncClient(base_url=address) as client, aconnect_sse(client, "GET", "/") as source:
        said = [event.data async for event in source.aiter_sse()]
    print(await ask_async("Sum up " + "; ".join(said)))
    server.should_exit = True
    await serving


asyncio.run(main())

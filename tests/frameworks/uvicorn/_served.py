"""A server with an agent behind it, and a client that asks it several things at once."""

import asyncio
import socket

import uvicorn
from openai import AsyncOpenAI
from starlette.applications import Starlette
from starlette.responses import JSONResponse, StreamingResponse
from starlette.routing import Route


async def ask(request):
    model = AsyncOpenAI()
    topic = request.query_params["topic"]
    said = []
    for question in (f"Say something about {topic}", f"Say more about {topic}"):
        answer = await model.chat.completions.create(
            model="gpt-4o-mini", messages=[{"role": "user", "content": question}]
        )
        said.append(answer.choices[0].message.content)
    return JSONResponse(said)


async def stream(request):
    model = AsyncOpenAI()
    asked = [{"role": "user", "content": f"Say something about {request.query_params['topic']}"}]

    async def pieces():
        async for piece in await model.chat.completions.create(
            model="gpt-4o-mini", messages=asked, stream=True
        ):
            if piece.choices:
                yield piece.choices[0].delta.content or ""

    return StreamingResponse(pieces())


app = Starlette(routes=[Route("/ask", ask), Route("/stream", stream)])


async def serve(client):
    """Serve on a free port as long as *client* runs."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        server = uvicorn.Server(uvicorn.Config(app, log_level="error"))
        serving = asyncio.create_task(server.serve([listening]))
        await client(f"http://127.0.0.1:{listening.getsockname()[1]}")
        server.should_exit = True
        await serving

import asyncio

from _ask import TOPICS, ask_async
from quart import Quart, request

app = Quart(__name__)
said = []


@app.get("/ask")
async def respond():
    said.append(await ask_async(f"Say something about {request.args['topic']}"))
    return said[-1]


async def main():
    client = app.test_client()
    await asyncio.gather(*(client.get(f"/ask?topic={topic}") for topic in TOPICS))
    print(said)
    print(await ask_async("Sum up: " + "; ".join(said)))


asyncio.run(main())

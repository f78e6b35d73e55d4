import asyncio

import httpx
from _served import serve


async def client(address):
    async with httpx.AsyncClient(base_url=address, timeout=60) as http:
        asked = [
            http.get("/ask", params={"topic": topic}) for topic in ("ants", "bees", "cats", "dogs", "eels")
        ]
        for answer in await asyncio.gather(*asked):
            print(answer.json())


asyncio.run(serve(client))

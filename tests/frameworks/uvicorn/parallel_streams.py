import asyncio

import httpx
from _served import serve


async def client(address):
    async with httpx.AsyncClient(base_url=address, timeout=60) as http:
        asked = [
            http.get("/stream", params={"topic": topic}) for topic in ("ants", "bees", "cats", "dogs", "eels")
        ]
        for answer in await asyncio.gather(*asked):
            print(answer.text)


asyncio.run(serve(client))

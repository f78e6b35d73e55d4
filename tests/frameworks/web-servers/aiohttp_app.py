import asyncio

from _ask import TOPICS, ask_async
from aiohttp import ClientSession, web

said = []


async def respond(request):
    said.append(await ask_async(f"Say something about {request.query['topic']}"))
    return web.Response(text=said[-1])


async def main():
    app = web.Application()
    app.router.add_get("/ask", respond)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    port = site._server.sockets[0].getsockname()[1]
    async with ClientSession() as s:

        async def get(t):
            async with s.get(f"http://127.0.0.1:{port}/ask", params={"topic": t}) as r:
                return await r.text()

        print(await asyncio.gather(*(get(t) for t in TOPICS)))
    print(await ask_async("Sum up " + "; ".join(said)))
    await runner.cleanup()


asyncio.run(main())

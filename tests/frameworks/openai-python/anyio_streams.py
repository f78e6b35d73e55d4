import anyio
from _ask import TOPICS, ask_async


async def main():
    send, receive = anyio.create_memory_object_stream(10)

    async def look(topic, send):
        async with send:
            await send.send(await ask_async(f"Say something about {topic}"))

    got = []
    async with anyio.create_task_group() as group:
        for t in TOPICS:
            group.start_soon(look, t, send.clone())
        send.close()
        async for item in receive:
            got.append(item)
            print(item)
    with anyio.move_on_after(0.001) as scope:
        await ask_async("too slow")
    print(scope.cancelled_caught)
    print(await ask_async("Sum up: " + "; ".join(got)))


anyio.run(main)

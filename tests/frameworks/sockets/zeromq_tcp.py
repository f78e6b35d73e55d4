import asyncio

import zmq
import zmq.asyncio
from _ask import TOPICS, ask_async

context = zmq.asyncio.Context()


async def serve(socket):
    while True:
        socket.send_string(await ask_async(f"Say something about {await socket.recv_string()}"))


async def main():
    server, client = context.socket(zmq.REP), context.socket(zmq.REQ)
    port = server.bind_to_random_port("tcp://127.0.0.1")
    client.connect(f"tcp://127.0.0.1:{port}")
    serving = asyncio.create_task(serve(server))
    said = []
    for topic in TOPICS[:3]:
        await client.send_string(topic)
        said.append(await client.recv_string())
    serving.cancel()
    print(await ask_async("Sum up " + "; ".join(said)))


asyncio.run(main())

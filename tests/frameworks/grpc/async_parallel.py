import asyncio

import grpc
from _ask import TOPICS, ask_async

said = []


class H(grpc.GenericRpcHandler):
    def service(self, d):
        async def f(r, c):
            said.append(await ask_async(f"Say something about {r.decode()}"))
            return said[-1].encode()

        return grpc.unary_unary_rpc_method_handler(f)


async def main():
    server = grpc.aio.server()
    server.add_generic_rpc_handlers((H(),))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as ch:
        m = ch.unary_unary("/A/Ask")
        await asyncio.gather(*(m(t.encode()) for t in TOPICS))
    print(said)
    print(await ask_async("Sum up " + "; ".join(said)))
    await server.stop(0)


asyncio.run(main())

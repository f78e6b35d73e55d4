from concurrent import futures

import grpc
from _ask import TOPICS, ask


class H(grpc.GenericRpcHandler):
    def service(self, d):
        return grpc.unary_unary_rpc_method_handler(
            lambda r, c: ask(f"Say something about {r.decode()}").encode()
        )


server = grpc.server(futures.ThreadPoolExecutor(3))
server.add_generic_rpc_handlers((H(),))
port = server.add_insecure_port("127.0.0.1:0")
server.start()
with grpc.insecure_channel(f"127.0.0.1:{port}") as ch:
    m = ch.unary_unary("/A/Ask")
    fs = [m.future(t.encode()) for t in TOPICS]
    said = [f.result().decode() for f in fs]
print(said)
print(ask("Sum up " + "; ".join(said)))
server.stop(0)

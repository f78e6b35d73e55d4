import threading

import websocket
import websockets.sync.server
from _ask import TOPICS, ask

said = []


def handler(ws):
    for q in ws:
        ws.send(ask(q))


server = websockets.sync.server.serve(handler, "127.0.0.1", 0)
port = server.socket.getsockname()[1]
threading.Thread(target=server.serve_forever, daemon=True).start()


def client(t):
    ws = websocket.create_connection(f"ws://127.0.0.1:{port}")
    ws.send(f"Say something about {t}")
    said.append(ws.recv())
    ws.close()


ts = [threading.Thread(target=client, args=[t]) for t in TOPICS]
[t.start() for t in ts]
[t.join() for t in ts]
client("all of " + "; ".join(said))
print(said)
server.shutdown()

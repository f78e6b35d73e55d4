import threading

import requests
from _ask import ask
from flask import Flask, request
from werkzeug.serving import make_server

app = Flask(__name__)


@app.post("/ask")
def answer():
    topic = request.json["topic"]
    first = ask(f"Say something about {topic}")
    return {"said": [first, ask(f"More than: {first}")]}


server = make_server("127.0.0.1", 0, app, threaded=True)
threading.Thread(target=server.serve_forever, daemon=True).start()
said = {}


def client(topic):
    address = f"http://127.0.0.1:{server.server_port}/ask"
    got = requests.post(address, json={"topic": topic}, timeout=60)
    said[topic] = got.json()["said"]


threads = [threading.Thread(target=client, args=(t,)) for t in ("ants", "bees", "cats")]
for t in threads:
    t.start()
for t in threads:
    t.join()
server.shutdown()
print(sorted(said.items()))

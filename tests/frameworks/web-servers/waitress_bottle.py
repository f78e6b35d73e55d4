import threading
from concurrent.futures import ThreadPoolExecutor

import bottle
import httpx
import waitress
from _ask import TOPICS, ask

app = bottle.Bottle()
said = []


@app.get("/ask")
def respond():
    said.append(ask(f"Say something about {bottle.request.query.topic}"))
    return said[-1]


server = waitress.create_server(app, host="127.0.0.1", port=0)
threading.Thread(target=server.run, daemon=True).start()
port = server.effective_port
with ThreadPoolExecutor(4) as p:
    print(
        list(
            p.map(
                lambda t: httpx.get(f"http://127.0.0.1:{port}/ask", params={"topic": t}, timeout=30).text,
                TOPICS,
            )
        )
    )
print(ask("Sum up " + "; ".join(said)))
server.close()

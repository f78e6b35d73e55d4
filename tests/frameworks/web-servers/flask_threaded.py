import logging
import threading
from concurrent.futures import ThreadPoolExecutor

import flask
import httpx
from _ask import TOPICS, ask
from werkzeug.serving import make_server

logging.getLogger("werkzeug").setLevel("ERROR")
app = flask.Flask("x")
said = []


@app.get("/ask")
def respond():
    said.append(ask(f"Say something about {flask.request.args['topic']}"))
    return said[-1]


server = make_server("127.0.0.1", 0, app, threaded=True)
threading.Thread(target=server.serve_forever).start()
with ThreadPoolExecutor(4) as p:
    print(
        list(
            p.map(
                lambda t: (
                    httpx.get(f"http://127.0.0.1:{server.port}/ask", params={"topic": t}, timeout=30).text
                ),
                TOPICS,
            )
        )
    )
print(ask("Sum up " + "; ".join(said)))
server.shutdown()

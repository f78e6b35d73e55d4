import threading
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from socketserver import ThreadingMixIn
from wsgiref.simple_server import WSGIServer, make_server

import falcon
from _ask import TOPICS, ask


class Topic:
    def on_get(self, request, response, topic):
        response.text = ask(f"Say something about {topic}")


class Server(ThreadingMixIn, WSGIServer):
    daemon_threads = True


app = falcon.App()
app.add_route("/{topic}", Topic())
server = make_server("127.0.0.1", 0, app, Server)
threading.Thread(target=server.serve_forever, daemon=True).start()


def get(topic):
    with urllib.request.urlopen(f"http://127.0.0.1:{server.server_port}/{topic}") as answer:
        return answer.read().decode()


with ThreadPoolExecutor(4) as pool:
    print(ask("Sum up: " + "; ".join(pool.map(get, TOPICS))))

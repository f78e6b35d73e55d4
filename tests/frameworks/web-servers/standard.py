import json
import threading
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from _ask import TOPICS, ask


class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        said = json.dumps({"said": ask("Say " + body["topic"])}).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(said)))
        self.end_headers()
        self.wfile.write(said)


server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()


def get(topic):
    data = json.dumps({"topic": topic}).encode()
    with urllib.request.urlopen(f"http://127.0.0.1:{server.server_port}/", data) as answer:
        return json.load(answer)["said"]


with ThreadPoolExecutor(3) as pool:
    said = list(pool.map(get, TOPICS))
print(ask("Sum up " + "; ".join(said)))
server.shutdown()

import socket
from concurrent.futures import ThreadPoolExecutor

import cherrypy
import httpx
from _ask import TOPICS, ask

said = []


class App:
    @cherrypy.expose
    def ask(self, topic):
        said.append(ask(f"Say something about {topic}"))
        return said[-1]


with socket.socket() as s:
    s.bind(("127.0.0.1", 0))
    port = s.getsockname()[1]
cherrypy.config.update({"server.socket_port": port, "log.screen": False, "engine.autoreload.on": False})
cherrypy.tree.mount(App())
cherrypy.engine.start()
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
cherrypy.engine.exit()

import asyncio
import json

import tornado.httpclient
import tornado.httpserver
import tornado.netutil
import tornado.web
from _ask import TOPICS, ask_async


class Ask(tornado.web.RequestHandler):
    async def get(self):
        self.write({"said": await ask_async("Say something about " + self.get_argument("topic"))})


async def main():
    server = tornado.httpserver.HTTPServer(tornado.web.Application([("/ask", Ask)]))
    sockets = tornado.netutil.bind_sockets(0, "127.0.0.1")
    server.add_sockets(sockets)
    address = f"http://127.0.0.1:{sockets[0].getsockname()[1]}/ask?topic="
    client = tornado.httpclient.AsyncHTTPClient()
    answers = await asyncio.gather(*(client.fetch(address + topic) for topic in TOPICS))
    print([json.loads(each.body)["said"] for each in answers])


asyncio.run(main())

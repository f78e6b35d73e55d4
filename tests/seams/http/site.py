"""A small web site that really listens, with the oddities that clients meet, and a count of connections."""

from __future__ import annotations

import gzip
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

import brotli
import zstandard

PAGE = "Grüße aus dem Netz. " * 50
CHUNKS = (b"data: one\n\n", b"data: tw", b"o \xc3", b"\xa4\n\ndata: three\n\n")
"""Server-sent events, cut where nobody would cut them: within an event and within a character."""
CODINGS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "deflate": zlib.compress,
    "br": brotli.compress,
    "zstd": zstandard.ZstdCompressor().compress,
}


class Site:
    """Where it is, and what came near it."""

    def __init__(self, server: ThreadingHTTPServer) -> None:
        self.url = f"http://127.0.0.1:{server.server_port}"
        self.connections = 0
        self.bodies: list[bytes] = []


@contextmanager
def open_site() -> Iterator[Site]:
    class Handler(_Handler):
        def setup(self) -> None:
            site.connections += 1
            super().setup()

        def do_POST(self) -> None:
            site.bodies.append(self.read_body())
            self.answer(200, b"got %d" % len(site.bodies[-1]))

        do_PUT = do_POST  # noqa: N815

    server = _Server(("127.0.0.1", 0), Handler)
    site = Site(server)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield site
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients that leave early are part of the tests."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: Any) -> None:
        """Be quiet."""

    def do_HEAD(self) -> None:
        self.answer(200, PAGE.encode(), is_head=True)

    def do_GET(self) -> None:
        _, name, *rest = urlsplit(self.path).path.split("/")
        getattr(self, f"get_{name}")(*rest)

    def get_page(self, *_: str) -> None:
        self.answer(200, PAGE.encode(), {"Content-Type": "text/plain; charset=utf-8", "X-Twice": "no"})

    def get_echo(self, word: str) -> None:
        self.answer(200, word.encode())

    def get_bytes(self) -> None:
        self.answer(200, bytes(range(256)), {"Content-Type": "application/octet-stream"})

    def get_nothing(self) -> None:
        self.send_response(204)
        self.end_headers()

    def get_status(self, status: str) -> None:
        self.answer(int(status), b"no " + status.encode())

    def get_coded(self, coding: str) -> None:
        headers = {"Content-Encoding": coding, "Content-Type": "text/plain; charset=utf-8"}
        self.answer(200, CODINGS[coding](PAGE.encode()), headers)

    def get_moved(self) -> None:
        headers = {"Location": "/page", "Set-Cookie": "first=1; Path=/"}
        self.answer(302, b"elsewhere", headers, ("Set-Cookie", "second=2; Path=/"))

    def get_stream(self) -> None:
        self.begin_chunked("text/event-stream")
        for chunk in CHUNKS:
            self.wfile.write(b"%x\r\n%b\r\n" % (len(chunk), chunk))
            self.wfile.flush()
            time.sleep(0.02)
        self.wfile.write(b"0\r\n\r\n")

    def get_broken(self) -> None:
        """A stream that stops without its end."""
        self.begin_chunked("text/plain")
        self.wfile.write(b"5\r\nhello\r\n")
        self.close_connection = True

    def get_stalling(self) -> None:
        """A stream that says one thing and falls silent."""
        self.begin_chunked("text/plain")
        self.wfile.write(b"5\r\nhello\r\n")
        time.sleep(0.5)
        self.close_connection = True

    def get_short(self) -> None:
        """A body that is shorter than announced."""
        self.send_response(200)
        self.send_header("Content-Length", "100")
        self.end_headers()
        self.wfile.write(b"abc")
        self.close_connection = True

    def get_slow(self) -> None:
        time.sleep(0.5)
        self.close_connection = True

    def begin_chunked(self, content_type: str) -> None:
        self.send_response(200)
        self.send_header("Content-Type", content_type)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()

    def answer(
        self,
        status: int,
        body: bytes,
        headers: dict[str, str] | None = None,
        *more: tuple[str, str],
        is_head: bool = False,
    ) -> None:
        self.send_response(status)
        for name, value in (*(headers or {}).items(), *more, ("Content-Length", str(len(body)))):
            self.send_header(name, value)
        self.end_headers()
        if not is_head:
            self.wfile.write(body)

    def read_body(self) -> bytes:
        if self.headers.get("transfer-encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("content-length", 0)))
        body = b""
        while size := int(self.rfile.readline(), 16):
            body += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return body

"""``urllib3``, and what is built on it: ``requests``, ``botocore``.

The seam is a single attempt on a connection of the pool; urllib3's retries and redirects lie above it. The
client reads the answer, live or recorded, through a simulated socket (:mod:`.wire`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from inspect import signature
from types import ModuleType
from typing import Any, Final
from urllib.parse import urlsplit
from weakref import WeakKeyDictionary

from reenact.process_state import urllib3_streamed_var
from reenact.seams.http.exchange import Exchange, is_outermost, is_own, without_recording
from reenact.seams.http.message import Head, Pairs
from reenact.seams.http.request import Sent, whole_body
from reenact.seams.http.wire import response_over
from reenact.seams.patches import Patch

_READ_BYTES: Final = 1 << 16
_DEFAULT_PORTS: Final = {"http": 80, "https": 443}

"""Whether the agent reads the body itself; ``None`` if the call's ``preload_content`` decides it."""


def patches(urllib3: ModuleType) -> list[Patch]:
    """The patches for *urllib3*; none for version 1, whose internals differ: ``http.client`` serves it."""
    if urllib3.__version__.startswith("1."):
        return []
    seam = _Seam(urllib3)
    return [
        Patch(urllib3.connectionpool.HTTPConnectionPool, "_make_request", seam.make_request),
        Patch(urllib3.connectionpool.HTTPSConnectionPool, "_prepare_proxy", seam.prepare_proxy),
    ]


def requests_patches(requests: ModuleType) -> list[Patch]:
    """The patches for *requests*: only it knows whether the agent reads the body itself."""
    return [Patch(requests.adapters.HTTPAdapter, "send", _send)]


def _send(original: Callable[..., object]) -> Callable[..., object]:
    def send(self: object, request: object, stream: bool = False, *args: object, **options: object) -> object:
        before = urllib3_streamed_var.get()
        urllib3_streamed_var.set(stream)
        try:
            return original(self, request, stream, *args, **options)
        finally:
            urllib3_streamed_var.set(before)

    return send


class _Seam:
    def __init__(self, urllib3: ModuleType) -> None:
        self._response: Any = _drop_unknown_arguments(urllib3.response.HTTPResponse)
        self._errors: Any = urllib3.exceptions
        self._tunnels: WeakKeyDictionary[object, Callable[[], None]] = WeakKeyDictionary()
        """By connection: a function that opens its tunnel through a proxy, not called yet."""

    def prepare_proxy(self, original: Callable[..., Any]) -> Callable[..., object]:
        def prepare_proxy(pool: Any, conn: object) -> None:
            """Defer opening the tunnel until the call turns out to be live: the tunnel is part of it."""
            if not is_outermost():
                original(pool, conn)
            else:
                self._tunnels[conn] = lambda: original(pool, conn)

        return prepare_proxy

    def make_request(self, original: Callable[..., object]) -> Callable[..., object]:
        is_fake = not is_own(original, "urllib3")

        def make_request(pool: object, conn: object, method: str, url: str, **options: object) -> object:
            if is_fake or not is_outermost() or not _has_connection(conn):
                return original(pool, conn, method, url, **options)
            body = options["body"] = whole_body(options.get("body"))
            sent = Sent(method, _absolute_url(pool, url), _pairs(options.get("headers")), body or b"")
            exchange = Exchange(sent, is_streamed=_is_streamed(options))
            if exchange.asked.is_left_alone:
                # The http.client seam would hold the body back; urllib3 needs the socket before the answer.
                with without_recording():
                    return original(pool, conn, method, url, **options)
            self._open(exchange, pool, conn)
            if not exchange.step.live:
                recorded = _Answer(exchange, exchange.head, exchange.chunks())
                # The connection from the pool is not used; it goes back when the answer has been read.
                unused = options.get("response_conn")
                return self._response(pool=pool, connection=unused, **recorded.fields(method, url, options))
            if exchange.sent_instead is not None:
                other = exchange.sent_instead
                url = _target(other.url) if url.startswith("/") else other.url
                options |= {"body": other.body, "headers": dict(other.headers), "chunked": False}
            with exchange.inside():
                self._dig_tunnel(pool, conn)
                response = original(pool, conn, method, url, **(options | {"preload_content": False}))
            head = _head(response)
            exchange.begin_answer(head)
            live = _Answer(exchange, head, _receive(exchange, response), response)
            return self._response(pool=pool, **live.fields(method, url, options))

        return make_request

    def _open(self, exchange: Exchange, pool: object, conn: object) -> None:
        """Open *exchange*; a recorded error gets the pool or connection, which no recording can hold."""
        try:
            exchange.open()
        except self._errors.PoolError as error:
            error.pool = pool
            raise
        except self._errors.NewConnectionError as error:
            error.conn = conn
            raise

    def _dig_tunnel(self, pool: Any, conn: Any) -> None:
        dig = self._tunnels.pop(conn, None)
        if dig is not None:
            try:
                dig()
            except OSError as error:
                pool._raise_timeout(err=error, url=pool.proxy.url, timeout_value=conn.timeout)  # noqa: SLF001
                raise


def _has_connection(conn: object) -> bool:
    """Whether *conn* is a real connection and not a test's fake."""
    return is_own(getattr(conn, "getresponse", None), "urllib3")


def _drop_unknown_arguments(make: Callable[..., object]) -> Callable[..., object]:
    """*make*, without those of our arguments that older versions do not have."""
    known = signature(make).parameters
    if "version_string" in known:
        return make
    return lambda **fields: make(**{name: value for name, value in fields.items() if name in known})


def _is_streamed(options: dict[str, object]) -> bool:
    asked = urllib3_streamed_var.get()
    return asked if asked is not None else not options.get("preload_content", True)


def _absolute_url(pool: Any, url: str) -> str:
    if not url.startswith("/"):
        return url
    host = f"[{pool.host}]" if ":" in pool.host else pool.host
    port = "" if pool.port in (None, _DEFAULT_PORTS.get(pool.scheme)) else f":{pool.port}"
    return f"{pool.scheme}://{host}{port}{url}"


def _target(url: str) -> str:
    """Path and query, as a request line has them."""
    parts = urlsplit(url)
    return f"{parts.path}?{parts.query}" if parts.query else parts.path


def _pairs(headers: Any) -> Pairs:
    return [(_text(name), _text(value)) for name, value in (headers or {}).items()]


def _text(value: object) -> str:
    return value.decode("latin-1") if isinstance(value, bytes) else str(value)


def _head(live: Any) -> Head:
    version = {9: "HTTP/0.9", 10: "HTTP/1.0", 11: "HTTP/1.1", 20: "HTTP/2"}.get(live.version, "HTTP/1.1")
    return Head(live.status, live.reason or "", version, list(live.headers.iteritems()))


def _receive(exchange: Exchange, response: Any) -> Iterator[bytes]:
    source = _transfer_chunks(response)
    while True:
        with exchange.inside():
            chunk = next(source, None)
        if chunk is None:
            return
        exchange.receive(chunk)
        yield chunk


def _transfer_chunks(response: Any) -> Iterator[bytes]:
    if response.chunked and response.supports_chunked_reads():
        yield from response.read_chunked(decode_content=False)
        return
    if hasattr(response, "read1"):
        while chunk := response.read1(_READ_BYTES, decode_content=False):
            yield chunk
        return
    # Before 2.2 a read waits for as much as it asks for; read1 below it returns what has arrived.
    response._fp_read = lambda amount: response._fp.read1(amount)  # noqa: SLF001
    while chunk := response._raw_read(_READ_BYTES):  # noqa: SLF001
        yield chunk


class _Answer:
    """Gives the client *head* and *chunks*, from the live *response* or, if ``None``, from the recording."""

    def __init__(self, exchange: Exchange, head: Head, chunks: Iterator[bytes], response: Any = None) -> None:
        self._exchange = exchange
        self._head = head
        self._chunks = chunks
        self._response = response

    def fields(self, method: str, url: str, options: dict[str, object]) -> dict[str, Any]:
        """The arguments for urllib3's response class."""
        head = self._head
        original = response_over(self._read(), head, method, self._close)
        return {
            "body": original,
            "original_response": original,
            "headers": head.headers,
            "status": head.status,
            "version": original.version,
            "version_string": head.http_version,
            "reason": head.reason,
            "preload_content": options.get("preload_content", True),
            "decode_content": options.get("decode_content", True),
            "retries": options.get("retries"),
            # A body that is too short has already raised below, live or recorded.
            "enforce_content_length": False,
            "request_method": method,
            "request_url": url,
        }

    def _read(self) -> Iterator[bytes]:
        yield from self._chunks
        self._exchange.end()

    def _close(self) -> None:
        is_whole = self._response is not None and self._response.length_remaining == 0
        self._exchange.end(None if is_whole else GeneratorExit())
        if self._response is not None:
            self._response.close()
            self._response.release_conn()

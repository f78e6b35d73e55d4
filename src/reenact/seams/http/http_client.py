"""``http.client``, and what is built on it: ``urllib.request``, ``xmlrpc.client``, ``urllib3`` 1.

A request crosses the boundary when its headers are complete and its body is known, before anything is
sent. In replay a recorded error is raised in the same phase, while sending or while receiving. The
connection's own code for requests, redirects and reading by size, line or chunk runs in replay, too.
"""

from __future__ import annotations

import http.client
import io
import socket
from collections.abc import Callable, Iterator
from http.client import HTTPConnection, HTTPResponse
from types import ModuleType
from typing import Any, Final
from urllib.parse import urlsplit
from weakref import WeakKeyDictionary

from reenact.seams.http.exchange import Exchange, is_outermost, is_own
from reenact.seams.http.message import Head, Pairs, header_value
from reenact.seams.http.request import Sent, whole_body
from reenact.seams.http.wire import is_chunked, response_over
from reenact.seams.patches import Patch

_READ_BYTES: Final = 1 << 16
_STARTED: Final = "Request-started"
_SENT: Final = "Request-sent"
_IDLE: Final = "Idle"
_STATE: Final = "_HTTPConnection__state"
_RECEIVING: Final = "was_receiving"
"""Marks an error raised while waiting for the answer; one without it was raised while sending."""


def patches(_: ModuleType) -> list[Patch]:
    """The patches for ``http.client``."""
    seam = _Seam()
    return [
        Patch(HTTPConnection, "endheaders", seam.endheaders),
        Patch(HTTPConnection, "send", seam.send),
        Patch(HTTPConnection, "getresponse", seam.getresponse),
        Patch(HTTPConnection, "close", seam.close),
    ]


class _PendingRequest:
    """One request on a connection, from its headers to its answer."""

    def __init__(self, connection: Any, body: Any, *, encode_chunked: bool) -> None:
        first, *lines = [line.decode("latin-1") for line in connection._buffer]  # noqa: SLF001
        self.method, target, _ = first.split(" ", 2)
        self.url = _absolute_url(connection, target)
        named = (line.partition(":") for line in "\r\n".join(lines).split("\r\n") if line)
        self.headers: Pairs = [(name, value.strip()) for name, _, value in named]
        self.encode_chunked = encode_chunked
        self.pieces = [] if body is None else [body]
        has_more = "content-length" in {name.lower() for name, _ in self.headers} or self.is_chunked
        self.is_open = body is None and has_more and header_value(self.headers, "content-length") != "0"
        """Whether the client will still send the body, piece by piece."""
        self.exchange: Exchange | None = None
        self.failure: BaseException | None = None
        """The error that the recorded call raised while waiting for its answer."""

    @property
    def is_chunked(self) -> bool:
        return "chunked" in header_value(self.headers, "transfer-encoding").lower()

    def sent(self) -> Sent:
        return Sent(self.method, self.url, self.headers, b"".join(map(bytes, self.pieces)))

    def send_instead(self, connection: Any, other: Sent) -> None:
        """Make *connection* send *other* in place of its own request."""
        first = connection._buffer[0].split(b" ", 2)  # noqa: SLF001
        if first[1].startswith(b"/"):
            parts = urlsplit(other.url)
            first[1] = f"{parts.path}?{parts.query}".removesuffix("?").encode("latin-1")
        else:
            first[1] = other.url.encode("latin-1")
        lines = [f"{name}: {value}".encode("latin-1") for name, value in other.headers]
        connection._buffer[:] = [b" ".join(first), *lines]  # noqa: SLF001
        self.pieces, self.encode_chunked = [other.body], False


class _Seam:
    def __init__(self) -> None:
        self._asking: WeakKeyDictionary[object, _PendingRequest] = WeakKeyDictionary()
        """By connection: the request that has no answer yet."""
        self._original: dict[str, Callable[..., object]] = {}

    def endheaders(self, original: Callable[..., object]) -> Callable[..., object]:
        is_fake = not is_own(original, "http.client")
        self._original["endheaders"] = original

        def endheaders(
            connection: object, message_body: object = None, *, encode_chunked: bool = False
        ) -> None:
            if is_fake or getattr(connection, _STATE, "") != _STARTED or not is_outermost():
                original(connection, message_body, encode_chunked=encode_chunked)
                return
            body = None if message_body is None else whole_body(message_body)
            asking = _PendingRequest(connection, body, encode_chunked=encode_chunked)
            if asking.is_open:
                self._asking[connection] = asking
                setattr(connection, _STATE, _SENT)
            else:
                self._ask(connection, asking)

        return endheaders

    def send(self, original: Callable[..., object]) -> Callable[..., object]:
        self._original["send"] = original

        def send(connection: object, data: object) -> None:
            asking = self._asking.get(connection)
            if asking is not None and asking.is_open:
                asking.pieces.append(whole_body(data))
            else:
                original(connection, data)

        return send

    def getresponse(self, original: Callable[..., object]) -> Callable[..., object]:
        def getresponse(connection: Any) -> object:
            asking = self._asking.get(connection)
            if asking is not None and asking.is_open:
                asking.is_open = False
                self._ask(connection, asking, state=_SENT)
            asking = self._asking.pop(connection, None)
            if asking is None or asking.exchange is None:
                return original(connection)
            if asking.failure is not None:
                connection.close()
                raise asking.failure
            if not asking.exchange.step.live:
                setattr(connection, _STATE, _IDLE)
                head = asking.exchange.head
                if "close" in header_value(head.headers, "connection").lower():
                    connection.close()
                return _Answer(asking.exchange, head, None).response(connection, asking)
            with asking.exchange.inside():
                response = _mark_receiving_error(original, connection)
            head = _head(response)
            asking.exchange.begin_answer(head)
            return _Answer(asking.exchange, head, response).response(connection, asking)

        return getresponse

    def close(self, original: Callable[..., object]) -> Callable[..., object]:
        def close(connection: object) -> None:
            asking = self._asking.pop(connection, None)
            if asking is not None and asking.exchange is not None:
                asking.exchange.abandon()
            original(connection)

        return close

    def _ask(self, connection: Any, asking: _PendingRequest, state: str = _STARTED) -> None:
        """Cross the boundary, and send the request if the call is live."""
        exchange = Exchange(asking.sent(), is_streamed=True)
        if exchange.asked.is_left_alone:
            self._send(connection, asking, state)
            return
        try:
            exchange.open()
        except Exception as error:
            if not vars(error).pop(_RECEIVING, False):
                connection.close()
                raise
            asking.failure = error
        asking.exchange = exchange
        self._asking[connection] = asking
        if asking.failure is not None or not exchange.step.live:
            connection._buffer.clear()  # noqa: SLF001
            setattr(connection, _STATE, _SENT)
            if connection.sock is None:
                connection.sock = socket.socket()  # unconnected; for code that sets its timeout or options
            return
        if exchange.sent_instead is not None:
            asking.send_instead(connection, exchange.sent_instead)
        try:
            with exchange.inside():
                self._send(connection, asking, state)
        except BaseException:
            self._asking.pop(connection, None)
            raise

    def _send(self, connection: object, asking: _PendingRequest, state: str) -> None:
        setattr(connection, _STATE, _STARTED)
        if state == _STARTED:
            body = b"".join(asking.pieces) if asking.pieces else None
            self._original["endheaders"](connection, body, encode_chunked=asking.encode_chunked)
            return
        self._original["endheaders"](connection)
        for piece in asking.pieces:
            self._original["send"](connection, piece)


def _mark_receiving_error(getresponse: Callable[..., object], connection: object) -> Any:
    try:
        return getresponse(connection)
    except Exception as error:
        setattr(error, _RECEIVING, True)
        raise


def _absolute_url(connection: Any, target: str) -> str:
    if not target.startswith("/"):
        return target
    is_secure = isinstance(connection, getattr(http.client, "HTTPSConnection", ()))
    scheme = "https" if is_secure else "http"
    host = connection._tunnel_host or connection.host  # noqa: SLF001
    port = (connection._tunnel_port if connection._tunnel_host else connection.port) or 0  # noqa: SLF001
    shown = f"[{host}]" if ":" in host else host
    return f"{scheme}://{shown}{'' if port in (0, 443 if is_secure else 80) else f':{port}'}{target}"


def _head(response: HTTPResponse) -> Head:
    version = {9: "HTTP/0.9", 10: "HTTP/1.0"}.get(response.version, "HTTP/1.1")
    return Head(response.status, response.reason, version, list(response.headers.items()))


class _Answer:
    """Gives the client *head* and a body, from the *live* response or, if ``None``, from the recording."""

    def __init__(self, exchange: Exchange, head: Head, live: HTTPResponse | None) -> None:
        self._exchange = exchange
        self._head = head
        self._live = live
        length = header_value(head.headers, "content-length")
        self._awaited = int(length) if length.isdecimal() and not is_chunked(head) else None

    def response(self, connection: Any, asking: _PendingRequest) -> HTTPResponse:
        response = response_over(
            self._chunks(),
            self._head,
            asking.method,
            self._close,
            response_class=connection.response_class,
            has_length=True,
        )
        lines = "".join(f"{name}: {value}\r\n" for name, value in self._head.headers)
        headers = http.client.parse_headers(io.BytesIO(f"{lines}\r\n".encode("latin-1")))
        response.headers = response.msg = headers
        return response

    def _chunks(self) -> Iterator[bytes]:
        for chunk in self._exchange.chunks() if self._live is None else self._receive(self._live):
            if self._awaited is not None:
                self._awaited -= len(chunk)
            yield chunk
        self._exchange.end()

    def _receive(self, live: HTTPResponse) -> Iterator[bytes]:
        while True:
            with self._exchange.inside():
                chunk = live.read1(_READ_BYTES)
            if not chunk:
                return
            self._exchange.receive(chunk)
            yield chunk

    def _close(self) -> None:
        has_no_body = self._live is not None and self._live.isclosed()
        self._exchange.end(None if self._awaited == 0 or has_no_body else GeneratorExit())
        if self._live is not None:
            self._live.close()

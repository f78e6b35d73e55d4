"""``aiohttp``: the seam is the innermost middleware of a session, below redirects and cookies.

Sessions have middlewares since aiohttp 3.12; older versions are not patched.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from types import ModuleType, SimpleNamespace
from typing import Any, Final, TypeAlias

from reenact.seams.http.exchange import Exchange, is_outermost, is_own
from reenact.seams.http.message import Head, headers_from_wire, headers_to_wire
from reenact.seams.http.request import Sent
from reenact.seams.http.wire import is_chunked
from reenact.seams.patches import Patch

Pull: TypeAlias = Callable[[bool], Awaitable[bytes]]
"""Returns the next bytes of a body, empty at its end: one transfer chunk if the argument is true, else all
that has arrived."""

_BODILESS: Final = (204, 304)
_BUFFER_BYTES: Final = 1 << 16


def patches(aiohttp: ModuleType) -> list[Patch]:
    """The patches for *aiohttp*; none for a version without middlewares or without ``Payload.as_bytes``."""
    if not hasattr(aiohttp, "ClientMiddlewareType") or not hasattr(aiohttp.payload.Payload, "as_bytes"):
        return []
    seam = _Seam(aiohttp)
    return [Patch(aiohttp.ClientSession, "_request", seam.request)]


class _Seam:
    def __init__(self, aiohttp: ModuleType) -> None:
        self._aiohttp: Any = aiohttp
        self._reader = _reader_class(aiohttp.StreamReader)
        self._headers: Any = sys.modules["multidict"].CIMultiDictProxy

    def request(self, original: Callable[..., Any]) -> Callable[..., object]:
        is_fake = not is_own(original, "aiohttp")

        async def request(session: Any, method: str, str_or_url: object, **options: Any) -> object:
            if not is_fake and is_outermost():
                chosen = options.get("middlewares")
                outer = session._middlewares if chosen is None else chosen  # noqa: SLF001
                asked = options.get("auto_decompress")
                is_decoded = session.auto_decompress if asked is None else asked
                options["middlewares"] = (*outer, self._middleware(is_decoded=is_decoded))
            return await original(session, method, str_or_url, **options)

        return request

    def _middleware(self, *, is_decoded: bool) -> Callable[..., object]:
        async def cross(request: Any, handler: Callable[..., Any]) -> object:
            exchange = Exchange(await _read_request(request), is_streamed=True, is_decoded=is_decoded)
            if exchange.asked.is_left_alone:
                return await handler(request)
            await self._open(exchange, request)
            if not exchange.step.live:
                return await self._answer_recorded(exchange, request)
            if exchange.sent_instead is not None:
                await _send_instead(request, exchange.sent_instead)
            with exchange.inside():
                response = await handler(request)
            head = _head_of(response)
            exchange.begin_answer(head)
            if response.content.at_eof():
                exchange.end()
            else:
                pull = _pull_from(response.content, exchange)
                response.content = self._reader(exchange, pull, head, request.loop)
            return response

        return cross

    async def _open(self, exchange: Exchange, request: Any) -> None:
        """Open *exchange*; a recorded error gets the request's objects, which no recording can hold."""
        try:
            await exchange.aopen()
        except self._aiohttp.ClientConnectorError as error:
            error._conn_key = request.connection_key  # noqa: SLF001
            raise
        except self._aiohttp.ClientResponseError as error:
            error.request_info, error.history = request.request_info, ()
            raise

    async def _answer_recorded(self, exchange: Exchange, request: Any) -> object:
        """A response that reads the recorded message from a stand-in for a connection."""
        head = exchange.head
        major, _, minor = head.http_version.removeprefix("HTTP/").partition(".")
        message = SimpleNamespace(
            code=head.status,
            reason=head.reason,
            version=self._aiohttp.HttpVersion(int(major), int(minor or 0)),
            headers=self._headers(type(request.headers)(head.headers)),
            raw_headers=tuple(headers_to_wire(head.headers)),
        )
        content = self._content(exchange, head, request)
        return await _new_response(request).start(_RecordedConnection(message, content))

    def _content(self, exchange: Exchange, head: Head, request: Any) -> Any:
        if request.method == "HEAD" or head.status in _BODILESS:
            exchange.end()
            return self._aiohttp.EMPTY_PAYLOAD
        return self._reader(exchange, _pull_recorded(exchange.achunks()), head, request.loop)


class _RecordedConnection:
    """The part of a connection, and of its protocol, that a response or a reader uses."""

    connected = True
    upgraded = False
    _reading_paused = False
    """Older versions of ``StreamReader`` read it directly."""

    def __init__(self, message: object = None, content: object = None) -> None:
        self._answer = message, content

    @property
    def protocol(self) -> _RecordedConnection:
        return self

    async def read(self) -> object:
        return self._answer

    def pause_reading(self) -> None:
        """Nothing arrives from a network, so there is nothing to pause."""

    def resume_reading(self, **_options: object) -> None:
        """Nothing was paused."""

    def add_callback(self, callback: Callable[[], None]) -> None:
        """Run *callback* at once: callbacks run at release, and no connection was acquired."""
        callback()

    def release(self) -> None:
        """Nothing to do: it does not belong to a pool."""

    def close(self) -> None:
        """Nothing to do: it was never open."""


def _new_response(request: Any) -> Any:
    offered = {
        "writer": None,
        "continue100": None,
        "timer": request._timer,  # noqa: SLF001 — as the request itself makes it
        "request_info": request.request_info,
        "traces": request._traces,  # noqa: SLF001
        "loop": request.loop,
        "session": request._session,  # noqa: SLF001
        "stream_writer": SimpleNamespace(output_size=0),
    }
    asked = inspect.signature(request.response_class).parameters
    fitting = {name: value for name, value in offered.items() if name in asked}
    return request.response_class(request.method, request.original_url, **fitting)


async def _read_request(request: Any) -> Sent:
    body = request.body
    if not isinstance(body, bytes):
        try:
            body = await body.as_bytes()
        except TypeError:  # a part of a received message, forwarded unread: it is known only when it is sent
            body = b""
    headers = [(str(name), str(value)) for name, value in request.headers.items()]
    return Sent(request.method, str(request.url), headers, body)


async def _send_instead(request: Any, other: Sent) -> None:
    request.url = type(request.url)(other.url, encoded=True)
    for name in ("Content-Encoding", "Transfer-Encoding"):
        request.headers.pop(name, None)
    await request.update_body(other.body)
    request.headers["Content-Length"] = str(len(other.body))


def _head_of(response: Any) -> Head:
    version = f"HTTP/{response.version.major}.{response.version.minor}"
    return Head(response.status, response.reason or "", version, headers_from_wire(response.raw_headers))


def _pull_from(content: Any, exchange: Exchange) -> Pull:
    async def pull(by_transfer_chunk: bool) -> bytes:
        is_end_of_chunk = True
        chunk = b""
        with exchange.inside():
            while is_end_of_chunk and not chunk:
                if by_transfer_chunk:
                    chunk, is_end_of_chunk = await content.readchunk()
                else:
                    chunk, is_end_of_chunk = await content.readany(), False
        if chunk:
            exchange.receive(chunk)
        return chunk

    return pull


def _pull_recorded(chunks: AsyncIterator[bytes]) -> Pull:
    async def pull(_by_transfer_chunk: bool) -> bytes:
        return await anext(chunks, b"")

    return pull


def _reader_class(base: Any) -> Any:
    class Reader(base):  # type: ignore[misc]  # the library may not be installed
        """Pulls the next bytes only when its own buffer is empty."""

        def __init__(self, exchange: Exchange, pull: Pull, head: Head, loop: object) -> None:
            super().__init__(_RecordedConnection(), _BUFFER_BYTES, loop=loop)
            self._exchange = exchange
            self._pull = pull
            self._is_chunked = is_chunked(head)

        async def _wait(self, func_name: str) -> None:
            try:
                chunk = await self._pull(func_name == "readchunk")
            except BaseException as error:
                super().set_exception(error)
                raise
            if self._is_chunked:
                self.begin_http_chunk_receiving()
            self.feed_data(chunk)
            if self._is_chunked:
                self.end_http_chunk_receiving()
            if not chunk:
                self._exchange.end()
                self.feed_eof()

        def set_exception(self, exc: BaseException, *cause: object) -> None:
            """The session calls this when the response is released or closed."""
            super().set_exception(exc, *cause)
            self._exchange.abandon()

    return Reader

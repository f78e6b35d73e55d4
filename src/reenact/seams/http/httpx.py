"""``httpx`` and ``httpx2``: the two have the same shape, so one seam serves both.

The seam is the transport that has connections. What never comes to one is in-process and passes untouched:
an app behind an ``ASGITransport`` or a ``TestClient``, a ``MockTransport``, a transport of the user's own.
What these ask is seen where it leaves. What a test has faked below us (respx, pytest-httpx) passes too.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from types import ModuleType
from typing import Any, Final

from reenact.seams.http.exchange import Exchange, is_outermost
from reenact.seams.http.message import Head, headers_from_wire, headers_to_wire
from reenact.seams.http.request import Sent
from reenact.seams.patches import Patch, is_own

_AT_ONCE_BYTES: Final = 64 * 1024
"""A larger body may have to wait for the network while it is sent."""

_is_streamed: Final[ContextVar[bool]] = ContextVar("reenact_httpx_is_streamed", default=True)


def patches(httpx: ModuleType) -> list[Patch]:
    """What to replace in *httpx*, or in *httpx2*."""
    seam = _Seam(httpx)
    return [
        Patch(httpx.Client, "send", _send),
        Patch(httpx.HTTPTransport, "handle_request", seam.handle_request),
        Patch(httpx.AsyncClient, "send", _asend),
        Patch(httpx.AsyncHTTPTransport, "handle_async_request", seam.handle_async_request),
    ]


def _send(original: Callable[..., Any]) -> Callable[..., Any]:
    def send(self: Any, request: Any, *, stream: bool = False, **options: Any) -> Any:
        before = _is_streamed.get()
        _is_streamed.set(stream)
        try:
            return original(self, request, stream=stream, **options)
        finally:
            _is_streamed.set(before)

    return send


def _asend(original: Callable[..., Any]) -> Callable[..., Any]:
    async def send(self: Any, request: Any, *, stream: bool = False, **options: Any) -> Any:
        before = _is_streamed.get()
        _is_streamed.set(stream)
        try:
            return await original(self, request, stream=stream, **options)
        finally:
            _is_streamed.set(before)

    return send


class _Seam:
    """The seam of one of the two libraries."""

    def __init__(self, httpx: ModuleType) -> None:
        self._name = httpx.__name__
        self._core = self._name.replace("httpx", "httpcore")
        self.response: Any = httpx.Response
        self.whole: Any = httpx.ByteStream
        # The client insists on streams of its own classes.
        self.stream = type("Stream", (_Stream, httpx.SyncByteStream), {})
        self.async_stream = type("AsyncStream", (AsyncStream, httpx.AsyncByteStream), {})
        self.chunks = type("Chunks", (_Chunks, httpx.SyncByteStream, httpx.AsyncByteStream), {})
        self.leaving = type("Leaving", (_Leaving, httpx.SyncByteStream, httpx.AsyncByteStream), {})

    def handle_request(self, original: Callable[..., Any]) -> Callable[..., Any]:
        is_fake = not is_own(original, self._name)

        def handle_request(transport: Any, request: Any) -> Any:
            if is_fake or not is_outermost() or not self._has_connections(transport, "handle_request"):
                return original(transport, request)
            return _Transport(transport, original, self).handle_request(request)

        return handle_request

    def handle_async_request(self, original: Callable[..., Any]) -> Callable[..., Any]:
        is_fake = not is_own(original, self._name)

        async def handle_async_request(transport: Any, request: Any) -> Any:
            if is_fake or not is_outermost() or not self._has_connections(transport, "handle_async_request"):
                return await original(transport, request)
            return await _Transport(transport, original, self).handle_async_request(request)

        return handle_async_request

    def _has_connections(self, transport: Any, method: str) -> bool:
        """Not where a test has put a fake in their place."""
        return is_own(getattr(getattr(transport, "_pool", None), method, None), self._core)


class _Transport:
    """Stands before the real *transport*, which does *handle*, for one request."""

    def __init__(self, transport: Any, handle: Callable[..., Any], seam: _Seam) -> None:
        self._transport = transport
        self._handle = handle
        self._seam = seam

    def handle_request(self, request: Any) -> Any:
        exchange = self._exchange(request, request.read())
        if exchange.is_left_alone:
            return self._handle(self._transport, request)
        exchange.open()
        if not exchange.live:
            return self._recorded(exchange, self._seam.stream)
        with exchange.working():
            with self._leaving(request, exchange) as sent:
                response = self._handle(self._transport, sent)
            if exchange.is_streamed or response.is_stream_consumed:
                return _told(response, exchange, self._seam.stream)
            # The client is about to read all of it; so one block does, instead of one for each chunk.
            exchange.began(head_of(response))
            try:
                for chunk in response.stream:
                    exchange.received(chunk)
            finally:
                response.stream.close()
        return self._read(response, exchange)

    async def handle_async_request(self, request: Any) -> Any:
        exchange = self._exchange(request, await request.aread())
        if exchange.is_left_alone:
            return await self._handle(self._transport, request)
        await exchange.aopen()
        if not exchange.live:
            return self._recorded(exchange, self._seam.async_stream)
        with exchange.working():
            with self._leaving(request, exchange) as sent:
                response = await self._handle(self._transport, sent)
            if exchange.is_streamed or response.is_stream_consumed:
                return _told(response, exchange, self._seam.async_stream)
            exchange.began(head_of(response))
            try:
                async for chunk in response.stream:
                    exchange.received(chunk)
            finally:
                await response.stream.aclose()
        return self._read(response, exchange)

    def _exchange(self, request: Any, body: bytes) -> Exchange:
        url = request.url
        text = str(url.copy_with(fragment=None) if url.fragment else url)
        return Exchange(
            Sent(request.method, text, headers_from_wire(request.headers.raw), body),
            is_streamed=_is_streamed.get(),
            may_leave_first=lambda: len(body) <= _AT_ONCE_BYTES and self._is_connected(url),
        )

    def _is_connected(self, url: Any) -> bool:
        """Whether a connection to there stands already and is free."""
        pool = getattr(self._transport, "_pool", None)
        idle = [connection for connection in getattr(pool, "connections", ()) if connection.is_idle()]
        if not idle:
            return False
        httpcore = sys.modules[type(pool).__module__.partition(".")[0]]
        there = httpcore.URL(scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=b"").origin
        return any(connection.can_handle_request(there) for connection in idle)

    @contextmanager
    def _leaving(self, request: Any, exchange: Exchange) -> Iterator[Any]:
        """What to send for *request*; while it is sent, *exchange* hears when all of it has left."""
        other = exchange.sent_instead
        if other is not None:
            yield type(request)(
                other.method,
                other.url,
                headers=other.headers,
                content=other.body,
                extensions=request.extensions,
            )
            return
        if not exchange.leaves_first:
            yield request
            return
        body = request.stream
        request.stream = self._seam.leaving(exchange, request.content)
        try:
            yield request
        finally:
            request.stream = body  # a redirect sends it again

    def _read(self, response: Any, exchange: Exchange) -> Any:
        """*response*, all of which *exchange* has seen."""
        exchange.ended()
        response.stream = self._seam.chunks(exchange.hand_over())
        return response

    def _recorded(self, exchange: Exchange, stream: Callable[..., Any]) -> Any:
        head, body = exchange.head, exchange.body
        return self._seam.response(
            head.status,
            headers=headers_to_wire(head.headers),
            stream=stream(exchange, None) if body is None else self._seam.whole(body),
            extensions={
                "http_version": head.http_version.encode("ascii"),
                "reason_phrase": head.reason.encode("latin-1"),
            },
        )


def _told(response: Any, exchange: Exchange, stream: Callable[..., Any]) -> Any:
    """*response*, as *exchange* is told of it: at once, or while it is read."""
    if response.is_stream_consumed:  # a transport of the user's own had it whole
        exchange.answered(head_of(response), response.content)
    else:
        exchange.began(head_of(response))
        response.stream = stream(exchange, response.stream)
    return response


def head_of(response: Any) -> Head:
    return Head(
        response.status_code,
        response.reason_phrase,
        response.http_version,
        headers_from_wire(response.headers.raw),
    )


class _Leaving:
    """A request's body; who asks for more of it has sent it."""

    def __init__(self, exchange: Exchange, body: bytes) -> None:
        self._exchange = exchange
        self._body = body

    def __iter__(self) -> Iterator[bytes]:
        yield self._body
        self._exchange.left()

    async def __aiter__(self) -> AsyncIterator[bytes]:
        yield self._body
        self._exchange.left()


class _Chunks:
    """A body that has come; each chunk is let go when the client has it."""

    def __init__(self, chunks: list[bytes]) -> None:
        self._chunks = deque(chunks)

    def __iter__(self) -> Iterator[bytes]:
        while self._chunks:
            yield self._chunks.popleft()

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for chunk in self:
            yield chunk


class _Stream:
    """A response's body: recorded while the client reads it from *source*, or from the recording without."""

    def __init__(self, exchange: Exchange, source: Any) -> None:
        self._exchange = exchange
        self._source = source

    def __iter__(self) -> Iterator[bytes]:
        if self._source is None:
            yield from self._exchange.chunks()
            return
        chunks = iter(self._source)
        while True:
            with self._exchange.working():
                chunk = next(chunks, None)
            if chunk is None:
                break
            self._exchange.received(chunk)
            yield chunk
        self._exchange.ended()

    def close(self) -> None:
        try:
            if self._source is not None:
                self._source.close()
        finally:
            self._exchange.abandoned()


class AsyncStream:
    """The same for asynchronous clients."""

    def __init__(self, exchange: Exchange, source: Any) -> None:
        self._exchange = exchange
        self._source = source

    async def __aiter__(self) -> AsyncIterator[bytes]:
        if self._source is None:
            async for chunk in self._exchange.achunks():
                yield chunk
            return
        source = aiter(self._source)
        while True:
            with self._exchange.working():
                received = await anext(source, None)
            if received is None:
                break
            self._exchange.received(received)
            yield received
        self._exchange.ended()

    async def aclose(self) -> None:
        try:
            if self._source is not None:
                await self._source.aclose()
        finally:
            self._exchange.abandoned()

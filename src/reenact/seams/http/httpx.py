"""``httpx`` and ``httpx2``: both have the same structure, so one seam serves both.

The seam is the transport that opens connections. A request that never reaches one stays in the process and
is not recorded: to an app behind an ``ASGITransport`` or a ``TestClient``, to a ``MockTransport``, to the
user's own transport. If such a transport makes calls itself, those are recorded. Transports that a test has
faked (respx, pytest-httpx) are not recorded either, but what they let pass to the real server is. respx fakes
the pool below the transport; so where respx is used, what arrives at the pool goes through a transport again.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from functools import partial, update_wrapper
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from reenact.boundary import Step
from reenact.process_state import httpx_streamed_var
from reenact.seams.http.exchange import Exchange, is_outermost, is_own
from reenact.seams.http.message import Head, headers_from_wire, headers_to_wire
from reenact.seams.http.request import Sent
from reenact.seams.patches import Patch

if TYPE_CHECKING:  # both libraries have the same types
    from httpx2 import AsyncClient, AsyncHTTPTransport, Client, HTTPTransport, Request, Response

    Transport: TypeAlias = HTTPTransport | AsyncHTTPTransport

_AT_ONCE_BYTES: Final = 64 * 1024
"""Sending a larger body may have to wait for the network."""


def patches(httpx: ModuleType) -> list[Patch]:
    """The patches for *httpx*, which may be *httpx2*."""
    seam = _Seam(httpx)
    return [
        Patch(httpx.Client, "send", _send),
        Patch(httpx.HTTPTransport, "handle_request", seam.handle_request),
        Patch(httpx.AsyncClient, "send", _asend),
        Patch(httpx.AsyncHTTPTransport, "handle_async_request", seam.handle_async_request),
    ]


def respx_patches(_: ModuleType) -> list[Patch]:
    """The patches for the pools of connections below respx."""
    httpcore: Any = import_module("httpcore")
    return [
        Patch(httpcore.ConnectionPool, "handle_request", _let_pass),
        Patch(httpcore.AsyncConnectionPool, "handle_async_request", _let_pass_async),
    ]


class _PoolBelow:
    """The pool of a transport that is made for one request."""

    def __init__(self, pool: object, original: Callable[..., Any]) -> None:
        self.handle_request = self.handle_async_request = update_wrapper(partial(original, pool), original)


def _let_pass(original: Callable[..., Any]) -> Callable[..., object]:
    is_fake = not is_own(original, "httpcore")
    httpx: Any = import_module("httpx")

    def handle_request(self: object, request: Any) -> object:
        if is_fake or not is_outermost():
            return original(self, request)
        transport = object.__new__(httpx.HTTPTransport)
        transport._pool = _PoolBelow(self, original)
        answer = transport.handle_request(_request_above(httpx, request, b"".join(request.stream)))
        return _answer_below(answer)

    return handle_request


def _let_pass_async(original: Callable[..., Any]) -> Callable[..., object]:
    is_fake = not is_own(original, "httpcore")
    httpx: Any = import_module("httpx")

    async def handle_async_request(self: object, request: Any) -> object:
        if is_fake or not is_outermost():
            return await original(self, request)
        transport = object.__new__(httpx.AsyncHTTPTransport)
        transport._pool = _PoolBelow(self, original)
        body = b"".join([chunk async for chunk in request.stream])
        answer = await transport.handle_async_request(_request_above(httpx, request, body))
        return _answer_below(answer)

    return handle_async_request


def _request_above(httpx: Any, request: Any, body: bytes) -> Request:
    """The *request* to a pool, as a transport gets it."""
    above: Request = httpx.Request(
        request.method, bytes(request.url).decode("ascii"), content=body, extensions=request.extensions
    )
    above.headers = httpx.Headers(request.headers)  # without those that httpx adds
    return above


def _answer_below(answer: Response) -> object:
    """The *answer* of a transport, as a pool gives it."""
    return import_module("httpcore").Response(
        answer.status_code, headers=answer.headers.raw, content=answer.stream, extensions=answer.extensions
    )


def _send(original: Callable[..., Response]) -> Callable[..., Response]:
    def send(self: Client, request: Request, *, stream: bool = False, **options: object) -> Response:
        before = httpx_streamed_var.get()
        httpx_streamed_var.set(stream)
        try:
            return original(self, request, stream=stream, **options)
        finally:
            httpx_streamed_var.set(before)

    return send


def _asend(original: Callable[..., Awaitable[Response]]) -> Callable[..., Awaitable[Response]]:
    async def send(
        self: AsyncClient, request: Request, *, stream: bool = False, **options: object
    ) -> Response:
        before = httpx_streamed_var.get()
        httpx_streamed_var.set(stream)
        try:
            return await original(self, request, stream=stream, **options)
        finally:
            httpx_streamed_var.set(before)

    return send


class _Seam:
    """The seam of one of the two libraries."""

    def __init__(self, httpx: ModuleType) -> None:
        self._name = httpx.__name__
        self._core = self._name.replace("httpx", "httpcore")
        self._response: Callable[..., Response] = httpx.Response
        self._whole: Callable[..., object] = httpx.ByteStream
        # The client accepts only streams of the library's own classes.
        self._stream = type("Stream", (_Stream, httpx.SyncByteStream), {})
        self._async_stream = type("AsyncStream", (AsyncStream, httpx.AsyncByteStream), {})
        self._chunks = type("Chunks", (_Chunks, httpx.SyncByteStream, httpx.AsyncByteStream), {})
        self._body = type("Body", (_Body, httpx.SyncByteStream, httpx.AsyncByteStream), {})

    # Both pass a request on unrecorded if a test has faked the transport or its pool of connections.

    def handle_request(
        self, original: Callable[[HTTPTransport, Request], Response]
    ) -> Callable[[HTTPTransport, Request], Response]:
        is_fake = not is_own(original, self._name)

        def handle_request(transport: HTTPTransport, request: Request) -> Response:
            connect = getattr(getattr(transport, "_pool", None), "handle_request", None)
            if is_fake or not is_outermost() or not is_own(connect, self._core):
                return original(transport, request)
            exchange = _exchange(transport, request, request.read())
            if exchange.asked.is_left_alone:
                return original(transport, request)
            exchange.open()
            if not exchange.step.live:
                return self._answer_recorded(exchange, self._stream)
            with exchange.inside():
                body = request.stream
                try:
                    response = original(transport, self._to_send(request, exchange))
                finally:
                    request.stream = body  # a redirect sends it again
                if exchange.is_streamed or response.is_stream_consumed:
                    return _answer_live(response, exchange, self._stream)
                # The client is about to read the whole body, so read it here, in one block for all chunks.
                exchange.begin_answer(head_of(response))
                stream: Any = response.stream
                try:
                    for chunk in stream:
                        exchange.receive(chunk)
                finally:
                    stream.close()
            exchange.end()
            response.stream = self._chunks(exchange.hand_over())
            return response

        return handle_request

    def handle_async_request(
        self, original: Callable[[AsyncHTTPTransport, Request], Awaitable[Response]]
    ) -> Callable[[AsyncHTTPTransport, Request], Awaitable[Response]]:
        is_fake = not is_own(original, self._name)

        async def handle_async_request(transport: AsyncHTTPTransport, request: Request) -> Response:
            connect = getattr(getattr(transport, "_pool", None), "handle_async_request", None)
            if is_fake or not is_outermost() or not is_own(connect, self._core):
                return await original(transport, request)
            exchange = _exchange(transport, request, await request.aread())
            if exchange.asked.is_left_alone:
                return await original(transport, request)
            await exchange.aopen()
            if not exchange.step.live:
                return self._answer_recorded(exchange, self._async_stream)
            with exchange.inside():
                body = request.stream
                try:
                    response = await original(transport, self._to_send(request, exchange))
                finally:
                    request.stream = body
                if exchange.is_streamed or response.is_stream_consumed:
                    return _answer_live(response, exchange, self._async_stream)
                exchange.begin_answer(head_of(response))
                stream: Any = response.stream
                try:
                    async for chunk in stream:
                        exchange.receive(chunk)
                finally:
                    await stream.aclose()
            exchange.end()
            response.stream = self._chunks(exchange.hand_over())
            return response

        return handle_async_request

    def _to_send(self, request: Request, exchange: Exchange) -> Request:
        """*request* or its replacement; if the step needs to know, the body tells it when all is sent."""
        other = exchange.sent_instead
        if other is not None:
            return type(request)(
                other.method,
                other.url,
                headers=other.headers,
                content=other.body,
                extensions=request.extensions,
            )
        if exchange.step.leaves_first:
            request.stream = self._body(exchange.step, request.content)
        return request

    def _answer_recorded(self, exchange: Exchange, stream: Callable[..., object]) -> Response:
        head, body = exchange.head, exchange.body
        return self._response(
            head.status,
            headers=headers_to_wire(head.headers),
            stream=stream(exchange, None) if body is None else self._whole(body),
            extensions={
                "http_version": head.http_version.encode("ascii"),
                "reason_phrase": head.reason.encode("latin-1"),
            },
        )


def _exchange(transport: Transport, request: Request, body: bytes) -> Exchange:
    url = request.url
    text = str(url.copy_with(fragment=None) if url.fragment else url)
    return Exchange(
        Sent(request.method, text, headers_from_wire(request.headers.raw), body),
        is_streamed=httpx_streamed_var.get(),
        may_leave_first=partial(_may_leave_first, transport, request),
    )


def _may_leave_first(transport: Transport, request: Request) -> bool:
    """Whether the request is sent at once: it is small, and an idle connection to its server exists."""
    if len(request.content) > _AT_ONCE_BYTES:
        return False
    pool = getattr(transport, "_pool", None)
    there = None
    for connection in getattr(pool, "connections", ()):
        if connection.is_idle():
            if there is None:
                httpcore = sys.modules[type(pool).__module__.partition(".")[0]]
                url = request.url
                port = url.port or (443 if url.scheme == "https" else 80)
                there = httpcore.Origin(url.raw_scheme, url.raw_host, port)
            if connection.can_handle_request(there):
                return True
    return False


def _answer_live(response: Response, exchange: Exchange, stream: Callable[..., Any]) -> Response:
    """*response*, recorded by *exchange* at once if it is whole, else while the client reads it."""
    if response.is_stream_consumed:  # the user's own transport has read it already
        exchange.take_whole(head_of(response), response.content)
    else:
        exchange.begin_answer(head_of(response))
        response.stream = stream(exchange, response.stream)
    return response


def head_of(response: Response) -> Head:
    return Head(
        response.status_code,
        response.reason_phrase,
        response.http_version,
        headers_from_wire(response.headers.raw),
    )


class _Body:
    """A request's body; when the transport asks for the next chunk, it has sent this one."""

    def __init__(self, step: Step, body: bytes) -> None:
        self._step = step
        self._body = body

    def __iter__(self) -> Iterator[bytes]:
        yield self._body
        self._step.mark_sent()

    async def __aiter__(self) -> AsyncIterator[bytes]:
        yield self._body
        self._step.mark_sent()


class _Chunks:
    """A body that was read already; each chunk is freed once the client has it."""

    def __init__(self, chunks: list[bytes]) -> None:
        self._chunks = deque(chunks)

    def __iter__(self) -> Iterator[bytes]:
        while self._chunks:
            yield self._chunks.popleft()

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for chunk in self:
            yield chunk


class _Stream:
    """A response's body: read from *source* and recorded; if that is ``None``, read from the recording."""

    def __init__(self, exchange: Exchange, source: Any) -> None:
        self._exchange = exchange
        self._source = source

    def __iter__(self) -> Iterator[bytes]:
        if self._source is None:
            yield from self._exchange.chunks()
            return
        chunks = iter(self._source)
        while True:
            with self._exchange.inside():
                chunk = next(chunks, None)
            if chunk is None:
                break
            self._exchange.receive(chunk)
            yield chunk
        self._exchange.end()

    def close(self) -> None:
        try:
            if self._source is not None:
                self._source.close()
        finally:
            self._exchange.abandon()


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
            with self._exchange.inside():
                received = await anext(source, None)
            if received is None:
                break
            self._exchange.receive(received)
            yield received
        self._exchange.end()

    async def aclose(self) -> None:
        try:
            if self._source is not None:
                await self._source.aclose()
        finally:
            self._exchange.abandon()

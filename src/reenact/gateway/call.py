"""One call that the gateway makes for a client.

While a run is captured, the request is forwarded as it comes in. Its last byte waits until the call is on
disk: an upstream never has a complete request that is not recorded. If the recording may answer, the
request is read completely first, because it is matched as a whole.
"""

from __future__ import annotations

from asyncio import Queue
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import NamedTuple

import httpx2
from starlette.types import Receive

from reenact.boundary import Lane, outside, running_in
from reenact.gateway.client import UpstreamClient
from reenact.seams.http.exchange import Exchange
from reenact.seams.http.httpx import AsyncStream, head_of
from reenact.seams.http.message import Head, Pairs
from reenact.seams.http.request import Sent


class RequestBody:
    """A request's body while it comes in: forwarded in pieces, and kept for the recording.

    One task reads it, while :meth:`listen` runs in another, the only one that receives from the client.
    """

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        # Holds one piece only, so that a slow reader slows the client down.
        self._coming: Queue[tuple[bytes, bool]] = Queue(maxsize=1)
        self._pieces: list[bytes] = []
        self.is_whole = False

    async def listen(self) -> None:
        """Receive from the client until it disconnects."""
        has_more = True
        while (message := await self._receive())["type"] != "http.disconnect":
            if has_more:
                has_more = message.get("more_body", False)
                await self._coming.put((message.get("body", b""), has_more))

    async def next_piece(self) -> bytes:
        """The next piece of an incomplete body; it may be empty."""
        piece, has_more = await self._coming.get()
        self._pieces.append(piece)
        self.is_whole = not has_more
        return piece

    async def read_all(self) -> bytes:
        while not self.is_whole:
            await self.next_piece()
        self._pieces = [b"".join(self._pieces)]
        return self._pieces[0]

    async def forward(self, record: Callable[[], Awaitable[object]]) -> AsyncIterator[bytes]:
        """Yield the body as it comes; its last byte waits until it is complete and *record* has returned.

        Only the end of the body shows which byte is the last, so one byte is always held back.
        """
        held = b"".join(self._pieces)
        while not self.is_whole:
            yield held[:-1]
            held = held[-1:] + await self.next_piece()
        await record()
        yield held


class RequestHead(NamedTuple):
    """A request without its body."""

    method: str
    url: str
    headers: Pairs
    length: Pairs
    """The ``Content-Length`` header; empty if the client sent none."""

    def with_body(self, body: bytes) -> Sent:
        return Sent(self.method, self.url, self.headers, body)


class ForwardedCall:
    """One call for a client; *on_open* is called when its request is complete.

    A request to *base* is sent to *live_base* instead, but recorded as sent to *base*.
    """

    def __init__(
        self,
        lane: Lane,
        head: RequestHead,
        body: RequestBody,
        *,
        on_open: Callable[[], None],
        base: str = "",
        live_base: str = "",
    ) -> None:
        self._lane = lane
        self._head = head
        self._body = body
        self._on_open = on_open
        self._base = base
        self._live_base = live_base
        self._exchange: Exchange | None = None

    @property
    def method(self) -> str:
        return self._head.method

    async def open_answer(self, client: Callable[[], UpstreamClient]) -> tuple[Exchange, Head, AsyncStream]:
        """Make or replay the call until its answer begins; raises a live or recorded failure."""
        await self._body.next_piece()
        is_streamed = not self._body.is_whole and self._lane.context.sends_in_pieces
        response = await self._send_in_pieces(client()) if is_streamed else None
        exchange = await self._ensure_open(response)
        if not exchange.step.live:
            return exchange, exchange.head, AsyncStream(exchange, None)
        if response is None:
            with exchange.inside():
                response = await client().send(await self._request(exchange.sent_instead), stream=True)
        head = head_of(response)
        exchange.begin_answer(head)
        return exchange, head, AsyncStream(exchange, response.stream)

    async def _send_in_pieces(self, client: UpstreamClient) -> httpx2.Response | None:
        """Send the request while it comes in; ``None`` if that failed before the request was complete.

        The upstream has no complete request then, so the caller sends it again, and that outcome counts. A
        server that refuses a request may close the connection early, and we miss its answer while we write.
        """
        method, url, headers, length = self._head
        body = self._body.forward(self._ensure_open)
        try:
            with outside():
                request = httpx2.Request(method, url, headers=[*headers, *length], content=body)
                return await client.send(request, stream=True)
        except BaseException as error:
            if self._exchange is not None:
                self._exchange.end(error)
            elif isinstance(error, Exception):
                return None
            raise

    async def _request(self, instead: Sent | None) -> httpx2.Request:
        sent = instead or self._head.with_body(await self._body.read_all())
        url = sent.url
        if url.startswith(self._base):
            url = self._live_base + url.removeprefix(self._base)
        return httpx2.Request(sent.method, url, headers=sent.headers, content=sent.body)

    async def _ensure_open(self, response: httpx2.Response | None = None) -> Exchange:
        """Open the exchange once the request is complete; closes an early *response* if that fails."""
        if self._exchange is None:
            try:
                self._exchange = await self._open()
            except BaseException:
                if response is not None:
                    await response.aclose()
                raise
        return self._exchange

    async def _open(self) -> Exchange:
        sent = self._head.with_body(await self._body.read_all())
        exchange = Exchange(sent, is_streamed=True, is_elsewhere=True)
        self._on_open()
        with running_in(self._lane):
            await exchange.aopen()
        return exchange

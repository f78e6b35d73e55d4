"""One request after another: each is an HTTP call like those of the seams, made on behalf of its client.

The request is taken whole, because it is what a call is known by; the answer is passed on while it comes.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable
from typing import Final

import httpx2
from starlette.types import Receive, Scope, Send

from reenact.boundary import Context, Lane, running_in
from reenact.gateway.client_gone import unless_gone, whole_body
from reenact.gateway.failures import Refusal, refusal_for, unknown_upstream
from reenact.gateway.lane import BELOW, LANE, LANE_BELOW
from reenact.gateway.upstreams import Upstreams
from reenact.seams.http import headers as header_values
from reenact.seams.http.codings import is_decodable
from reenact.seams.http.exchange import Exchange
from reenact.seams.http.headers import Pairs
from reenact.seams.http.httpx import AsyncStream, head_of
from reenact.seams.http.request import Sent
from reenact.seams.http.response import Head

_HOP_BY_HOP: Final = frozenset(
    {
        *("connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "proxy-connection"),
        *("te", "trailer", "transfer-encoding", "upgrade"),
    }
)
_OURS_TO_SAY: Final = _HOP_BY_HOP | {"host", "content-length", "expect"}
"""Of a request's headers: what belongs to the connection between the client and us."""


class Forwarding:
    """The ASGI application behind the check of the ``Host`` header."""

    def __init__(
        self,
        context: Context,
        upstreams: Upstreams,
        client: Callable[[], httpx2.AsyncClient],
        on_call: Callable[[], None],
    ) -> None:
        self._lane = Lane(context, LANE)
        self._lane_below = Lane(context, LANE_BELOW)
        self._upstreams = upstreams
        self._client = client
        self._on_call = on_call
        self.unknown_names: list[str] = []
        """What was asked for in the place of an upstream's name."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        body = await whole_body(receive)
        if body is None:
            return
        answer = _Answer(send)
        lane, target = self._lane, _target(scope)
        if target.startswith(f"{BELOW}/"):
            lane, target = self._lane_below, target.removeprefix(f"{BELOW}/")
        name = re.split("[/?]", target, maxsplit=1)[0]
        if name not in self._upstreams:
            self.unknown_names.append(name)
            await answer.refuse(unknown_upstream(name, list(self._upstreams)))
            return
        if lane is self._lane:
            self._on_call()
        headers = [*_forwarded(header_values.decoded(scope["headers"]))]
        sent = Sent(scope["method"], self._upstreams[name] + target.removeprefix(name), headers, body)
        await unless_gone(receive, self._exchange(lane, sent, answer))

    async def _exchange(self, lane: Lane, sent: Sent, answer: _Answer) -> None:
        with running_in(lane):
            exchange = Exchange(sent, is_streamed=True)
            try:
                await exchange.aopen()
                head, body = await self._begun(exchange, sent)
            except Exception as error:
                await answer.refuse(refusal_for(error))
                return
            try:
                await answer.give(head, aiter(body))
            except BaseException as error:
                exchange.ended(error)
                raise
            finally:
                await body.aclose()

    async def _begun(self, exchange: Exchange, sent: Sent) -> tuple[Head, AsyncStream]:
        if not exchange.live:
            return exchange.head, AsyncStream(exchange, None)
        with exchange.working():
            request = httpx2.Request(sent.method, sent.url, headers=sent.headers, content=sent.body)
            response = await self._client().send(request, stream=True)
        head = head_of(response)
        exchange.began(head)
        return head, AsyncStream(exchange, response.stream)


class _Answer:
    """What the client gets."""

    def __init__(self, send: Send) -> None:
        self._send = send

    async def refuse(self, refusal: Refusal) -> None:
        await self._begin(refusal.status, refusal.headers)
        await self._send({"type": "http.response.body", "body": refusal.body})

    async def give(self, head: Head, chunks: AsyncIterator[bytes]) -> None:
        """Where *chunks* breaks off, so does the connection: the client must not take it for the end."""
        headers = [(name, value) for name, value in head.headers if name.lower() not in _HOP_BY_HOP]
        await self._begin(head.status, headers)
        async for chunk in chunks:
            await self._send({"type": "http.response.body", "body": chunk, "more_body": True})
        await self._send({"type": "http.response.body"})

    async def _begin(self, status: int, headers: Pairs) -> None:
        started = {"status": status, "headers": header_values.encoded(headers)}
        await self._send({"type": "http.response.start", **started})


def _target(scope: Scope) -> str:
    """What was asked for, as it was written, without the first slash."""
    path: str = scope["raw_path"].decode("latin-1").removeprefix("/")
    query = scope["query_string"].decode("latin-1")
    return f"{path}?{query}" if query else path


def _forwarded(headers: Pairs) -> Pairs:
    """The request's own headers; it accepts no coding that could not be undone for the recording."""
    kept: Pairs = []
    for name, value in headers:
        if name == "accept-encoding":
            value = ", ".join(coding.strip() for coding in value.split(",") if is_decodable(coding))
        if name not in _OURS_TO_SAY:
            kept.append((name, value))
    return kept

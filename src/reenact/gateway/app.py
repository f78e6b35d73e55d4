"""One request after another: each is an HTTP call like those of the seams, made on behalf of its client."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable
from typing import Final

import httpx2
from starlette.types import Receive, Scope, Send

from reenact.boundary import Context, Lane
from reenact.gateway.call import ForwardedCall, RequestHead
from reenact.gateway.client_gone import unless_gone
from reenact.gateway.failures import Refusal, refusal_for, unknown_upstream
from reenact.gateway.lane import BELOW, LANE, LANE_BELOW
from reenact.gateway.request_body import RequestBody
from reenact.gateway.upstreams import Upstreams
from reenact.seams.http import headers as header_values
from reenact.seams.http.codings import is_decodable
from reenact.seams.http.headers import Pairs
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
        body = RequestBody(receive)
        await unless_gone(body.listen(), self._answer(scope, body, _Answer(send)))

    async def _answer(self, scope: Scope, body: RequestBody, answer: _Answer) -> None:
        lane, target = self._lane, _target(scope)
        if target.startswith(f"{BELOW}/"):
            lane, target = self._lane_below, target.removeprefix(f"{BELOW}/")
        name = re.split("[/?]", target, maxsplit=1)[0]
        if name not in self._upstreams:
            await body.whole()
            self.unknown_names.append(name)
            await answer.refuse(unknown_upstream(name, list(self._upstreams)))
            return
        head = _head(scope, self._upstreams[name] + target.removeprefix(name))
        on_open = self._on_call if lane is self._lane else lambda: None
        await self._forward(ForwardedCall(lane, head, body, on_open=on_open), answer)

    async def _forward(self, call: ForwardedCall, answer: _Answer) -> None:
        try:
            exchange, head, body = await call.answered(self._client)
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
        # At last: a client that has heard the end counts as gone, which ends whatever is still being done.
        await answer.end()


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

    async def end(self) -> None:
        await self._send({"type": "http.response.body"})

    async def _begin(self, status: int, headers: Pairs) -> None:
        started = {"status": status, "headers": header_values.encoded(headers)}
        await self._send({"type": "http.response.start", **started})


def _target(scope: Scope) -> str:
    """What was asked for, as it was written, without the first slash."""
    path: str = scope["raw_path"].decode("latin-1").removeprefix("/")
    query = scope["query_string"].decode("latin-1")
    return f"{path}?{query}" if query else path


def _head(scope: Scope, url: str) -> RequestHead:
    headers = header_values.decoded(scope["headers"])
    names = {name for name, _ in headers}
    # Of a request with both, the length counts for nothing.
    length = [pair for pair in headers if pair[0] == "content-length" and "transfer-encoding" not in names]
    return RequestHead(scope["method"], url, _forwarded(headers), length)


def _forwarded(headers: Pairs) -> Pairs:
    """The request's own headers; it accepts no coding that could not be undone for the recording."""
    kept: Pairs = []
    for name, value in headers:
        if name == "accept-encoding":
            value = ", ".join(coding.strip() for coding in value.split(",") if is_decodable(coding))
        if name not in _OURS_TO_SAY:
            kept.append((name, value))
    return kept

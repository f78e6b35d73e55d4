"""One request after another: each is an HTTP call like those of the seams, made on behalf of its client."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import suppress
from types import MappingProxyType
from typing import Final
from unicodedata import normalize
from urllib.parse import unquote

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from reenact.boundary import Context, Lane
from reenact.gateway.call import ForwardedCall, RequestBody, RequestHead
from reenact.gateway.client import UpstreamClient
from reenact.gateway.failures import (
    GatewayRefusal,
    outside_base,
    refusal_for,
    refused_client,
    unknown_upstream,
)
from reenact.gateway.lane import BELOW, LANE, LANE_BELOW
from reenact.gateway.upstreams import Upstreams
from reenact.seams.http.message import (
    Head,
    Pairs,
    header_value,
    headers_from_wire,
    headers_to_wire,
    is_decodable,
)
from reenact.store.peer import LOOPBACK_NAMES, is_other_user


async def unless_gone(
    listening: Coroutine[object, object, None], work: Coroutine[object, object, None]
) -> None:
    """Do *work*; it is cancelled when *listening* to the client is over before it."""
    working = asyncio.ensure_future(work)
    watching = asyncio.ensure_future(listening)
    try:
        await asyncio.wait({working, watching}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        watching.cancel()
        if not working.done():
            working.cancel()
    with suppress(asyncio.CancelledError):
        await working


_HOP_BY_HOP: Final = frozenset(
    {
        *("connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "proxy-connection"),
        *("te", "trailer", "transfer-encoding", "upgrade"),
    }
)
_OURS_TO_SAY: Final = _HOP_BY_HOP | {"host", "content-length", "expect"}
"""Of a request's headers: what belongs to the connection between the client and us."""
_BODILESS: Final = (204, 304)
_MODEL_IS_DONE: Final = (
    *(b"data:[DONE]", b"event:message_stop", b'"type":"message_stop"', b'"done":true', b'"stop_reason":"'),
    *(b'"finish_reason":"', b'"finishReason":"'),
    *(b":response.completed", b":response.incomplete", b":response.failed"),
    *(b'"response.completed"', b'"response.incomplete"', b'"response.failed"'),
)
"""What clients of a model's stream leave at before the end of the answer; without its spaces."""
_MARK_BYTES: Final = 40
"""As much as the first half of a mark may have that two chunks share."""
_PATIENCE_S: Final = 1.0
"""How long the end of an answer may take after its last chunk; the chunk waits so long, no other does."""
_LOCAL_ORIGIN: Final = re.compile(rf"https?://({'|'.join(map(re.escape, LOOPBACK_NAMES))})(:[0-9]+)?")
_MAX_CODINGS: Final = 4
"""A path that is percent-coded more often is not meant well."""
_STEP_UP: Final = re.compile(r"[\x00-\x20]*\.[\x00-\x20]*\.(?:[\x00-\x20;#?].*)?", re.DOTALL)
"""Two dots. Parsers drop control characters, servers in Java what stands behind a semicolon."""
_OVERLONG: Final = re.compile("(?:[\xc0\xc1]|\xe0[\x80\x81]|\xf0\x80[\x80\x81])[\x80-\xbf]")
"""A sign of ASCII in too many bytes of UTF-8."""
_OF_IIS: Final = re.compile("%u([0-9a-fA-F]{4})")
_SLASHES: Final = str.maketrans("\u2044\u2215\u29f8\u2216\u29f5\u29f9", "///\\\\\\")
"""Letters that look like slashes; of those that mean one, NFKC makes one."""


class OwnPrograms:
    """Refuses who is none of our user's programs, before the application is asked.

    A page of another site can have a browser send requests here; who else is logged in can connect, too.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        reason = _why_foreign(scope)
        if reason is None:
            await self._app(scope, receive, send)
        else:
            await _Answer(send).refuse(refused_client(reason))


def _why_foreign(scope: Scope) -> str | None:
    if is_other_user(scope["client"], scope["server"]):
        return "only programs of the user who started reenact are served"
    headers = Headers(scope=scope)
    for origin in headers.getlist("origin"):
        if _LOCAL_ORIGIN.fullmatch(origin) is None:
            return f"pages of {origin} get nothing from here"
    if "origin" not in headers and headers.get("sec-fetch-site") in ("cross-site", "same-site"):
        return "pages of other sites get nothing from here"
    return None


class Forwarding:
    """The ASGI application behind the check of the ``Host`` header."""

    def __init__(
        self,
        context: Context,
        upstreams: Upstreams,
        client: Callable[[], UpstreamClient],
        on_call: Callable[[], None],
        *,
        live_upstreams: Upstreams = MappingProxyType({}),
    ) -> None:
        self._lane = Lane(context, LANE)
        self._lane_below = Lane(context, LANE_BELOW)
        self._upstreams = upstreams
        self._live_upstreams = live_upstreams
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
        if _leaves_base(target):
            await body.whole()
            await answer.refuse(outside_base(name))
            return
        base = self._upstreams[name]
        call = ForwardedCall(
            lane,
            _head(scope, base + target.removeprefix(name)),
            body,
            on_open=self._on_call if lane is self._lane else lambda: None,
            base=base,
            live_base=self._live_upstreams.get(name, base),
        )
        await self._forward(call, answer)

    async def _forward(self, call: ForwardedCall, answer: _Answer) -> None:
        try:
            exchange, head, body = await call.open_answer(self._client)
        except Exception as error:
            await answer.refuse(refusal_for(error))
            return
        try:
            await answer.give(head, aiter(body), has_body=call.method != "HEAD")
        except BaseException as error:
            exchange.end(error)
            raise
        finally:
            await body.aclose()
        # At last: a client that has heard the end counts as gone, which ends whatever is still being done.
        await answer.end()


class _Answer:
    """What the client gets."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._held: list[Message] = []
        """What may be the last that the client waits for."""

    async def refuse(self, refusal: GatewayRefusal) -> None:
        await self._send(_start(refusal.status, refusal.headers))
        await self._send({"type": "http.response.body", "body": refusal.body})

    async def give(self, head: Head, chunks: AsyncIterator[bytes], *, has_body: bool) -> None:
        """All but the last of the answer; :meth:`end` gives that, when the outcome is on disk.

        The last is the chunk that fills the length, or one of the event with which a model's stream says that
        it is over, or where there is no body the head. All else goes on as it comes. Where *chunks* breaks
        off, so does the connection: the client must not take it for the end.
        """
        headers = [(name, value) for name, value in head.headers if name.lower() not in _HOP_BY_HOP]
        left_bytes = _length(headers) if has_body and head.status not in _BODILESS else 0
        is_last, before = left_bytes == 0, b""
        self._held.append(_start(head.status, headers))
        while True:
            if not is_last:
                await self._send_held()
            chunk = await self._next(chunks)
            if chunk is None:
                return
            await self._send_held()
            self._held.append({"type": "http.response.body", "body": chunk, "more_body": True})
            if left_bytes is None:
                goes_on = is_last and not before.endswith(b"\n")
                seen = (before + chunk).replace(b" ", b"")
                is_last = goes_on or any(mark in seen for mark in _MODEL_IS_DONE)
                before = chunk[-_MARK_BYTES:]
            else:
                left_bytes -= len(chunk)
                is_last = left_bytes <= 0

    async def end(self) -> None:
        await self._send_held()
        await self._send({"type": "http.response.body"})

    async def _next(self, chunks: AsyncIterator[bytes]) -> bytes | None:
        """The next chunk; what is held goes on without it when it takes too long, or never comes."""
        if not self._held:
            return await anext(chunks, None)
        following = asyncio.ensure_future(_next_chunk(chunks))
        try:
            await asyncio.wait({following}, timeout=_PATIENCE_S)
            if not following.done() or following.exception() is not None:
                await self._send_held()
            return await following
        finally:
            if following.cancel():
                with suppress(asyncio.CancelledError):
                    await following

    async def _send_held(self) -> None:
        held, self._held = self._held, []
        for message in held:
            await self._send(message)


async def _next_chunk(chunks: AsyncIterator[bytes]) -> bytes | None:
    return await anext(chunks, None)


def _start(status: int, headers: Pairs) -> Message:
    return {"type": "http.response.start", "status": status, "headers": headers_to_wire(headers)}


def _length(headers: Pairs) -> int | None:
    """How many bytes the body has, where that is said."""
    told = header_value(headers, "content-length")
    return int(told) if told.isdecimal() else None


def _leaves_base(target: str) -> bool:
    """Whether *target* leads out of its upstream's base path, however that is written."""
    path = target.partition("?")[0]
    for _ in range(_MAX_CODINGS):
        if any(_STEP_UP.fullmatch(step) for step in re.split(r"[/\\]", _as_lenient_servers_read(path))):
            return True
        before, path = path, unquote(path, "latin-1")
        if path == before:
            return False
    return True


def _as_lenient_servers_read(path: str) -> str:
    """*path*, one character for a byte, with dots and slashes where some servers take others for these."""
    path = _OVERLONG.sub(lambda match: chr((ord(match[0][-2]) & 1) << 6 | ord(match[0][-1]) & 0x3F), path)
    text = path.encode("latin-1").decode("utf-8", "replace")
    text = _OF_IIS.sub(lambda match: chr(int(match[1], 16)), text)
    return normalize("NFKC", text).translate(_SLASHES)


def _target(scope: Scope) -> str:
    """What was asked for, as it was written, without the first slash."""
    path: str = scope["raw_path"].decode("latin-1").removeprefix("/")
    query = scope["query_string"].decode("latin-1")
    return f"{path}?{query}" if query else path


def _head(scope: Scope, url: str) -> RequestHead:
    headers = headers_from_wire(scope["headers"])
    names = {name for name, _ in headers}
    # Of a request with both, the length counts for nothing.
    length = [pair for pair in headers if pair[0] == "content-length" and "transfer-encoding" not in names]
    return RequestHead(scope["method"], url, _headers_to_forward(headers), length)


def _headers_to_forward(headers: Pairs) -> Pairs:
    """The request's own headers; it accepts no coding that could not be undone for the recording."""
    kept: Pairs = []
    for name, value in headers:
        if name == "accept-encoding":
            value = ", ".join(coding.strip() for coding in value.split(",") if is_decodable(coding))
        if name not in _OURS_TO_SAY:
            kept.append((name, value))
    return kept

"""The gateway's ASGI application: each request becomes an HTTP call like those of the seams."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable
from contextlib import suppress
from types import MappingProxyType
from typing import Final, TypeAlias
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
from reenact.store.peer import LOOPBACK_NAMES, Address, is_other_user, peer_of


async def run_while_connected(
    listening: Coroutine[object, object, None], work: Coroutine[object, object, None]
) -> None:
    """Await *work*; it is cancelled if *listening* ends first, because the client has disconnected."""
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
_NOT_FORWARDED: Final = _HOP_BY_HOP | {"host", "content-length", "expect"}
"""Request headers that concern only the connection between the client and us."""
_BODILESS: Final = (204, 304)
_MODEL_IS_DONE: Final = (
    *(b"data:[DONE]", b"event:message_stop", b'"type":"message_stop"', b'"done":true', b'"stop_reason":"'),
    *(b'"finish_reason":"', b'"finishReason":"'),
    *(b":response.completed", b":response.incomplete", b":response.failed"),
    *(b'"response.completed"', b'"response.incomplete"', b'"response.failed"'),
)
"""Marks in a model's stream after which clients stop reading before the end; spaces are removed."""
_MARK_BYTES: Final = 40
"""The number of bytes of a chunk that are kept, to find a mark that is split between two chunks."""
_PATIENCE_S: Final = 1.0
"""The time that the last chunk waits for the end of the answer; other chunks do not wait."""
_OTHER_ENDS_S: Final = 1.0
"""The time that the end of an answer waits for those before it; one that does not come is passed over."""
_LOOK_S: Final = 0.002
_MOST_LOOKS: Final = 100
_LOCAL_ORIGIN: Final = re.compile(rf"https?://({'|'.join(map(re.escape, LOOPBACK_NAMES))})(:[0-9]+)?")
_MAX_CODINGS: Final = 4
"""A path that is percent-encoded more often is taken for an attack."""
_STEP_UP: Final = re.compile(r"[\x00-\x20]*\.[\x00-\x20]*\.(?:[\x00-\x20;#?].*)?", re.DOTALL)
"""Two dots. Parsers drop control characters, Java servers drop what follows a semicolon."""
_OVERLONG: Final = re.compile("(?:[\xc0\xc1]|\xe0[\x80\x81]|\xf0\x80[\x80\x81])[\x80-\xbf]")
"""An ASCII character in an overlong UTF-8 encoding."""
_IIS_ESCAPE: Final = re.compile("%u([0-9a-fA-F]{4})")
_SLASHES: Final = str.maketrans("\u2044\u2215\u29f8\u2216\u29f5\u29f9", "///\\\\\\")
"""Characters that look like slashes; NFKC converts those that are compatible with one."""


class OwnPrograms:
    """Middleware that refuses clients other than programs of our user.

    Pages of other sites can make a browser send requests here, and other users of this machine can connect.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        reason = _refusal_reason(scope)
        if reason is None:
            await self._app(scope, receive, send)
        else:
            await _Answer(send).refuse(refused_client(reason))


def _refusal_reason(scope: Scope) -> str | None:
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
    """The application that runs after the checks of ``Host`` header and client."""

    def __init__(
        self,
        context: Context,
        upstreams: Upstreams,
        client: Callable[[], UpstreamClient],
        on_call: Callable[[], None],
        *,
        live_upstreams: Upstreams = MappingProxyType({}),
        ends: Iterable[str] = (),
    ) -> None:
        self._lane = Lane(context, LANE)
        self._lane_below = Lane(context, LANE_BELOW)
        self._upstreams = upstreams
        self._live_upstreams = live_upstreams
        self._client = client
        self._on_call = on_call
        self._live_ends = _Ends(())
        self._recorded_ends = _Ends(ends)
        self.unknown_names: list[str] = []
        """Requested names that no upstream has."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        body = RequestBody(receive)
        await run_while_connected(body.listen(), self._answer(scope, body, _Answer(send)))

    async def _answer(self, scope: Scope, body: RequestBody, answer: _Answer) -> None:
        lane, target = self._lane, _raw_target(scope)
        if target.startswith(f"{BELOW}/"):
            lane, target = self._lane_below, target.removeprefix(f"{BELOW}/")
        name = re.split("[/?]", target, maxsplit=1)[0]
        if name not in self._upstreams:
            await body.read_all()
            self.unknown_names.append(name)
            await answer.refuse(unknown_upstream(name, list(self._upstreams)))
            return
        if _leaves_base(target):
            await body.read_all()
            await answer.refuse(outside_base(name))
            return
        base = self._upstreams[name]
        call = ForwardedCall(
            lane,
            _request_head(scope, base + target.removeprefix(name)),
            body,
            on_open=self._on_call if lane is self._lane else lambda: None,
            base=base,
            live_base=self._live_upstreams.get(name, base),
        )
        await self._forward(call, answer, (scope.get("client"), scope.get("server")))

    async def _forward(self, call: ForwardedCall, answer: _Answer, connection: Connection) -> None:
        latest = self._live_ends.latest, self._recorded_ends.latest
        try:
            exchange, head, body = await call.open_answer(self._client)
        except Exception as error:
            await answer.refuse(refusal_for(error))
            return
        call_id, is_live = exchange.step.call_id, exchange.step.live
        ends = self._live_ends if is_live else self._recorded_ends

        async def chunks() -> AsyncIterator[bytes]:
            async for chunk in body:
                yield chunk
            if is_live:
                ends.await_next(call_id)  # its outcome has just been recorded

        try:
            try:
                await answer.send(head, chunks(), has_body=call.method != "HEAD")
            except BaseException as error:
                exchange.end(error)
                raise
            finally:
                await body.aclose()
            await ends.wait_for_turn(call_id, latest[0 if is_live else 1])
            ends.latest = connection
            # Last, because the client may disconnect then, and that cancels this task.
            await answer.end()
        finally:
            ends.leave(call_id)


Connection: TypeAlias = tuple[Address | None, Address | None]
"""From client to server."""


class _Ends:
    """The ends of answers, in the order of their outcomes: what a client asks next depends on them.

    One that is slow reads all that came in the order of its connections, so an end also waits until the one
    before it was read.
    """

    def __init__(self, awaited: Iterable[str]) -> None:
        """*awaited* are the ids of calls whose answers have not ended."""
        self._awaited = list(awaited)
        self._waiting: dict[str, asyncio.Event] = {}
        self.latest: Connection | None = None
        """The one on which the latest end was sent."""

    def await_next(self, call_id: str) -> None:
        self._awaited.append(call_id)

    async def wait_for_turn(self, call_id: str, latest: Connection | None) -> None:
        """Wait until no end is awaited before that of *call_id*; after a while, pass those over.

        *latest* is the latest end from before the call, which its client has read.
        """
        if call_id in self._awaited[1:]:
            turn = self._waiting[call_id] = asyncio.Event()
            try:
                async with asyncio.timeout(_OTHER_ENDS_S):
                    await turn.wait()
            except TimeoutError:
                del self._awaited[: self._awaited.index(call_id)]
        if self.latest is not None and self.latest is not latest:
            await _until_read(*self.latest)

    def leave(self, call_id: str) -> None:
        """The answer to *call_id* has ended, or will not."""
        self._waiting.pop(call_id, None)
        if call_id in self._awaited:
            self._awaited.remove(call_id)
        if self._awaited and self._awaited[0] in self._waiting:
            self._waiting[self._awaited[0]].set()


async def _until_read(client: Address | None, server: Address | None) -> None:
    """Wait until *client* has read what was sent to it; not longer than a moment if that is not known."""
    for _ in range(_MOST_LOOKS):
        peer = peer_of(client, server) if client is not None and server is not None else None
        if peer is not None and not peer.unread_bytes:
            return
        await asyncio.sleep(_LOOK_S)
        if peer is None:
            return


class _Answer:
    """Sends an answer to the client."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._held: list[Message] = []
        """Messages that may be the last ones the client waits for."""

    async def refuse(self, refusal: GatewayRefusal) -> None:
        await self._send(_start_message(refusal.status, refusal.headers))
        await self._send({"type": "http.response.body", "body": refusal.body})

    async def send(self, head: Head, chunks: AsyncIterator[bytes], *, has_body: bool) -> None:
        """Send all but the last message of the answer; :meth:`end` sends that, once the outcome is on disk.

        The last message is the chunk that completes the content length, or has the final event of a model's
        stream, or the head if there is no body. Others are sent at once. But the head of an answer that is no
        stream of events waits for the first chunk: if the heads of two answers came first, a client would
        not know which answer did. An error in *chunks* breaks the connection, so that the client does not
        take it for the end.
        """
        headers = [(name, value) for name, value in head.headers if name.lower() not in _HOP_BY_HOP]
        left_bytes = _content_length(headers) if has_body and head.status not in _BODILESS else 0
        is_last, before = left_bytes == 0, b""
        is_head = "event-stream" not in header_value(headers, "content-type")
        """Whether only the head is there, and waits."""
        self._held.append(_start_message(head.status, headers))
        while True:
            if not is_last and not is_head:
                await self._send_held()
            chunk = await self._next(chunks)
            if chunk is None:
                return
            if left_bytes is None:
                goes_on = is_last and not before.endswith(b"\n")
                seen = (before + chunk).replace(b" ", b"")
                is_last = goes_on or any(mark in seen for mark in _MODEL_IS_DONE)
                before = chunk[-_MARK_BYTES:]
            else:
                left_bytes -= len(chunk)
                is_last = left_bytes <= 0
            if not is_last or not is_head:
                await self._send_held()
            is_head = False
            self._held.append({"type": "http.response.body", "body": chunk, "more_body": True})

    async def end(self) -> None:
        await self._send_held()
        await self._send({"type": "http.response.body"})

    async def _next(self, chunks: AsyncIterator[bytes]) -> bytes | None:
        """The next chunk; held messages are sent first if it takes too long or fails."""
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


def _start_message(status: int, headers: Pairs) -> Message:
    return {"type": "http.response.start", "status": status, "headers": headers_to_wire(headers)}


def _content_length(headers: Pairs) -> int | None:
    """The content length, if there is one."""
    length = header_value(headers, "content-length")
    return int(length) if length.isdecimal() else None


def _leaves_base(target: str) -> bool:
    """Whether *target* leads out of its upstream's base path, in any encoding."""
    path = target.partition("?")[0]
    for _ in range(_MAX_CODINGS):
        if any(_STEP_UP.fullmatch(step) for step in re.split(r"[/\\]", _decode_leniently(path))):
            return True
        before, path = path, unquote(path, "latin-1")
        if path == before:
            return False
    return True


def _decode_leniently(path: str) -> str:
    """Decode *path* (one character per byte) like servers that take other characters for dots and slashes."""
    path = _OVERLONG.sub(lambda match: chr((ord(match[0][-2]) & 1) << 6 | ord(match[0][-1]) & 0x3F), path)
    text = path.encode("latin-1").decode("utf-8", "replace")
    text = _IIS_ESCAPE.sub(lambda match: chr(int(match[1], 16)), text)
    return normalize("NFKC", text).translate(_SLASHES)


def _raw_target(scope: Scope) -> str:
    """The raw path and query without the first slash."""
    path: str = scope["raw_path"].decode("latin-1").removeprefix("/")
    query = scope["query_string"].decode("latin-1")
    return f"{path}?{query}" if query else path


def _request_head(scope: Scope, url: str) -> RequestHead:
    headers = headers_from_wire(scope["headers"])
    names = {name for name, _ in headers}
    # In a request with both headers the content length is ignored.
    length = [pair for pair in headers if pair[0] == "content-length" and "transfer-encoding" not in names]
    return RequestHead(scope["method"], url, _headers_to_forward(headers), length)


def _headers_to_forward(headers: Pairs) -> Pairs:
    """The headers to send upstream; they accept only content codings that the recorder can decode."""
    kept: Pairs = []
    for name, value in headers:
        if name == "accept-encoding":
            value = ", ".join(coding.strip() for coding in value.split(",") if is_decodable(coding))
        if name not in _NOT_FORWARDED:
            kept.append((name, value))
    return kept

"""The client of all upstreams: connections are used again, as long as no call can fail for it.

A server may close a connection that nobody uses without a word, and a request that is under way to it by then
fails. Nobody can tell this from a server that took the request and died, so such a request is sent again only
where that does no harm, as browsers and Go do: where it asks and changes nothing, or was not sent whole.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import httpx2

_IDLE_S: Final = 1.5
"""How long a connection may wait for its next call; usual servers wait for two seconds at least."""
_ASKING: Final = frozenset({"GET", "HEAD", "OPTIONS", "TRACE"})
_CUT_OFF: Final = (httpx2.RemoteProtocolError, httpx2.ReadError, httpx2.WriteError)


class UpstreamClient:
    """Sends requests; a replay never makes one."""

    def __init__(self, timeout_s: float) -> None:
        self._used_once: set[tuple[str, str]] = set()
        """Hosts that closed a connection without a word; each call to them has its own from then on."""
        self._client = httpx2.AsyncClient(
            timeout=httpx2.Timeout(timeout_s, pool=None),
            limits=httpx2.Limits(max_connections=None, keepalive_expiry=_IDLE_S),
        )

    async def send(self, request: httpx2.Request, *, stream: bool) -> httpx2.Response:
        """The answer to *request*; again where a connection had been closed under it."""
        while True:
            attempt = _Attempt()
            request.extensions = {**request.extensions, "trace": attempt.note}
            host = request.url.scheme, request.url.netloc.decode("ascii")
            # Connecting to http:// is cheap.
            if host[0] == "http" or host in self._used_once:
                request.headers["Connection"] = "close"
            try:
                return await self._client.send(request, stream=stream)
            except _CUT_OFF:
                if attempt.is_new_connection:
                    raise
                self._used_once.add(host)
                is_whole = isinstance(request.stream, httpx2.ByteStream)
                may_repeat = request.method in _ASKING or "idempotency-key" in request.headers
                if not is_whole or not (may_repeat or attempt.is_cut_short):
                    raise

    async def aclose(self) -> None:
        await self._client.aclose()


class _Attempt:
    """What became of a request on its way, as the connection tells."""

    def __init__(self) -> None:
        self.is_new_connection = False
        self.is_cut_short = False
        """Whether the request could not be written to its end."""

    async def note(self, event: str, info: Mapping[str, object]) -> None:  # noqa: ARG002
        if event.startswith("connection.connect_"):
            self.is_new_connection = True
        elif event.endswith((".send_request_headers.failed", ".send_request_body.failed")):
            self.is_cut_short = True

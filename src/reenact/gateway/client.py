"""The HTTP client for all upstreams; it reuses connections as long as no call fails because of that.

A server may close an idle connection at any time, and a request that is on its way fails then. This looks the
same as a server that got the request and crashed, so the request is sent again only if that is safe, as
browsers and Go do: if it is idempotent, or was not sent completely.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import httpx2

_IDLE_S: Final = 1.5
"""How long a connection may be idle before it is closed; common servers wait at least two seconds."""
_SAFE_METHODS: Final = frozenset({"GET", "HEAD", "OPTIONS", "TRACE"})
_CONNECTION_ERRORS: Final = (httpx2.RemoteProtocolError, httpx2.ReadError, httpx2.WriteError)


class UpstreamClient:
    """Sends requests to upstreams; a replay never creates one."""

    def __init__(self, timeout_s: float) -> None:
        self._closing_hosts: set[tuple[str, str]] = set()
        """Hosts that closed an idle connection; later calls to them use a new connection each."""
        self._client = httpx2.AsyncClient(
            timeout=httpx2.Timeout(timeout_s, pool=None),
            limits=httpx2.Limits(max_connections=None, keepalive_expiry=_IDLE_S),
        )

    async def send(self, request: httpx2.Request, *, stream: bool) -> httpx2.Response:
        """Send *request* and return the answer; retries if a reused connection had been closed."""
        while True:
            attempt = _Attempt()
            request.extensions = {**request.extensions, "trace": attempt.note}
            host = request.url.scheme, request.url.netloc.decode("ascii")
            # A new connection to http:// is cheap.
            if host[0] == "http" or host in self._closing_hosts:
                request.headers["Connection"] = "close"
            try:
                return await self._client.send(request, stream=stream)
            except _CONNECTION_ERRORS:
                if attempt.is_new_connection:
                    raise
                self._closing_hosts.add(host)
                is_whole = isinstance(request.stream, httpx2.ByteStream)
                may_repeat = request.method in _SAFE_METHODS or "idempotency-key" in request.headers
                if not is_whole or not (may_repeat or attempt.is_cut_short):
                    raise

    async def aclose(self) -> None:
        await self._client.aclose()


class _Attempt:
    """The events of a connection while one request was sent."""

    def __init__(self) -> None:
        self.is_new_connection = False
        self.is_cut_short = False
        """Whether the request could not be written completely."""

    async def note(self, event: str, info: Mapping[str, object]) -> None:  # noqa: ARG002
        if event.startswith("connection.connect_"):
            self.is_new_connection = True
        elif event.endswith((".send_request_headers.failed", ".send_request_body.failed")):
            self.is_cut_short = True

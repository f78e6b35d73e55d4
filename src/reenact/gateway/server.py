"""The gateway's server: it listens on loopback in a thread and loads the web server at the first call."""

from __future__ import annotations

import asyncio
import errno
import select
import socket
from collections.abc import Callable, Iterable
from contextlib import suppress
from importlib import import_module
from threading import Thread
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Self

from reenact.boundary import Context, outside
from reenact.errors import UsageError
from reenact.gateway.upstreams import Upstreams

if TYPE_CHECKING:
    import uvicorn

    from reenact.gateway.client import UpstreamClient

_HOST: Final = "127.0.0.1"
_HOSTS: Final = (_HOST, "localhost")
_BACKLOG: Final = 1024
_KEEP_ALIVE_S: Final = 3600
"""Longer than any client keeps a connection, so that we never close one that is about to be used."""
_MAX_HEAD_BYTES: Final = 1 << 20
_LAST_WORDS_S: Final = 2
"""The time that answers may take after the server was closed; their clients have ended by then."""
UPSTREAM_TIMEOUT_S: Final = 600.0
_CODINGS: Final = ("zstandard", "compression.zstd", "brotli")
"""Libraries for content codings, used if they are installed."""


class Gateway:
    """Listens from its creation until :meth:`close`.

    *on_call* is called for every request to an upstream, before it is answered. A live call to one of
    *live_upstreams* is recorded as one to the upstream of that name. *ends* are the ids of recorded calls, in
    the order in which their answers end.
    """

    def __init__(
        self,
        context: Context,
        upstreams: Upstreams,
        *,
        live_upstreams: Upstreams = MappingProxyType({}),
        port: int = 0,
        upstream_timeout_s: float = UPSTREAM_TIMEOUT_S,
        on_call: Callable[[], None] = lambda: None,
        ends: Iterable[str] = (),
    ) -> None:
        self._ends = ends
        self._context = context
        self._upstreams = upstreams
        self._live_upstreams = live_upstreams
        self._upstream_timeout_s = upstream_timeout_s
        self._on_call = on_call
        self._socket = _listen(port)
        self.address = f"http://{_HOST}:{self._socket.getsockname()[1]}"
        self._waker, self._closing = socket.socketpair()
        self._server: uvicorn.Server | None = None
        self._client: UpstreamClient | None = None
        self.unknown_names: list[str] = []
        """Requested names that no upstream has."""
        self._thread = Thread(target=self._run, name="reenact-gateway", daemon=True)
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop listening; answers that are still sent are cut off. May be called twice."""
        self._closing.close()
        if self._server is not None:
            self._server.should_exit = True
        self._thread.join()

    def _run(self) -> None:
        """Wait for the first client, since loading a web server takes longer than starting most programs."""
        with self._socket, self._waker, outside():  # a run may be open in this process
            ready, _, _ = select.select([self._socket, self._waker], [], [])
            if self._waker not in ready:
                asyncio.run(self._serve())

    async def _serve(self) -> None:
        import uvicorn
        from starlette.middleware.trustedhost import TrustedHostMiddleware

        from reenact.gateway.app import Forwarding, OwnPrograms

        for name in _CODINGS:
            with suppress(ImportError):
                import_module(name)
        forwarding = Forwarding(
            self._context,
            self._upstreams,
            self._upstream,
            self._on_call,
            live_upstreams=self._live_upstreams,
            ends=self._ends,
        )
        self.unknown_names = forwarding.unknown_names
        config = uvicorn.Config(
            TrustedHostMiddleware(OwnPrograms(forwarding), allowed_hosts=_HOSTS, www_redirect=False),
            http="h11",
            ws="none",
            loop="asyncio",
            lifespan="off",
            log_config=None,
            log_level="critical",
            access_log=False,
            server_header=False,
            date_header=False,
            backlog=_BACKLOG,
            timeout_keep_alive=_KEEP_ALIVE_S,
            timeout_graceful_shutdown=_LAST_WORDS_S,
            h11_max_incomplete_event_size=_MAX_HEAD_BYTES,
        )
        self._server = uvicorn.Server(config)
        self._server.should_exit = self._closing.fileno() < 0
        await self._server.serve(sockets=[self._socket])
        await _end_others()
        if self._client is not None:
            await self._client.aclose()

    def _upstream(self) -> UpstreamClient:
        """The client for all upstreams, created on first use; a replay never uses it."""
        if self._client is None:
            from reenact.gateway.client import UpstreamClient

            self._client = UpstreamClient(self._upstream_timeout_s)
        return self._client


async def _end_others() -> None:
    """Cancel the remaining tasks of this loop: one may still return a connection to the client."""
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)


def _listen(port: int) -> socket.socket:
    # The protocol is given, because only then asyncio sets TCP_NODELAY.
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((_HOST, port))
        listener.listen(_BACKLOG)
    except OSError as error:
        listener.close()
        what = "is in use" if error.errno == errno.EADDRINUSE else f"cannot be used: {error.strerror}"
        raise UsageError(f"port {port}: {what}; name another with --port, or none for a free one") from error
    return listener

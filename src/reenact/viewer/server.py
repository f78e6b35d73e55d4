"""Serving an application on loopback until somebody ends it."""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import Final

from starlette.types import ASGIApp

from reenact.errors import UsageError

HOST: Final = "127.0.0.1"
USUAL_PORT: Final = 7335
"""Links to events stay good from one day to the next as long as it is free."""


def bind(port: int | None) -> socket.socket:
    """A listening socket on loopback; without *port* the usual one, or any where that is taken."""
    if port is not None:
        return _bound(port)
    try:
        return _bound(USUAL_PORT)
    except UsageError:
        return _bound(0)


def address(listener: socket.socket) -> str:
    """What to open."""
    return f"http://{HOST}:{listener.getsockname()[1]}/"


def serve(app: ASGIApp, listener: socket.socket, on_start: Callable[[], None] = lambda: None) -> None:
    """Answer on *listener* until Ctrl-C; *on_start* is called once it does."""
    import uvicorn

    class Server(uvicorn.Server):
        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            on_start()

    config = uvicorn.Config(
        app, log_level="critical", access_log=False, server_header=False, ws="none", lifespan="off"
    )
    Server(config).run(sockets=[listener])


def _bound(port: int) -> socket.socket:
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((HOST, port))
        listener.listen()
    except OSError as error:
        listener.close()
        raise UsageError(f"port {port}: {error.strerror}; choose another with --port") from error
    return listener

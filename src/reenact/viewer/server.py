"""The web application of the viewer, the guard of its requests, and serving it on loopback.

A page of another site can make the browser send requests to loopback: by a name that resolves there (DNS
rebinding), which ``Host`` shows, or from its scripts, which ``Origin`` and ``Sec-Fetch-Site`` show. Other
users of this machine can connect too; the kernel knows the user of a connection.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Mapping
from contextlib import closing, suppress
from pathlib import Path
from typing import Final

import msgspec
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from reenact.errors import ReenactError, StoreError, UsageError
from reenact.store.peer import LOOPBACK_NAMES, is_other_user
from reenact.suite.settings import Price
from reenact.viewer.api import Api
from reenact.viewer.shelf import Shelf
from reenact.viewer.static import INDEX, media_type, static_files

_METHODS: Final = ("GET", "HEAD")

POLICY: Final = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self'",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
        "trusted-types 'none'",
    )
)

HEADERS: Final = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}


class RequestGuard:
    """Refuses foreign requests before the application gets them, and adds security headers to answers."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        refusal = _refusal(scope)
        app = self._app if refusal is None else refusal
        await app(scope, receive, _with_headers(send))


def _with_headers(send: Send) -> Send:
    async def send_guarded(message: Message) -> None:
        if message["type"] == "http.response.start":
            MutableHeaders(scope=message).update(HEADERS)
        await send(message)

    return send_guarded


def _refusal(scope: Scope) -> Response | None:
    headers = Headers(scope=scope)
    port = scope["server"][1]
    hosts = [f"{name}:{port}" for name in LOOPBACK_NAMES]
    if headers.getlist("host") not in [[host] for host in hosts]:
        return PlainTextResponse("This address is served under a loopback name only.\n", 421)
    if is_other_user(scope["client"], scope["server"]):
        return PlainTextResponse("Other users get nothing from here.\n", 403)
    if not set(headers.getlist("origin")) <= {f"http://{host}" for host in hosts} or _is_foreign(headers):
        return PlainTextResponse("Other sites get nothing from here.\n", 403)
    if scope["method"] not in _METHODS:
        return PlainTextResponse("There is nothing to change here.\n", 405, {"Allow": ", ".join(_METHODS)})
    return None


def _is_foreign(headers: Headers) -> bool:
    """Whether a page of another site sends the request; following a link from there is allowed."""
    if headers.get("sec-fetch-site", "none") in ("same-origin", "none"):
        return False
    return headers.get("sec-fetch-mode") != "navigate" or headers.get("sec-fetch-dest") != "document"


def viewer_app(shelf: Shelf) -> ASGIApp:
    """The application that shows the runs of *shelf*."""
    api = Api(shelf)

    async def ask(request: Request) -> Response:
        question = request.path_params["question"]
        try:
            return _json(await run_in_threadpool(api.ask, question, request.query_params))
        except (ReenactError, OSError) as error:
            return _json({"error": str(error)}, 404 if isinstance(error, UsageError) else 422)

    async def file(request: Request) -> Response:
        name = request.path_params.get("name", INDEX)
        content = static_files().get(name)
        if content is None:
            return Response("There is nothing here.\n", 404, media_type="text/plain")
        return Response(content, media_type=media_type(name))

    routes = [Route("/", file), Route("/{name}", file), Route("/api/{question}", ask)]
    return RequestGuard(Starlette(routes=routes))


def _json(value: object, status: int = 200) -> Response:
    return Response(msgspec.json.encode(value), status, media_type="application/json")


HOST: Final = "127.0.0.1"
USUAL_PORT: Final = 7335
"""A fixed port, so that links to events stay valid."""


def view(
    *paths: str | Path,
    port: int | None = None,
    prices: Mapping[str, Price] | None = None,
    on_start: Callable[[str, int], None] | None = None,
) -> None:
    """Serve the runs in *paths* to the browser until Ctrl-C, on this machine only.

    *on_start* is called with the URL and the number of runs when the server is ready.
    """
    shelf = Shelf(tuple(map(Path, paths)), prices)
    with closing(shelf), suppress(KeyboardInterrupt):
        if not shelf.ids and not shelf.shadow_reports.lines():
            raise StoreError(f"{paths[0]}: is a receipt; name also the run that was replayed")
        listener = bind(port)
        started = (address(listener), len(shelf.ids))
        serve(viewer_app(shelf), listener, on_start=lambda: on_start(*started) if on_start else None)


def bind(port: int | None) -> socket.socket:
    """A listening socket on loopback; without *port* on the usual port, or a free one."""
    if port is not None:
        return _bind(port)
    try:
        return _bind(USUAL_PORT)
    except UsageError:
        return _bind(0)


def address(listener: socket.socket) -> str:
    """The URL to open."""
    return f"http://{HOST}:{listener.getsockname()[1]}/"


def serve(app: ASGIApp, listener: socket.socket, on_start: Callable[[], None] = lambda: None) -> None:
    """Serve on *listener* until Ctrl-C; *on_start* is called when the server is ready."""
    import uvicorn

    class Server(uvicorn.Server):
        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            on_start()

    config = uvicorn.Config(
        app, log_level="critical", access_log=False, server_header=False, ws="none", lifespan="off"
    )
    Server(config).run(sockets=[listener])


def _bind(port: int) -> socket.socket:
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((HOST, port))
        listener.listen()
    except OSError as error:
        listener.close()
        raise UsageError(f"port {port}: {error.strerror}; choose another with --port") from error
    return listener

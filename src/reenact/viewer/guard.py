"""What every request passes: from its user's browser on this machine, to read, and nothing else.

A page of another site can make the browser send requests to loopback, by its own name that resolves there
(DNS rebinding) or from its own scripts. The first shows in ``Host``, the second in ``Origin`` and
``Sec-Fetch-Site``. Who else is logged in here can connect, too; the kernel knows whose program it was.
"""

from __future__ import annotations

from typing import Final

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from reenact.store.peer import LOOPBACK_NAMES, is_other_user

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


class Guard:
    """Refuses before the application is asked, and puts the security headers on every answer."""

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
    """Whether another site's page asks; following a link from there is the reader's own doing."""
    if headers.get("sec-fetch-site", "none") in ("same-origin", "none"):
        return False
    return headers.get("sec-fetch-mode") != "navigate" or headers.get("sec-fetch-dest") != "document"

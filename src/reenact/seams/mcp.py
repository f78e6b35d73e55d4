"""MCP client sessions: calls of a server's tools, and all other requests of a session.

The seam lies where a session passes a request to its dispatcher, or before version 2 to its streams. That is
above any transport, and below the session's own checks, which run in replay as they did during recording.
The transport's own traffic is not recorded. In replay no transport is opened: no server process is started,
and nothing is sent or received.
"""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from importlib.util import find_spec
from types import ModuleType, SimpleNamespace
from typing import Any, Final

from reenact.boundary import Call, Instant, crossing, current_lane, no_answer, outside
from reenact.seams.chance import instant
from reenact.seams.imports import Libraries
from reenact.seams.patches import Patch

_DISPATCHER: Final = "mcp.shared.jsonrpc_dispatcher"
_SESSION: Final = "mcp.client.session"
"""The module of client sessions; servers use the same dispatchers for their own requests."""
_SSE_TRANSPORT: Final = "mcp.client.sse"
_CACHE_READ: Final = Instant("nondeterministic", {"source": "clock", "key": "mcp cache"}, is_plain=True)

Params = Mapping[str, Any] | None


def _call_of(method: str, params: Params, server: Any) -> Call:
    given = dict(params or {})
    if method != "tools/call":
        return Call("network", f"mcp {method}", given)
    name = given.pop("name")
    given.pop("_meta", None)  # protocol metadata: versions, capabilities, trace ids
    arguments = given.pop("arguments", None) or {}
    # What a second round adds (answers to the server's questions) is part of the request.
    request = {"arguments": arguments, **given} if given else arguments
    facts = {"mcp": {"server": server.name if server is not None else None}}
    return Call("tool", name, request, facts, empty=lambda: {"content": []})


def _record_sending(original: Callable[..., Awaitable[object]]) -> Callable[..., Awaitable[object]]:
    """The dispatcher's method for a request or notification, but a session's is a call of the run."""

    def send(
        self: object, method: str, params: Params, *rest: object, **options: object
    ) -> Awaitable[object]:
        caller = sys._getframe(1)  # noqa: SLF001 — a server calls it, too
        if caller.f_globals.get("__name__") != _SESSION or current_lane() is None:
            return original(self, method, params, *rest, **options)
        call = _call_of(method, params, caller.f_locals["self"].server_info)
        return _cross(call, lambda: original(self, method, params, *rest, **options))

    return send


async def _cross(call: Call, send: Callable[[], Awaitable[object]]) -> object:
    async with crossing(call) as step:
        if step.live:
            with outside():
                step.answer = await send()
    return step.answer


def _run(original: Callable[..., Awaitable[None]]) -> Callable[..., Awaitable[None]]:
    """A dispatcher's receive loop, outside the run: a server's requests are part of the call it serves."""

    async def run(self: object, on_request: object, *rest: object, **options: object) -> None:
        if getattr(on_request, "__module__", None) != _SESSION:
            await original(self, on_request, *rest, **options)
            return
        with outside():
            await original(self, on_request, *rest, **options)

    return run


# Sessions before version 2


def _session_patches(module: ModuleType) -> list[Patch]:
    if find_spec(_DISPATCHER) is not None:
        return []
    return [
        Patch(module.BaseSession, "send_request", _send_request),
        Patch(module.BaseSession, "send_notification", _send_notification),
        Patch(module.BaseSession, "_receive_loop", _receive_loop),
    ]


def _is_clients(session: object) -> bool:
    """Whether it is a client's session in a run; a server's requests are part of the client's call."""
    module = sys.modules.get(_SESSION)
    return module is not None and isinstance(session, module.ClientSession) and current_lane() is not None


def _message(model: Any) -> tuple[str, Params]:
    """The method and parameters of a request or notification."""
    data = model.model_dump(by_alias=True, mode="json", exclude_none=True)
    return data["method"], data.get("params")


def _send_request(original: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[object]]:
    async def send_request(
        self: object, request: object, result_type: Any, *rest: object, **options: object
    ) -> object:
        if not _is_clients(self):
            return await original(self, request, result_type, *rest, **options)
        async with crossing(_call_of(*_message(request), None)) as step:
            if step.live:
                with outside():
                    result = await original(self, request, result_type, *rest, **options)
                step.answer = result.model_dump(by_alias=True, mode="json", exclude_none=True)
        return result if step.live else result_type.model_validate(step.answer)

    return send_request


def _send_notification(original: Callable[..., Awaitable[None]]) -> Callable[..., Awaitable[None]]:
    async def send_notification(self: object, notification: object, *rest: object, **options: object) -> None:
        if not _is_clients(self):
            await original(self, notification, *rest, **options)
            return
        await _cross(
            _call_of(*_message(notification), None), lambda: original(self, notification, *rest, **options)
        )

    return send_notification


def _receive_loop(original: Callable[..., Awaitable[None]]) -> Callable[..., Awaitable[None]]:
    """The receive loop, outside the run: a server's requests are part of the call it serves."""

    async def receive_loop(self: object) -> None:
        if not _is_clients(self):
            await original(self)
            return
        with outside():
            await original(self)

    return receive_loop


# Transports


def _spawn(original: Callable[..., Awaitable[object]]) -> Callable[..., Awaitable[object]]:
    async def create_process(command: str, args: list[str], *rest: object, **options: object) -> object:
        # The path of the server's program differs between machines, so it is recorded but not compared.
        facts = {"mcp": {"command": command, "args": args}}
        async with crossing(
            Call("process", "mcp server", {"transport": "stdio"}, facts, empty=no_answer)
        ) as step:
            if step.live:
                with outside():
                    return await original(command, args, *rest, **options)
        return _NoProcess()

    return create_process


class _NoProcess:
    """Stands for a server's process in replay: accepts all input, writes nothing, and has already ended."""

    pid = 0
    returncode = 0

    def __init__(self) -> None:
        self.stdin = self.stdout = _Silence()

    async def __aenter__(self) -> _NoProcess:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stdin.aclose()

    async def wait(self) -> int:
        return self.returncode

    def terminate(self) -> None:
        """Nothing to do: it has already ended."""

    kill = terminate


class _Silence:
    def __init__(self) -> None:
        import anyio

        self._is_closed = anyio.Event()

    async def send(self, data: bytes) -> None:
        """Discard *data*: there is no process."""

    async def receive(self, max_bytes: int = 0) -> bytes:  # noqa: ARG002
        import anyio

        await self._is_closed.wait()
        raise anyio.EndOfStream

    async def aclose(self) -> None:
        self._is_closed.set()


def _post_writer(original: Callable[..., Awaitable[None]]) -> Callable[..., Awaitable[None]]:
    async def post_writer(self: Any, client: object, reader: Any, writer: Any, *rest: object) -> None:
        facts = {"mcp": {"url": self.url}}
        async with crossing(
            Call("network", "mcp server", {"transport": "streamable http"}, facts, empty=no_answer)
        ) as step:
            is_live = step.live
        with outside():
            if is_live:
                await original(self, client, reader, writer, *rest)
                return
            async with reader, writer:
                async for _ in reader:
                    """Nothing is posted in replay."""

    return post_writer


def _connect_sse(original: Callable[..., Any]) -> Callable[..., object]:
    @asynccontextmanager
    async def connect_sse(client: Any, *args: object, **options: object) -> AsyncIterator[object]:
        url = str(args[-1] if args else options["url"])
        if current_lane() is None:
            async with original(client, *args, **options) as source:
                yield source
            return
        async with crossing(
            Call("network", "mcp server", {"transport": "sse"}, {"mcp": {"url": url}}, empty=no_answer)
        ) as step:
            is_live = step.live
        if not is_live:
            yield _SilentEvents(url)
            return
        client.send = _send_outside(client.send)  # messages that it posts belong to the transport, too
        connection = original(client, *args, **options)
        with outside():
            source = await connection.__aenter__()
        try:
            yield source
        except BaseException as error:
            with outside():
                is_handled = await connection.__aexit__(type(error), error, error.__traceback__)
            if not is_handled:
                raise
        else:
            with outside():
                await connection.__aexit__(None, None, None)

    return connect_sse


def _connect_sse_for_transport(original: Callable[..., object]) -> Callable[..., object]:
    """The same for the HTTP client's own method, which others than the transport call, too."""
    connect_sse = _connect_sse(original)

    def sse(client: object, *args: object, **options: object) -> object:
        caller = sys._getframe(1)  # noqa: SLF001 — only the transport's use is replaced
        is_transport = caller.f_globals.get("__name__") == _SSE_TRANSPORT
        return (connect_sse if is_transport else original)(client, *args, **options)

    return sse


def _send_outside(send: Callable[..., Awaitable[object]]) -> Callable[..., Awaitable[object]]:
    async def send_outside(*args: object, **options: object) -> object:
        with outside():
            return await send(*args, **options)

    return send_outside


class _SilentEvents:
    """Stands for a server's events in replay: first the endpoint to post to, then nothing."""

    def __init__(self, url: str) -> None:
        self._first = SimpleNamespace(event="endpoint", data=url, id="", retry=None)
        self.response = SimpleNamespace(raise_for_status=lambda: None, status_code=200, headers={})

    async def aiter_sse(self) -> AsyncIterator[object]:
        import anyio

        yield self._first
        await anyio.sleep_forever()

    def __aiter__(self) -> AsyncIterator[object]:
        return self.aiter_sse()


def _terminate_session(original: Callable[..., Awaitable[None]]) -> Callable[..., Awaitable[None]]:
    async def terminate_session(self: object, client: object) -> None:
        with outside():
            await original(self, client)

    return terminate_session


def _cache_clock(original: Callable[..., None]) -> Callable[..., None]:
    """Record the cache's clock: whether an answer is still fresh decides whether the server is asked."""

    def __init__(self: Any, *args: object, **options: object) -> None:  # noqa: N807
        original(self, *args, **options)
        clock = self._clock  # an attribute of the library
        self._clock = lambda: instant(_CACHE_READ, clock)

    return __init__


def _dispatcher(name: str) -> Callable[[ModuleType], list[Patch]]:
    def patches(module: ModuleType) -> list[Patch]:
        kind = getattr(module, name)
        return [
            Patch(kind, "send_raw_request", _record_sending),
            Patch(kind, "notify", _record_sending),
            Patch(kind, "run", _run),
        ]

    return patches


def _streamable_http(module: ModuleType) -> list[Patch]:
    transport = module.StreamableHTTPTransport
    return [
        Patch(transport, "post_writer", _post_writer),
        Patch(transport, "terminate_session", _terminate_session),
    ]


def _stdio(module: ModuleType) -> list[Patch]:
    return [Patch(module, "_create_platform_compatible_process", _spawn)]


def _cache_patches(module: ModuleType) -> list[Patch]:
    return [Patch(module.ClientResponseCache, "__init__", _cache_clock)]


def _sse(module: ModuleType) -> list[Patch]:
    for name in ("sse_within_origin", "aconnect_sse"):
        if hasattr(module, name):
            return [Patch(module, name, _connect_sse)]
    return [Patch(module.httpx2.AsyncClient, "sse", _connect_sse_for_transport)]  # version 2.0


LIBRARIES: Final[Libraries] = {
    _DISPATCHER: _dispatcher("JSONRPCDispatcher"),
    "mcp.shared.direct_dispatcher": _dispatcher("DirectDispatcher"),
    "mcp.shared.session": _session_patches,
    "mcp.client.stdio": _stdio,
    _SSE_TRANSPORT: _sse,
    "mcp.client.streamable_http": _streamable_http,
    "mcp.client.caching": _cache_patches,
}

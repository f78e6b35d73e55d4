"""MCP client sessions: tools called through a server, and everything else a session asks it.

The seam lies where a session hands a request to its dispatcher: above any transport, below the session's own
checks, which run in replay as they ran when recorded. Transports belong to no run; in replay they are not
opened: a server's process is not started and nothing is posted.
"""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable, Mapping
from importlib.util import find_spec
from types import ModuleType
from typing import Any, Final

from reenact.boundary import Call, Instant, crossing, current_lane, outside
from reenact.seams.chance import instant
from reenact.seams.imports import Libraries
from reenact.seams.patches import Patch

_DISPATCHER: Final = "mcp.shared.jsonrpc_dispatcher"
_SESSION: Final = "mcp.client.session"
"""The module of clients' sessions; servers use the same dispatchers for their own requests."""
_CACHE_READ: Final = Instant("nondeterministic", {"source": "clock", "key": "mcp cache"}, is_plain=True)

Params = Mapping[str, Any] | None


def _call_of(method: str, params: Params, server: Any) -> Call:
    given = dict(params or {})
    if method != "tools/call":
        return Call("network", f"mcp {method}", given)
    name = given.pop("name")
    given.pop("_meta", None)  # the protocol's own: versions, capabilities, trace ids
    arguments = given.pop("arguments", None) or {}
    # What a second round brings along (answers to the server's questions) is part of the request.
    request = {"arguments": arguments, **given} if given else arguments
    return Call("tool", name, request, {"mcp": {"server": server.name if server is not None else None}})


def _sent(original: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
    """A request or notification that a session hands to its dispatcher."""

    def send(self: Any, method: str, params: Params, *rest: Any, **options: Any) -> Awaitable[Any]:
        caller = sys._getframe(1)  # noqa: SLF001 — who calls decides what it means
        if caller.f_globals.get("__name__") != _SESSION or current_lane() is None:
            return original(self, method, params, *rest, **options)
        call = _call_of(method, params, caller.f_locals["self"].server_info)
        return _crossed(call, lambda: original(self, method, params, *rest, **options))

    return send


async def _crossed(call: Call, send: Callable[[], Awaitable[Any]]) -> Any:
    async with crossing(call) as step:
        if step.live:
            with outside():
                step.answer = await send()
    return step.answer


def _run(original: Callable[..., Awaitable[None]]) -> Callable[..., Awaitable[None]]:
    """A dispatcher's receiving: what a server asks while it works on a call is part of that call."""

    async def run(self: Any, on_request: Any, *rest: Any, **options: Any) -> None:
        if getattr(on_request, "__module__", None) != _SESSION:
            await original(self, on_request, *rest, **options)
            return
        with outside():
            await original(self, on_request, *rest, **options)

    return run


# Transports


def _spawn(original: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
    async def create_process(command: str, args: list[str], *rest: Any, **options: Any) -> Any:
        # Where the server's program lies differs between machines, so it is told but not compared.
        facts = {"mcp": {"command": command, "args": args}}
        async with crossing(Call("process", "mcp server", {"transport": "stdio"}, facts)) as step:
            if step.live:
                with outside():
                    return await original(command, args, *rest, **options)
        return _NoProcess()

    return create_process


class _NoProcess:
    """Stands for a server's process in replay: it takes everything, says nothing and is over already."""

    pid = 0
    returncode = 0

    def __init__(self) -> None:
        self.stdin = self.stdout = _Silence()


class _Silence:
    def __init__(self) -> None:
        import anyio

        self._is_closed = anyio.Event()

    async def send(self, data: bytes) -> None:
        """Nobody listens."""

    async def receive(self, max_bytes: int = 0) -> bytes:  # noqa: ARG002
        import anyio

        await self._is_closed.wait()
        raise anyio.EndOfStream

    async def aclose(self) -> None:
        self._is_closed.set()


def _post_writer(original: Callable[..., Awaitable[None]]) -> Callable[..., Awaitable[None]]:
    async def post_writer(self: Any, client: Any, reader: Any, writer: Any, *rest: Any) -> None:
        facts = {"mcp": {"url": self.url}}
        async with crossing(Call("network", "mcp server", {"transport": "streamable http"}, facts)) as step:
            is_live = step.live
        with outside():
            if is_live:
                await original(self, client, reader, writer, *rest)
                return
            async with reader, writer:
                async for _ in reader:
                    """Nothing is posted in replay."""

    return post_writer


def _terminate_session(original: Callable[..., Awaitable[None]]) -> Callable[..., Awaitable[None]]:
    async def terminate_session(self: Any, client: Any) -> None:
        with outside():
            await original(self, client)

    return terminate_session


def _cache_clock(original: Callable[..., None]) -> Callable[..., None]:
    """Whether an answer is still fresh decides whether the server is asked, so its clock is the run's."""

    def __init__(self: Any, *args: Any, **options: Any) -> None:  # noqa: N807
        original(self, *args, **options)
        clock = self._clock  # the library's own name
        self._clock = lambda: instant(_CACHE_READ, clock)

    return __init__


def _dispatcher(name: str) -> Callable[[ModuleType], list[Patch]]:
    def patches(module: ModuleType) -> list[Patch]:
        kind = getattr(module, name)
        return [
            Patch(kind, "send_raw_request", _sent),
            Patch(kind, "notify", _sent),
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


def _caching(module: ModuleType) -> list[Patch]:
    return [Patch(module.ClientResponseCache, "__init__", _cache_clock)]


def _with_dispatcher(patches: Callable[[ModuleType], list[Patch]]) -> Callable[[ModuleType], list[Patch]]:
    """Before version 2 sessions have no dispatcher; their transports must stay as they are."""
    return lambda module: patches(module) if find_spec(_DISPATCHER) is not None else []


LIBRARIES: Final[Libraries] = {
    _DISPATCHER: _dispatcher("JSONRPCDispatcher"),
    "mcp.shared.direct_dispatcher": _dispatcher("DirectDispatcher"),
    "mcp.client.stdio": _with_dispatcher(_stdio),
    "mcp.client.streamable_http": _with_dispatcher(_streamable_http),
    "mcp.client.caching": _caching,
}

"""uvloop: an event loop in C, which raises no audit events.

Its tasks get lanes like those of any other loop. Before it connects, looks up a name or starts a program, the
seam raises the audit event that the standard library would raise.
"""

from __future__ import annotations

import socket
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any, Final

from reenact.seams.deadlines import call_in_turn, call_later, loop_time
from reenact.seams.imports import Libraries
from reenact.seams.patches import Patch
from reenact.seams.serving import note_server
from reenact.seams.spawn import bind_to_lanes
from reenact.seams.stdlib.process.transport import exec_as_call, shell_as_call


def _patches(module: ModuleType) -> list[Patch]:
    announced = [Patch(module.Loop, name, _audit(announce)) for name, announce in _ANNOUNCED.items()]
    return [
        Patch(module.Loop, "create_task", bind_to_lanes),
        Patch(module.Loop, "call_soon_threadsafe", call_in_turn),
        Patch(module.Loop, "create_server", _watch_server),
        Patch(module.Loop, "subprocess_exec", lambda original: exec_as_call(_audit(_program)(original))),
        Patch(
            module.Loop, "subprocess_shell", lambda original: shell_as_call(_audit(_command_line)(original))
        ),
        Patch(module.Loop, "call_later", call_later),
        Patch(module.Loop, "time", loop_time),
        *announced,
    ]


def _watch_server(original: Callable[..., Any]) -> Callable[..., object]:
    async def create_server(self: object, *args: object, **options: object) -> object:
        server = await original(self, *args, **options)
        note_server(server)
        return server

    return create_server


def _audit(announce: Callable[..., None]) -> Callable[[Callable[..., object]], Callable[..., object]]:
    def wrap(original: Callable[..., Any]) -> Callable[..., object]:
        async def announced(self: object, *args: object, **options: object) -> object:
            announce(*args, **options)
            return await original(self, *args, **options)

        return announced

    return wrap


def _connection(_: object, host: object = None, port: object = None, **__: object) -> None:
    if host is not None:
        _lookup(host, port)
        _connect(socket.AF_INET6 if ":" in str(host) else socket.AF_INET, (host, port))


def _unix_connection(_: object, path: object = None, **__: object) -> None:
    if path is not None:
        _connect(socket.AF_UNIX, path)


def _datagrams(_: object, local_addr: object = None, remote_addr: object = None, **__: object) -> None:  # noqa: ARG001
    if isinstance(remote_addr, tuple):
        _connection(None, *remote_addr[:2])
    else:
        _unix_connection(None, remote_addr)


def _lookup(host: object, port: object, **__: object) -> None:
    sys.audit("socket.getaddrinfo", host, port, 0, 0, 0)


def _reverse_lookup(address: object, flags: int = 0) -> None:  # noqa: ARG001 - as the loop is called
    sys.audit("socket.getnameinfo", address)


def _program(_: object, program: object, *args: object, **__: object) -> None:
    sys.audit("subprocess.Popen", program, [program, *args], None, None)


def _command_line(_: object, command: object, **__: object) -> None:
    sys.audit("subprocess.Popen", "/bin/sh", ["/bin/sh", "-c", command], None, None)


def _connect(family: socket.AddressFamily, address: object) -> None:
    with socket.socket(family) as stand_in:
        sys.audit("socket.connect", stand_in, address)


_ANNOUNCED: Final[dict[str, Callable[..., None]]] = {
    "create_connection": _connection,
    "create_unix_connection": _unix_connection,
    "create_datagram_endpoint": _datagrams,
    "getaddrinfo": _lookup,
    "getnameinfo": _reverse_lookup,
}

LIBRARIES: Final[Libraries] = {"uvloop": _patches}

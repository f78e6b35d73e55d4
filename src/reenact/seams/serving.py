"""Servers that a run starts itself: a request of its own clients to them is not a call of the run.

If replay answered such a request, the server's code and the calls that it makes would not run. So the request
is really made in replay, and a program that gets the address of such a server is really run.
"""

from __future__ import annotations

import re
import socket
from asyncio import Server
from collections.abc import Callable, Iterable
from contextlib import suppress
from ipaddress import ip_address
from typing import Final

from reenact.boundary import current_lane
from reenact.process_state import listening_sockets, loop_servers, native_servers
from reenact.seams.patches import Patch


def _listen(original: Callable[..., None]) -> Callable[..., None]:
    def listen(self: socket.socket, *backlog: int) -> None:
        original(self, *backlog)
        if current_lane() is not None:
            listening_sockets.add(self)

    return listen


PATCHES: Final = [Patch(socket.socket, "listen", _listen)]


def note_server(server: Server) -> None:
    """Remember *server*, which now listens, if the calling code belongs to a run."""
    loop_servers[:] = [each for each in loop_servers if each.is_serving()]
    if current_lane() is not None:
        loop_servers.append(server)


def note_port(server: object, port: int) -> None:
    """Remember that *server* listens on *port*, if the calling code belongs to a run."""
    if current_lane() is not None:
        native_servers.setdefault(server, set()).add(port)


def forget_ports(server: object) -> None:
    """Forget the ports of *server*, which stops."""
    native_servers.pop(server, None)


def is_served_here(host: str | None, port: int | None) -> bool:
    """Whether a server of a run that is open in this process listens there."""
    return _has_servers() and _is_loopback(host) and port in _ports()


def _has_servers() -> bool:
    return bool(listening_sockets or loop_servers or native_servers)


_ADDRESS: Final = re.compile(
    r"(?<![\w.])(?P<host>localhost|\[[0-9A-Fa-f:.]+\]|\d+(?:\.\d+){3}):(?P<port>\d{1,5})(?!\d)"
)


def asks_server_of_run(words: Iterable[str]) -> bool:
    """Whether the arguments of a program hold the address of such a server."""
    return _has_servers() and any(
        is_served_here(found["host"].strip("[]"), int(found["port"]))
        for word in words
        for found in _ADDRESS.finditer(word)
    )


def _ports() -> set[int]:
    found = {port for ports in list(native_servers.values()) for port in ports}
    for listening in [*listening_sockets, *(each for server in loop_servers for each in server.sockets)]:
        with suppress(OSError):  # the socket is closed
            if listening.family != socket.AF_UNIX:
                found.add(listening.getsockname()[1])
    return found


def _is_loopback(host: str | None) -> bool:
    if host in (None, "localhost"):
        return host is not None
    try:
        address = ip_address(str(host))
    except ValueError:
        return False
    return address.is_loopback or address.is_unspecified

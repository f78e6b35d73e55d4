"""Whose program is at the other end of a connection on this machine, as the kernel tells it (Linux)."""

from __future__ import annotations

from pathlib import Path
from socket import inet_aton
from sys import byteorder
from typing import Final, TypeAlias

Address: TypeAlias = tuple[str, int]

_CONNECTIONS: Final = Path("/proc/net/tcp")
_LOCAL, _REMOTE, _USER = 1, 2, 7
"""Columns of that table."""


def user_of(client: Address | None, server: Address, connections: Path = _CONNECTIONS) -> int | None:
    """The id of the user whose program connected from *client* to *server*; ``None`` where nobody can say."""
    if client is None:  # it is gone again
        return None
    there, here = _as_written(client), _as_written(server)
    try:
        rows = [line.split() for line in connections.read_text("ascii").splitlines() if there in line]
    except OSError:
        return None
    return next((int(row[_USER]) for row in rows if row[_LOCAL : _REMOTE + 1] == [there, here]), None)


def _as_written(address: Address) -> str:
    host, port = address
    return f"{int.from_bytes(inet_aton(host), byteorder):08X}:{port:04X}"

"""Whose program is at the other end of a connection on this machine, as the kernel tells it (Linux)."""

from __future__ import annotations

import os
from collections.abc import Iterator
from ipaddress import IPv6Address, ip_address
from pathlib import Path
from sys import byteorder
from typing import Final, TypeAlias

Address: TypeAlias = tuple[str, int]

LOOPBACK_NAMES: Final = ("127.0.0.1", "localhost", "[::1]")
"""Under which this machine is reached from itself, as they stand in URLs."""

_NETWORK: Final = Path("/proc/net")
_TABLES: Final = ("tcp", "tcp6")
"""A program that connects by IPv6 to an IPv4 address stands in the second, by a mapped address."""
_LOCAL, _REMOTE, _USER, _INODE = 1, 2, 7, 9
"""Columns of the tables."""
_NO_INODE: Final = "0"
"""Of a connection whose program has closed it: its user is then given as 0, which is not true."""
_ROOT: Final = 0
"""Nothing is hidden from it, and some systems let it pass on what a browser outside asks."""


def is_other_user(client: Address | None, server: Address, network: Path = _NETWORK) -> bool:
    """Whether the program that connected from *client* to *server* is not known to be ours, or root's.

    Where there are no such tables (not Linux) nobody is another.
    """
    if not (network / _TABLES[0]).exists():
        return False
    return client is None or user_of(client, server, network) not in (_ROOT, os.getuid())


def user_of(client: Address, server: Address, network: Path = _NETWORK) -> int | None:
    """The id of the user whose program connected from *client* to *server*; ``None`` where nobody can say."""
    for table in _TABLES:
        there, here = _in_table(client, table), _in_table(server, table)
        for row in _rows(network / table, there):
            if row[_LOCAL : _REMOTE + 1] == [there, here] and row[_INODE] != _NO_INODE:
                return int(row[_USER])
    return None


def _rows(table: Path, there: str) -> Iterator[list[str]]:
    try:
        lines = table.read_text("ascii").splitlines()
    except OSError:
        return
    for line in lines:
        row = line.split() if there in line else []
        if len(row) > _INODE:
            yield row


def _in_table(address: Address, table: str) -> str:
    """*address* as it is written there: words of four bytes, each as this machine reads it."""
    host, port = address
    number = ip_address(host.partition("%")[0])
    mapped = number.ipv4_mapped if isinstance(number, IPv6Address) else number
    if table == "tcp":
        raw = mapped.packed if mapped is not None else b""
    else:
        raw = number.packed if mapped is None else IPv6Address(f"::ffff:{mapped}").packed
    words = (raw[start : start + 4] for start in range(0, len(raw), 4))
    return "".join(f"{int.from_bytes(word, byteorder):08X}" for word in words) + f":{port:04X}"

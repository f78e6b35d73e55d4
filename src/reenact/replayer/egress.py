"""Reads audit events of the standard library: what would leave this process, as a value.

An event that sends nothing out reads as ``None``: the lookup of a numeric address, of ``localhost`` or of an
empty name asks no server, and a message on a connected socket names no destination.
"""

from __future__ import annotations

import os
import re
import shlex
import socket
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, ip_address
from os import listdir
from pathlib import Path
from socket import AF_INET, AF_INET6, AF_UNIX
from sys import byteorder
from typing import Any, ClassVar, Final, Literal, TypeAlias

from reenact.boundary import NATIVE_CALL, NATIVE_CONNECT, SPAWNED_CHILD

Kind: TypeAlias = Literal["connect", "dns", "spawn"]

KINDS: Final[tuple[Kind, ...]] = ("connect", "dns", "spawn")

NEW_INTERPRETER: Final = "reenact.new_interpreter"
"""Our own audit event for an interpreter that is created in this process."""
WORKER: Final = "reenact.worker"
"""Our own audit event for a process that is started without ``subprocess``, as ``multiprocessing`` does."""

MAX_TARGET_CHARACTERS: Final = 200
"""Longer targets are cut: a command line may contain a whole script."""


@dataclass(frozen=True, slots=True)
class Connect:
    """A connection or datagram to an internet address."""

    kind: ClassVar[Kind] = "connect"
    host: str
    port: int

    @property
    def target(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return _describe(f"{host}:{self.port}")


@dataclass(frozen=True, slots=True)
class ConnectLocal:
    """A connection or datagram to a Unix socket, or to an address of another family as text."""

    kind: ClassVar[Kind] = "connect"
    path: str

    @property
    def target(self) -> str:
        return _describe(self.path)


@dataclass(frozen=True, slots=True)
class Lookup:
    """A query to the name service: the addresses of a name, or the name of an address."""

    kind: ClassVar[Kind] = "dns"
    host: str

    @property
    def target(self) -> str:
        return _describe(self.host)


@dataclass(frozen=True, slots=True)
class Spawn:
    """A program started as a child or in place of this process; ``argv[0]`` is the real executable."""

    kind: ClassVar[Kind] = "spawn"
    argv: tuple[str, ...]

    @property
    def target(self) -> str:
        return _describe(shlex.join(self.argv))


Egress: TypeAlias = Connect | ConnectLocal | Lookup | Spawn


def is_loopback(host: str) -> bool:
    """Whether *host* is ``localhost`` or a numeric address that stays on this machine."""
    address = _numeric(host)
    if isinstance(address, IPv6Address) and address.ipv4_mapped:
        address = address.ipv4_mapped
    return address.is_loopback if address else host.lower() == "localhost"


def _connect(arguments: tuple[Any, ...]) -> Egress | None:
    sock, address = arguments
    if address is None:
        return None
    if sock.family in (AF_INET, AF_INET6):
        return Connect(_text(address[0]), address[1])
    return ConnectLocal(_text(address) if sock.family == AF_UNIX else str(address))


def _bind(arguments: tuple[Any, ...]) -> Egress | None:
    """Data on a socket that is bound to a network card leaves through that card, without an address."""
    sock, address = arguments
    return ConnectLocal(str(address)) if sock.family == _PACKETS else None


_PACKETS: Final = getattr(socket, "AF_PACKET", None)


def _lookup_of_name(arguments: tuple[object, ...]) -> Egress | None:
    host = _text(arguments[0] or "")
    stays_here = not host or _numeric(host) or is_loopback(host)
    return None if stays_here else Lookup(host)


def _lookup_of_address(arguments: tuple[object, ...]) -> Egress | None:
    """A reverse lookup; here a numeric host does send a query."""
    asked = arguments[0]
    host = _text(asked[0] if isinstance(asked, tuple) else asked)
    return None if is_loopback(host) else Lookup(host)


def _spawn(arguments: tuple[object, ...]) -> Egress:
    executable, argv = arguments[0], arguments[1]
    return Spawn((_text(executable), *_texts(argv)[1:]))


def _spawn_through_shell(arguments: tuple[object, ...]) -> Egress:
    return Spawn(("/bin/sh", "-c", _text(arguments[0])))


def _spawn_on_terminal(arguments: tuple[object, ...]) -> Egress:
    return Spawn(_texts(arguments[0]))


def _spawned_child(arguments: tuple[object, ...]) -> Egress:
    return Spawn((f"multiprocessing.Process(target={_text(arguments[0])})",))


def _new_interpreter(_: tuple[object, ...]) -> Egress:
    """Our audit hook does not see what another interpreter does."""
    return Spawn(("(another interpreter in this process)",))


def _fork_onto_terminal(_: tuple[object, ...]) -> Egress:
    """The child names its program only later; but nothing else needs a new terminal."""
    return Spawn(("(os.forkpty)",))


def _native_call(arguments: tuple[object, ...]) -> Egress:
    """A target such as gRPC's: ``host:port``, or with a scheme such as ``dns:///`` or ``unix:`` before it."""
    target = _text(arguments[1])
    found = _TARGET.fullmatch(target)
    if found is None:
        return ConnectLocal(target.removeprefix("unix://").removeprefix("unix:"))
    return Connect(found["host"].strip("[]"), int(found["port"] or _HTTPS_PORT))


def _foreign_function(arguments: tuple[object, ...]) -> Egress | None:
    """A function of a C library that ``ctypes`` looks up, to call it."""
    name = arguments[1]
    return ConnectLocal(f"what {name}() gets through ctypes") if name in _CONNECTING_FUNCTIONS else None


_CONNECTING_FUNCTIONS: Final = frozenset({"connect", "sendto", "sendmsg"})
_TARGET: Final = re.compile(
    r"(?:(?:dns|ipv4|ipv6):(?://[^/]*/)?)?(?P<host>\[[^]]+\]|[^:/%]+)(?::(?P<port>\d{1,5}))?"
)
_HTTPS_PORT: Final = 443

READERS: Final[Mapping[str, Callable[[tuple[object, ...]], Egress | None]]] = {
    "socket.bind": _bind,
    "socket.connect": _connect,
    "socket.sendto": _connect,
    "socket.sendmsg": _connect,
    "socket.getaddrinfo": _lookup_of_name,
    "socket.gethostbyname": _lookup_of_name,
    "socket.gethostbyaddr": _lookup_of_address,
    "socket.getnameinfo": _lookup_of_address,
    "subprocess.Popen": _spawn,
    WORKER: _spawn,
    "os.posix_spawn": _spawn,
    "os.exec": _spawn,
    "os.system": _spawn_through_shell,
    "pty.spawn": _spawn_on_terminal,
    "os.forkpty": _fork_onto_terminal,
    NEW_INTERPRETER: _new_interpreter,
    NATIVE_CALL: _native_call,
    NATIVE_CONNECT: _native_call,
    SPAWNED_CHILD: _spawned_child,
    "ctypes.dlsym": _foreign_function,
}
"""By audit event. ``os.fork`` is absent on purpose: a forked child is this program, with the same guard."""


def _numeric(host: str) -> IPv4Address | IPv6Address | None:
    try:
        return ip_address(host)
    except ValueError:
        return None


def _text(value: object) -> str:
    if isinstance(value, bytearray):
        value = bytes(value)
    # Not always text: os.execve takes a file descriptor, a netlink address is a pair.
    return os.fsdecode(value) if isinstance(value, str | bytes | os.PathLike) else str(value)


def _texts(argv: object) -> tuple[str, ...]:
    if isinstance(argv, str | bytes | os.PathLike) or not isinstance(argv, Iterable):
        return (_text(argv),)
    return tuple(_text(word) for word in argv)


def _describe(text: str) -> str:
    """*text* cut to the maximum length, with unprintable characters escaped."""
    if len(text) > MAX_TARGET_CHARACTERS:
        text = text[: MAX_TARGET_CHARACTERS - 1] + "…"
    return "".join(mark if mark.isprintable() else repr(mark)[1:-1] for mark in text)


def connections_since(before: set[str]) -> dict[str, Connect]:
    """The open connections that this process has made, by socket, without those *before*; on Linux only.

    Linux takes 5 ms to write each of its tables, so they are read only if there is a new socket.
    """
    sockets = held_sockets()
    if sockets <= before:
        return {}
    made = _connections_of(sockets, set())
    return {inode: target for inode, target in made.items() if inode not in before}


def _connections_of(sockets: set[str], served: set[str]) -> dict[str, Connect]:
    """Those of *sockets* that connect to a server; not those on a *served* port, to which this adds."""
    rows = [row for name in ("tcp", "tcp6") for row in _rows(f"/proc/self/net/{name}") if row[9] in sockets]
    served |= {row[1].rpartition(":")[2] for row in rows if row[3] == _LISTENING}
    made = [row for row in rows if row[3] != _LISTENING and row[1].rpartition(":")[2] not in served]
    return {row[9]: _remote(row[2]) for row in made}


class OutsideLook:
    """Looks at the connections of the program *pid* and all below it, from another process.

    It sees connections that are closed again before the program ends, if they live until the next look.
    *note* gets each new one with the process that has it.
    """

    def __init__(self, pid: int, note: Callable[[int, str, Connect], None]) -> None:
        self._pid = pid
        self._note = note
        self._looks: Counter[tuple[int, str]] = Counter()
        """How often each socket was new; one that does not connect is new only some times."""
        self._served: set[str] = set()

    def look(self) -> None:
        held = {(pid, inode) for pid in _tree(self._pid) for inode in _sockets_of(str(pid))}
        new = {each for each in held if self._looks[each] < _MOST_LOOKS}
        if not new:
            return
        self._looks.update(new)
        connections = _connections_of({inode for _, inode in held}, self._served)
        for pid, inode in new:
            if inode in connections:
                self._looks[pid, inode] = _MOST_LOOKS
                self._note(pid, inode, connections[inode])


_MOST_LOOKS: Final = 5

_LISTENING: Final = "0A"


def connected_ports(pid: int) -> set[int]:
    """The remote ports of connections from this process to the program *pid* or its children."""
    theirs = {inode for one in _tree(pid) for inode in _sockets_of(str(one))}
    if not theirs:
        return set()
    ours = held_sockets()
    rows = [row for name in ("tcp", "tcp6") for row in _rows(f"/proc/self/net/{name}")]
    ends = {(_remote(row[1]), _remote(row[2])) for row in rows if row[9] in theirs}
    pairs = [(_remote(row[1]), _remote(row[2])) for row in rows if row[9] in ours and row[3] != _LISTENING]
    return {there.port for here, there in pairs if (there, here) in ends}


def is_listening(pid: int, port: int) -> bool:
    """Whether the program *pid*, or one of its children, listens on *port* of this machine."""
    sockets = {inode for one in _tree(pid) for inode in _sockets_of(str(one))}
    rows = [row for name in ("tcp", "tcp6") for row in _rows(f"/proc/self/net/{name}")]
    return any(row[9] in sockets and row[3] == _LISTENING and _remote(row[1]).port == port for row in rows)


def listening_ports() -> set[int]:
    """The ports of this machine on which any process listens."""
    rows = [row for name in ("tcp", "tcp6") for row in _rows(f"/proc/self/net/{name}")]
    return {_remote(row[1]).port for row in rows if row[3] == _LISTENING}


def _tree(pid: int) -> Iterator[int]:
    """The process *pid* and all below it: each thread has its own children."""
    yield pid
    with suppress(OSError, ValueError):  # it ends meanwhile
        for thread in listdir(f"/proc/{pid}/task"):
            children = Path(f"/proc/{pid}/task/{thread}/children").read_text("ascii")
            for child in children.split():
                yield from _tree(int(child))


def may_connect(library: str) -> bool:
    """Whether a loaded C library uses functions that connect; the C library itself only has them."""
    name = Path(library).name
    if not name or name.startswith(("libc.", "libc-", "libpthread")):
        return False
    with suppress(OSError):
        for line in Path("/proc/self/maps").read_text("utf-8", "surrogateescape").splitlines():
            path = Path(line.partition("/")[1] + line.partition("/")[2])
            if path.name.startswith(name):
                return _USES_NETWORK.search(path.read_bytes()) is not None
    return False


_USES_NETWORK: Final = re.compile(
    rb"\0(?:connect|getaddrinfo|gethostbyname|SSL_connect|curl_(?:easy|multi)_perform)\0"
)


def held_sockets() -> set[str]:
    """The inodes of the sockets that this process has open."""
    return _sockets_of("self")


def _sockets_of(process: str) -> set[str]:
    found = set()
    with suppress(OSError):
        for fd in listdir(f"/proc/{process}/fd"):
            with suppress(OSError):
                target = os.readlink(f"/proc/{process}/fd/{fd}")
                if target.startswith("socket:["):
                    found.add(target[8:-1])
    return found


def _rows(path: str) -> list[list[str]]:
    try:
        with open(path, encoding="ascii") as table:
            return [line.split() for line in list(table)[1:]]
    except OSError:
        return []


def _remote(address: str) -> Connect:
    """Parse an address of the kernel's tables: in hex, words of four bytes in native byte order."""
    host, _, port = address.rpartition(":")
    words = [bytes.fromhex(host[start : start + 8]) for start in range(0, len(host), 8)]
    packed = b"".join(word[::-1] if byteorder == "little" else word for word in words)
    found = ip_address(packed)
    mapped = getattr(found, "ipv4_mapped", None)
    return Connect(str(mapped or found), int(port, 16))

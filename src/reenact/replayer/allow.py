"""What a replay may still do for real."""

from __future__ import annotations

import os
import re
import socket
import stat
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final, Literal, TypeAlias

from reenact.errors import UsageError
from reenact.library import HOST_QUESTIONS, asking_module
from reenact.replayer.egress import Connect, ConnectLocal, Egress, Lookup, Spawn, is_listening, is_loopback

_TALKING: Final = frozenset({"multiprocessing.connection", "multiprocessing.forkserver"})
_PASS_ON: Final = frozenset({"multiprocessing.util", "os", "subprocess"})


@dataclass(frozen=True, slots=True)
class Allow:
    """What one run may do for real; on other hosts, only what is listed."""

    loopback_ports: Collection[int] = ()
    """Allowed ports of this host, reached as ``localhost`` or by any loopback address."""
    unix_sockets: Collection[str] = ()
    """Paths, written as the agent writes them."""
    commands: Collection[tuple[str, ...]] = ()
    """First words of allowed command lines, as the agent writes them: ``("git", "status")``."""
    addresses: Collection[tuple[str, int]] = ()
    """Hosts, as the agent writes them, with ports; the host's name may be looked up, too."""

    is_served_here: Callable[[str, int], bool] | None = None
    """Whether the run itself listens at a host and port."""
    programs: Callable[[], Collection[int]] | None = None
    """The process ids of programs that the run has really started; it may connect to them."""
    is_client: Callable[[Sequence[str]], bool] | None = None
    """Whether a command line starts a client of a server of the run."""

    children: Callable[[], bool] | None = None
    """Whether ``multiprocessing`` is now starting a process that has its own guard."""
    began_s: float = 0.0
    """When the run began; such processes listen only at newer sockets."""

    def permits(self, egress: Egress) -> bool:
        """Whether *egress* may happen; reads the stack, so call it where the event was raised."""
        match egress:
            case Connect(host, port):
                is_here = port in self.loopback_ports and is_loopback(host)
                is_own = self.is_served_here is not None and self.is_served_here(host, port)
                is_own = is_own or (is_loopback(host) and self._is_at_program(port))
                is_named = any(port == its and self._is_at(host, name) for name, its in self.addresses)
                return is_here or is_own or is_named
            case Lookup(host):
                return any(host.lower() == name.lower() for name, _ in self.addresses)
            case ConnectLocal(path):
                return path in self.unix_sockets or self._is_to_child(path)
            case Spawn(argv):
                listed = any(words and argv[: len(words)] == words for words in self.commands)
                is_client = self.is_client is not None and self.is_client(argv)
                return listed or is_client or asking_module(_PASS_ON) in HOST_QUESTIONS or self._is_child()

    def _is_at(self, host: str, name: str) -> bool:
        """Whether *host* is *name* or one of its addresses."""
        return host.lower() == name.lower() or host in _addresses_of(name)

    def _is_at_program(self, port: int) -> bool:
        return self.programs is not None and any(is_listening(pid, port) for pid in self.programs())

    def _is_child(self) -> bool:
        return self.children is not None and self.children()

    def _is_to_child(self, path: str) -> bool:
        is_own = self.children is not None and _is_of_multiprocessing(path, self.began_s)
        return is_own and asking_module(_PASS_ON) in _TALKING


def _is_of_multiprocessing(path: str, began_s: float) -> bool:
    """Whether *path* is a socket of this user's ``multiprocessing``, created after the run began."""
    place = Path(path)
    if not place.name.startswith("listener-") or not place.parent.name.startswith("pymp-"):
        return False
    try:
        found = place.stat()
    except (OSError, ValueError):
        return False
    return stat.S_ISSOCK(found.st_mode) and found.st_uid == os.getuid() and found.st_ctime >= began_s - 1


AllowLike: TypeAlias = Allow | Literal["loopback"] | Collection[int | str | tuple[str, ...]]
"""``"loopback"`` for every port of this host, or a list: ports of this host, ``"HOST:PORT"``, paths of Unix
sockets, and tuples of a command's first words."""

_ALL_PORTS: Final = range(65536)
_ADDRESS: Final = re.compile(r"\[?(?P<host>[^/\s]+?)\]?:(?P<port>\d{1,5})")


def read_allow(given: AllowLike, where: str = "allow") -> Allow:
    """Read *given*; the error for an invalid entry names *where* it was given."""
    if isinstance(given, Allow):
        return given
    if given == "loopback":
        return Allow(loopback_ports=_ALL_PORTS)
    items: list[object] = [given] if isinstance(given, str) else list(given)
    strange = [one for one in items if not isinstance(one, int | str | tuple)]
    if strange or isinstance(given, str):
        raise UsageError(
            f"{where} has {(strange or items)[0]!r}; give ports, HOST:PORT, socket paths or tuples of words"
        )
    texts = [one for one in items if isinstance(one, str)]
    named = [(one, found) for one in texts if (found := _read_address(one)) is not None]
    return Allow(
        loopback_ports=frozenset(one for one in items if isinstance(one, int)),
        unix_sockets=frozenset(texts) - {one for one, _ in named},
        commands=frozenset(one for one in items if isinstance(one, tuple)),
        addresses=frozenset(address for _, address in named),
    )


def _read_address(text: str) -> tuple[str, int] | None:
    """Read ``HOST:PORT``; ``None`` if it is something else."""
    found = _ADDRESS.fullmatch(text)
    if found is None or int(found["port"]) not in _ALL_PORTS:
        return None
    return found["host"], int(found["port"])


@cache
def _addresses_of(name: str) -> frozenset[str]:
    """The addresses of an allowed host; looked up once per process."""
    with suppress(OSError):
        return frozenset(str(found[4][0]) for found in socket.getaddrinfo(name, None))
    return frozenset()

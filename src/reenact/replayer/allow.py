"""What a replay may still do for real."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Final

from reenact.library import HOST_QUESTIONS, asking_module
from reenact.replayer.egress import Connect, ConnectLocal, Egress, Spawn, is_loopback

_TALKING: Final = frozenset({"multiprocessing.connection", "multiprocessing.forkserver"})
_PASS_ON: Final = frozenset({"multiprocessing.util", "os", "subprocess"})


@dataclass(frozen=True, slots=True)
class Allow:
    """The exceptions of one run; beyond this host there are none, for that a tool is passed through."""

    loopback_ports: Collection[int] = ()
    """Ports the run itself serves, reached as ``localhost`` or by any loopback address."""
    unix_sockets: Collection[str] = ()
    """Paths as the caller writes them."""
    commands: Collection[tuple[str, ...]] = ()
    """First words of allowed command lines, as the caller writes them: ``("git", "status")``."""

    children: Callable[[], bool] | None = None
    """Says whether ``multiprocessing`` is just starting a process that has a guard of its own."""

    def permits(self, egress: Egress) -> bool:
        """Whether *egress* may happen; asks the stack, so call it where the event was raised."""
        match egress:
            case Connect(host, port):
                return port in self.loopback_ports and is_loopback(host)
            case ConnectLocal(path):
                return path in self.unix_sockets or self._is_to_child()
            case Spawn(argv):
                listed = any(words and argv[: len(words)] == words for words in self.commands)
                return listed or asking_module(_PASS_ON) in HOST_QUESTIONS or self._is_child()
        return False

    def _is_child(self) -> bool:
        return self.children is not None and self.children()

    def _is_to_child(self) -> bool:
        return self.children is not None and asking_module(_PASS_ON) in _TALKING

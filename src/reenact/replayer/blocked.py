"""One refused attempt to go live, and the error that carries it."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from reenact.errors import LiveCallBlocked
from reenact.replayer.egress import Egress, Kind
from reenact.replayer.frames import agent_frame
from reenact.volatile.beside import is_of_hosts

_DEED: Final[Mapping[Kind, str]] = {
    "connect": "connecting to {}",
    "dns": "looking up {}",
    "spawn": "running `{}`",
}
_REMEDY: Final[Mapping[Kind, str]] = {
    "connect": "do it inside a @reenact.tool, or allow its port on this host or its Unix socket",
    "dns": "do it inside a @reenact.tool",
    "spawn": "do it inside a @reenact.tool, or allow its command (multiprocessing: use threads)",
}


@dataclass(frozen=True, slots=True)
class BlockedCall:
    """What tried to leave, and who asked for it."""

    kind: Kind
    target: str
    """Address, host name or command line, shortened."""
    frame: str | None
    """``file:line in function`` of the agent; ``None`` where only library code was on the stack."""
    thread: str

    @classmethod
    def here(cls, egress: Egress) -> BlockedCall:
        """*egress* as attempted by the calling thread, right now."""
        return cls(egress.kind, egress.target, agent_frame(), threading.current_thread().name)

    def is_to(self, hosts: Iterable[str]) -> bool:
        """Whether it would have gone to one of *hosts*."""
        return self.kind != "spawn" and is_of_hosts(f"//{self.target}", hosts)

    def error(self) -> LiveCallBlocked:
        """The exception to raise in the caller, with this value as its divergence."""
        place = self.frame or f"thread {self.thread}"
        deed = _DEED[self.kind].format(self.target)
        return LiveCallBlocked(f"{place}: {deed} is refused in replay; {_REMEDY[self.kind]}", self)

    def warning(self) -> str:
        """What is said when it happens in a run that is recorded."""
        place = self.frame or f"thread {self.thread}"
        deed = _DEED[self.kind].format(self.target)
        return f"{place}: {deed} is not recorded, and a replay will refuse it; {_REMEDY[self.kind]}"

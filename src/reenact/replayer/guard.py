"""The guard: refuses connections, name lookups and new processes that bypass the seams in replay.

It listens to CPython's audit events, so it works in every thread, executor and event loop, and in forks; a
child program is refused before it starts. Libraries may swallow or rewrap the exception, so the guard keeps
every refusal. It catches mistakes; it is no sandbox. It cannot see sockets that C code opens itself, unless
``seams.native`` knows the library, and bytes on a connection that was opened before. The fence around a
replayed command sees the first.
"""

from __future__ import annotations

import os
import socket
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import wraps
from importlib import import_module
from os import getpid
from threading import Lock
from types import ModuleType
from typing import Any, Final, Self

import msgspec

from reenact.boundary import NATIVE_CALL, NATIVE_CONNECT, SPAWNED_CHILD, hear_audit_events, outside
from reenact.errors import LiveCallBlocked
from reenact.library import asking_module, is_library
from reenact.process_state import attached_for_guards, open_guards, open_watches, suspended_guards_var
from reenact.replayer.allow import Allow
from reenact.replayer.egress import (
    KINDS,
    NEW_INTERPRETER,
    READERS,
    WORKER,
    Connect,
    Egress,
    Kind,
    Spawn,
    connected_ports,
    connections_since,
    held_sockets,
    may_connect,
)
from reenact.replayer.frames import agent_frame
from reenact.store.durable import move_up
from reenact.volatile.beside import is_of_hosts

_PIPE_BYTES: Final = 64 * 1024


class ForkReports:
    """A pipe from every fork back to the process that opened it.

    A fork inherits the guard, but notes refusals in its own memory, so it reports them through the pipe. A
    report is lost if the pipe is full (64 KiB) or the child outlives the guard.
    """

    def __init__(self) -> None:
        self._pipe: tuple[int, int] | None = None
        self._home_pid = 0
        self._unfinished = b""
        self._reading = Lock()

    def open(self) -> None:
        self._home_pid = getpid()
        reading, writing = os.pipe()
        self._pipe = move_up(reading), move_up(writing)
        for end in self._pipe:
            os.set_blocking(end, False)

    def close(self) -> None:
        with self._reading:
            pipe, self._pipe = self._pipe, None
        for end in pipe or ():
            with suppress(OSError):  # the program has closed it
                os.close(end)

    def send(self, call: BlockedCall) -> None:
        """In a fork: send *call* to the parent, without waiting."""
        if self._pipe and getpid() != self._home_pid:
            with suppress(OSError):  # it is full, or the program has closed it
                os.write(self._pipe[1], msgspec.json.encode(call) + b"\n")

    def receive(self) -> list[BlockedCall]:
        """What children have sent since the last call."""
        with self._reading:
            lines = (self._unfinished + self._read()).split(b"\n")
            self._unfinished = lines.pop()
        return [msgspec.json.decode(line, type=BlockedCall) for line in lines]

    def _read(self) -> bytes:
        if self._pipe and getpid() == self._home_pid:
            with suppress(OSError):  # nothing has come, or the program has closed it
                return os.read(self._pipe[0], _PIPE_BYTES)
        return b""


def apply_always() -> bool:
    """Guard every context."""
    return True


class Guard:
    """Refuses what would leave the process while it is open; several may be open at once.

    *applies* is called in the thread and context of each attempt; if it cannot tell, as in an executor's
    worker, it should return true. *on_blocked* runs right before the refusal is raised, in the same thread.
    For the refusals of a forked child it runs when :attr:`blocked` is next read, at the latest on close.
    """

    def __init__(
        self,
        allow: Allow | None = None,
        applies: Callable[[], bool] = apply_always,
        on_blocked: Callable[[BlockedCall], None] | None = None,
        redact: Callable[[Sequence[str]], list[str]] = list,
    ) -> None:
        """*redact* removes secrets from the arguments of a program before they are reported."""
        self._allow = allow or Allow()
        self._applies = applies
        self._on_blocked = on_blocked
        self._redact = redact
        self._blocked: list[BlockedCall] = []
        self._forks = ForkReports()

    @property
    def blocked(self) -> list[BlockedCall]:
        """Every refusal so far, even if the agent swallowed the exception."""
        self._collect()
        return list(self._blocked)

    @property
    def counts(self) -> dict[Kind, int]:
        """The number of refusals of each kind."""
        kinds = [call.kind for call in self.blocked]
        return {kind: kinds.count(kind) for kind in KINDS}

    def judge(self, egress: Egress) -> None:
        """Raise :class:`LiveCallBlocked` if *egress* must not happen here."""
        if self in suspended_guards_var.get() or not self._applies() or self._allow.permits(egress):
            return
        shown = Spawn(tuple(self._redact(egress.argv))) if isinstance(egress, Spawn) else egress
        call = BlockedCall.of_caller(shown)
        self._note(call)
        self._forks.send(call)
        raise call.error()

    def _note(self, call: BlockedCall) -> None:
        self._blocked.append(call)
        if self._on_blocked:
            self._on_blocked(call)

    def _collect(self) -> None:
        for call in self._forks.receive():
            self._note(call)

    def __enter__(self) -> Self:
        with open_guards.lock:
            if not open_guards.entries:
                _attach()
            if self not in open_guards.entries:
                self._forks.open()
            open_guards.add(self)
        return self

    def __exit__(self, *_: object) -> None:
        with open_guards.lock:
            open_guards.remove(self)
            if not open_guards.entries:
                attached_for_guards.close()
        if self not in open_guards.entries:
            self._collect()
            self._forks.close()


@contextmanager
def suspend_guards() -> Iterator[None]:
    """Suspend every open guard in the calling task: for what the user allowed, and for our own work.

    This is a context variable: tasks and ``asyncio.to_thread`` inherit it, a bare ``Thread``,
    ``Executor.submit`` or ``run_in_executor`` only if they run in a copied context.
    """
    token = suspended_guards_var.set((*suspended_guards_var.get(), *open_guards.entries))
    try:
        yield
    finally:
        suspended_guards_var.reset(token)


@contextmanager
def run_unguarded() -> Iterator[None]:
    """Run the block outside the run, with every guard suspended."""
    with outside(), suspend_guards():
        yield


class Watch:
    """Reports what a :class:`Guard` would refuse, without refusing it: for a run that is recorded.

    Each target is reported once. Connections that C libraries make are reported when the watch ends: on Linux
    those that are still open, and those that ``reenact record`` has seen; elsewhere and for the rest by the
    libraries that were imported.
    """

    def __init__(
        self,
        allow: Allow | None,
        applies: Callable[[], bool],
        on_seen: Callable[[str], None],
        seen_outside: Callable[[], Mapping[str, Connect]] = dict,
    ) -> None:
        """*seen_outside* gives the connections of this process that another one has seen, by socket."""
        self._allow = allow or Allow()
        self._applies = applies
        self._on_seen = on_seen
        self._seen_outside = seen_outside
        self._warned: set[tuple[Kind, str]] = set()
        self.foreign_libraries: set[str] = set()
        """C libraries that the agent's own code has loaded."""
        self._known_ports: set[int] = set()
        self._unseen_ports: set[int] = set()
        """Those of the known ports to which code of the run connected without a seam."""

    def look(self, egress: Egress, client: str | None = None) -> None:
        """Report *egress*; *client* is the name of a client in C."""
        if isinstance(egress, Connect):
            self._known_ports.add(egress.port)
        key = (egress.kind, egress.target)
        if not self._applies():
            return
        if isinstance(egress, Connect):
            self._unseen_ports.add(egress.port)
        if key in self._warned or len(self._warned) >= _MOST_WARNED:
            return
        if not self._allow.permits(egress):
            self._warned.add(key)
            self._on_seen(BlockedCall.of_caller(egress).warning(client))

    def talks_with(self, pid: int) -> bool:
        """Whether this process has a connection with the program *pid* that no seam records."""
        return not held_sockets() <= self._sockets_before and any(
            port not in self._known_ports or port in self._unseen_ports for port in connected_ports(pid)
        )

    def __enter__(self) -> Self:
        open_watches.add(self)
        hear_audit_events(READERS, _listen)
        hear_audit_events(["ctypes.dlopen"], _note_foreign_library)
        self._sockets_before = held_sockets()
        self._clients_before = _NATIVE_CLIENTS & sys.modules.keys()
        return self

    def __exit__(self, *_: object) -> None:
        open_watches.remove(self)
        for name in sorted(_NATIVE_CLIENTS & sys.modules.keys() - self._clients_before):
            self._on_seen(
                f"{name} was imported, which connects outside Python; its traffic is recorded only inside "
                "a @reenact.tool"
            )
        for name in sorted(filter(may_connect, self.foreign_libraries)):
            self._on_seen(
                f"{name} was loaded by ctypes and may connect outside Python; its traffic is recorded only "
                "inside a @reenact.tool"
            )
        if "uvloop" in sys.modules:  # it connects outside Python, too, also for recorded clients
            return
        found = {**self._seen_outside(), **connections_since(self._sockets_before)}
        made = (target for socket, target in found.items() if socket not in self._sockets_before)
        for target in dict.fromkeys(made):
            if target.port not in self._known_ports and not self._allow.permits(target):
                self._on_seen(
                    f"a connection to {target.target} was made by a C library, outside Python; its traffic "
                    "is recorded only inside a @reenact.tool"
                )


def _note_foreign_library(_: str, arguments: tuple[object, ...]) -> None:
    name = arguments[0]
    if not open_watches.entries or not isinstance(name, str | bytes | os.PathLike):
        return
    asking = sys.modules.get(asking_module(_CTYPES) or "")
    if asking is not None and not is_library(str(getattr(asking, "__file__", ""))):
        for watch in open_watches.entries:
            watch.foreign_libraries.add(os.fsdecode(name))


_CTYPES: Final = frozenset({"ctypes", "ctypes.util"})
_MOST_WARNED: Final = 20
_NATIVE_CLIENTS: Final = frozenset(
    {"MySQLdb", "aerospike", "couchbase", "glide", "ibm_db", "livekit.rtc", "pylibmc", "pyodbc", "zenoh"}
)
"""Clients in native code that ``seams.native`` cannot patch; at the end their connections may be closed."""
_OURS: Final = frozenset({NEW_INTERPRETER, WORKER})
_FOR_RECORDINGS: Final = frozenset({NATIVE_CALL, SPAWNED_CHILD})
"""What a guard does not judge: gRPC, and a child that it refuses when its program starts."""


def _attach() -> None:
    attached_for_guards.enter_context(raise_missing_events())
    hear_audit_events(READERS, _listen)


def _listen(event: str, arguments: tuple[Any, ...]) -> None:
    if (open_guards.entries or open_watches.entries) and (egress := READERS[event](arguments)):
        # Our own events are raised for guards, also after their run; a recording does not need them.
        client = str(arguments[0]) if event in (NATIVE_CALL, NATIVE_CONNECT) else None
        for watch in open_watches.entries if event not in _OURS else ():
            watch.look(egress, client)
        if event in _FOR_RECORDINGS:
            return
        try:
            for guard in open_guards.entries:
                guard.judge(egress)
        except LiveCallBlocked:
            if event == "socket.connect":
                # The standard library closes a socket it could not connect only after an OSError.
                arguments[0].close()
            raise


_DEED: Final[Mapping[Kind, str]] = {
    "connect": "connecting to {}",
    "dns": "looking up {}",
    "spawn": "running `{}`",
}
_REMEDY: Final[Mapping[Kind, str]] = {
    "connect": "do it inside a @reenact.tool, or allow its port on this host or its Unix socket",
    "dns": "do it inside a @reenact.tool",
    "spawn": "do it inside a @reenact.tool, or allow its command (multiprocessing: use threads, or record "
    "the whole command with `reenact record`)",
}


@dataclass(frozen=True, slots=True)
class BlockedCall:
    """What was refused, and which code tried it."""

    kind: Kind
    target: str
    """Address, host name or command line, shortened."""
    frame: str | None
    """``file:line in function`` of the agent; ``None`` if only library code was on the stack."""
    thread: str

    @classmethod
    def of_caller(cls, egress: Egress) -> BlockedCall:
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

    def warning(self, client: str | None = None) -> str:
        """The warning for a run that is recorded; *client* is the name of a client in C that connects."""
        place = self.frame or f"thread {self.thread}"
        if client is not None:
            return (
                f"{place}: {client} asks {self.target} outside Python; this is not recorded, and a replay "
                "will not answer it; do it inside a @reenact.tool"
            )
        deed = _DEED[self.kind].format(self.target)
        return f"{place}: {deed} is not recorded, and a replay will refuse it; {_REMEDY[self.kind]}"


if sys.platform != "win32":
    import _posixsubprocess

_SENDERS: Final = {
    "connect": "socket.connect",
    "connect_ex": "socket.connect",
    "sendto": "socket.sendto",
    "sendmsg": "socket.sendmsg",
}


@contextmanager
def raise_missing_events() -> Iterator[None]:
    """In the block, raise audit events where CPython raises none, or too late; not reentrant.

    ``multiprocessing`` starts its workers without ``subprocess``, in Python 3.11 without an audit event.
    ``socket.connect(("a.name", 443))`` asks the name server before it raises its event. Another interpreter
    in this process does not call our hook.
    """
    with ExitStack() as undo:
        for name, event in _SENDERS.items():
            undo.callback(_replace(socket.socket, name, _announce(getattr(socket.socket, name), event)))
        if sys.platform != "win32":
            undo.callback(
                _replace(_posixsubprocess, "fork_exec", _announce_spawn(_posixsubprocess.fork_exec))
            )
        for module in _interpreters():
            undo.callback(_replace(module, "create", _announce_interpreter(module.create)))
        yield


def _interpreters() -> Iterator[ModuleType]:
    """The module that creates interpreters, under the names that it has had so far."""
    for name in ("_xxsubinterpreters", "_interpreters"):
        with suppress(ImportError):
            yield import_module(name)


def _announce_interpreter(create: Callable[..., object]) -> Callable[..., object]:
    @wraps(create)
    def announced(*arguments: object, **options: object) -> object:
        sys.audit(NEW_INTERPRETER)
        return create(*arguments, **options)

    return announced


def _announce(method: Callable[..., object], event: str) -> Callable[..., object]:
    @wraps(method)
    def announced(sock: socket.socket, *arguments: object) -> object:
        # sendmsg names a destination in its fourth argument only, the others in their last.
        if arguments and (event != "socket.sendmsg" or len(arguments) == 4):
            sys.audit(event, sock, arguments[-1])
        return method(sock, *arguments)

    return announced


def _announce_spawn(fork_exec: Callable[..., int]) -> Callable[..., int]:
    @wraps(fork_exec)
    def announced(argv: object, executables: Any, *rest: object) -> int:
        sys.audit(WORKER, executables[0], argv, None, None)
        return fork_exec(argv, executables, *rest)

    return announced


def _replace(owner: object, name: str, replacement: object) -> Callable[[], None]:
    """Set the attribute; the returned function restores the old state, also if it was only inherited."""
    inherited = name not in vars(owner)
    original = getattr(owner, name)
    setattr(owner, name, replacement)
    return lambda: delattr(owner, name) if inherited else setattr(owner, name, original)

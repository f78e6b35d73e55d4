"""Nothing goes live in replay: connections, name lookups and new processes that bypass the seams stop here.

The guard listens to CPython's audit events, so it holds in every thread, executor and event loop, and in
forks; a child program is refused before it starts. Libraries may swallow or rewrap what it raises, hence it
keeps every refusal. It is a net for mistakes, not a sandbox. What it cannot see: sockets that C code opens
by itself (gRPC, pycurl, libpq), calls through ``ctypes``, and bytes on a connection opened before. The fence
around a replayed command sees the first two.
"""

from __future__ import annotations

import os
import socket
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from functools import wraps
from importlib import import_module
from os import getpid
from threading import Lock
from types import ModuleType
from typing import Any, Final, Self

import msgspec

from reenact.boundary import hear_audit_events, outside
from reenact.errors import LiveCallBlocked
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
    connections_since,
    held_sockets,
    talked_ports,
)
from reenact.replayer.frames import agent_frame
from reenact.volatile.beside import is_of_hosts

_PIPE_BYTES: Final = 64 * 1024


class ForkReports:
    """A pipe, while open, from every fork of the opening process back to it.

    A fork inherits the guard and is stopped like its parent, but what it notes it notes in its own memory. A
    report is lost when the pipe is full (64 KiB) or the child outlives the guard.
    """

    def __init__(self) -> None:
        self._pipe: tuple[int, int] | None = None
        self._home_pid = 0
        self._unfinished = b""
        self._reading = Lock()

    def open(self) -> None:
        self._home_pid = getpid()
        self._pipe = os.pipe()
        for end in self._pipe:
            os.set_blocking(end, False)

    def close(self) -> None:
        with self._reading:
            pipe, self._pipe = self._pipe, None
        for end in pipe or ():
            os.close(end)

    def send(self, call: BlockedCall) -> None:
        """Hand *call* to the parent without waiting for it; nothing to do in the parent itself."""
        if self._pipe and getpid() != self._home_pid:
            with suppress(BlockingIOError):
                os.write(self._pipe[1], msgspec.json.encode(call) + b"\n")

    def receive(self) -> list[BlockedCall]:
        """What children have sent since the last time."""
        with self._reading:
            lines = (self._unfinished + self._read()).split(b"\n")
            self._unfinished = lines.pop()
        return [msgspec.json.decode(line, type=BlockedCall) for line in lines]

    def _read(self) -> bytes:
        if self._pipe and getpid() == self._home_pid:
            with suppress(BlockingIOError):
                return os.read(self._pipe[0], _PIPE_BYTES)
        return b""


_guards: tuple[Guard, ...] = ()
"""Those that are open; replaced, never changed, because the hook reads it without a lock."""
_watches: tuple[Watch, ...] = ()
"""The same for those that only look."""
_changing = Lock()
_attached = ExitStack()
_suspended: ContextVar[tuple[Guard, ...]] = ContextVar("reenact.replayer.guard.suspended", default=())


def always() -> bool:
    """Every context is guarded."""
    return True


class Guard:
    """Refuses what would leave the process while it is open; several may be open at once.

    *applies* is asked in the thread and context of each attempt; where it cannot tell, as in an executor's
    worker, it should say yes. *on_blocked* runs right before the refusal is raised, in the same thread; what
    a forked child was refused is passed to it when :attr:`blocked` is next read, at the latest on close.
    """

    def __init__(
        self,
        allow: Allow | None = None,
        applies: Callable[[], bool] = always,
        on_blocked: Callable[[BlockedCall], None] | None = None,
        redact: Callable[[Sequence[str]], list[str]] = list,
    ) -> None:
        """*redact* takes the secrets out of the arguments of a program before they are told to anybody."""
        self._allow = allow or Allow()
        self._applies = applies
        self._on_blocked = on_blocked
        self._redact = redact
        self._blocked: list[BlockedCall] = []
        self._forks = ForkReports()

    @property
    def blocked(self) -> list[BlockedCall]:
        """Every refusal so far, whatever became of the exception."""
        self._collect()
        return list(self._blocked)

    @property
    def counts(self) -> dict[Kind, int]:
        """Refusals by kind; a kind without any counts zero."""
        kinds = [call.kind for call in self.blocked]
        return {kind: kinds.count(kind) for kind in KINDS}

    @contextmanager
    def suspended(self) -> Iterator[None]:
        """Let the calling task go live, for a tool that is passed through.

        It travels like any context variable: into tasks and ``asyncio.to_thread``, but not into a bare
        ``Thread``, ``Executor.submit`` or ``run_in_executor`` unless these are given a copied context.
        """
        token = _suspended.set((*_suspended.get(), self))
        try:
            yield
        finally:
            _suspended.reset(token)

    def judge(self, egress: Egress) -> None:
        """Raise :class:`LiveCallBlocked` if *egress* must not happen here."""
        if self in _suspended.get() or not self._applies() or self._allow.permits(egress):
            return
        told = Spawn(tuple(self._redact(egress.argv))) if isinstance(egress, Spawn) else egress
        call = BlockedCall.here(told)
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
        global _guards
        with _changing:
            if not _guards:
                _attach()
            if self not in _guards:
                self._forks.open()
            _guards = (*_guards, self)
        return self

    def __exit__(self, *_: object) -> None:
        global _guards
        with _changing:
            position = _guards.index(self)
            _guards = _guards[:position] + _guards[position + 1 :]
            if not _guards:
                _attached.close()
        if self not in _guards:
            self._collect()
            self._forks.close()


@contextmanager
def all_suspended() -> Iterator[None]:
    """Let the calling task past every guard: for what the user allowed, and what is no part of a run."""
    token = _suspended.set((*_suspended.get(), *_guards))
    try:
        yield
    finally:
        _suspended.reset(token)


@contextmanager
def aside() -> Iterator[None]:
    """Let the calling task do in the midst of a run what is no part of it, and what no guard refuses."""
    with outside(), all_suspended():
        yield


class Watch:
    """Tells of what a :class:`Guard` would refuse, and refuses nothing: for a run that is recorded.

    Each target is told once. What C libraries connect to past Python is found when the watch ends, on Linux.
    """

    def __init__(
        self, allow: Allow | None, applies: Callable[[], bool], on_seen: Callable[[str], None]
    ) -> None:
        self._allow = allow or Allow()
        self._applies = applies
        self._on_seen = on_seen
        self._warned: set[tuple[Kind, str]] = set()
        self._known_ports: set[int] = set()
        self._unseen_ports: set[int] = set()
        """Of those: to which code of the run's connected past all seams."""

    def look(self, egress: Egress) -> None:
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
            self._on_seen(BlockedCall.here(egress).warning())

    def talks_with(self, pid: int) -> bool:
        """Whether this process is connected with the program *pid*, and what they say goes past all seams."""
        return not held_sockets() <= self._sockets_before and any(
            port not in self._known_ports or port in self._unseen_ports for port in talked_ports(pid)
        )

    def __enter__(self) -> Self:
        global _watches
        with _changing:
            _watches = (*_watches, self)
            hear_audit_events(READERS, _listen)
        self._sockets_before = held_sockets()
        return self

    def __exit__(self, *_: object) -> None:
        global _watches
        with _changing:
            _watches = tuple(watch for watch in _watches if watch is not self)
        if "uvloop" in sys.modules:  # which connects past Python too, for the clients that are recorded
            return
        for target in connections_since(self._sockets_before):
            if target.port not in self._known_ports and not self._allow.permits(target):
                self._on_seen(
                    f"a connection to {target.target} was made by a C library, outside Python; its traffic "
                    "is recorded only inside a @reenact.tool"
                )


_MOST_WARNED: Final = 20
_OURS: Final = frozenset({NEW_INTERPRETER, WORKER})


def _attach() -> None:
    _attached.enter_context(audited())
    hear_audit_events(READERS, _listen)


def _listen(event: str, arguments: tuple[Any, ...]) -> None:
    if (_guards or _watches) and (egress := READERS[event](arguments)):
        # What is announced for guards, whose run may be over, is none of a recording's business.
        for watch in _watches if event not in _OURS else ():
            watch.look(egress)
        try:
            for guard in _guards:
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


if sys.platform != "win32":
    import _posixsubprocess

_SENDERS: Final = {
    "connect": "socket.connect",
    "connect_ex": "socket.connect",
    "sendto": "socket.sendto",
    "sendmsg": "socket.sendmsg",
}


@contextmanager
def audited() -> Iterator[None]:
    """Raise audit events where CPython raises none, or too late, until left; enter it once at a time.

    ``multiprocessing`` starts its spawned workers below ``subprocess``, in Python 3.11 unannounced,
    ``socket.connect(("a.name", 443))`` asks the name server first and announces the connection afterwards,
    and another interpreter in this process hears of no hook.
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
    """What makes further interpreters, by the names it has had so far."""
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
    """Set the attribute; the function returned puts back what was there, be it only inherited."""
    inherited = name not in vars(owner)
    original = getattr(owner, name)
    setattr(owner, name, replacement)
    return lambda: delattr(owner, name) if inherited else setattr(owner, name, original)

"""Audit events where CPython raises none, or raises it too late to stop anything.

``multiprocessing`` starts its spawned workers below ``subprocess``, in Python 3.11 unannounced,
``socket.connect(("a.name", 443))`` asks the name server first and announces the connection afterwards, and
another interpreter in this process hears of no hook. While :func:`audited` is entered, all of them announce
themselves first, with an event the guard knows.
"""

from __future__ import annotations

import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import wraps
from importlib import import_module
from types import ModuleType
from typing import Any, Final

from reenact.replayer.egress import NEW_INTERPRETER, WORKER

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
    """Raise the missing events until left; enter it once at a time."""
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
    def announced(argv: Any, executables: Any, *rest: object) -> int:
        sys.audit(WORKER, executables[0], argv, None, None)
        return fork_exec(argv, executables, *rest)

    return announced


def _replace(owner: object, name: str, replacement: object) -> Callable[[], None]:
    """Set the attribute; the function returned puts back what was there, be it only inherited."""
    inherited = name not in vars(owner)
    original = getattr(owner, name)
    setattr(owner, name, replacement)
    return lambda: delattr(owner, name) if inherited else setattr(owner, name, original)

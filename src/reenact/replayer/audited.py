"""Audit events where CPython raises none, or raises it too late to stop anything.

``multiprocessing`` starts its spawned workers below ``subprocess``, in Python 3.11 unannounced, and
``socket.connect(("a.name", 443))`` asks the name server first and announces the connection afterwards.
While :func:`audited` is entered, both announce themselves first, with the event the guard knows.
"""

from __future__ import annotations

import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import wraps
from typing import Any, Final

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
            undo.callback(_replace(socket.socket, name, _announcing(getattr(socket.socket, name), event)))
        if sys.platform != "win32":
            undo.callback(
                _replace(_posixsubprocess, "fork_exec", _announcing_spawn(_posixsubprocess.fork_exec))
            )
        yield


def _announcing(method: Callable[..., Any], event: str) -> Callable[..., Any]:
    @wraps(method)
    def announced(sock: socket.socket, *arguments: Any) -> Any:
        # sendmsg names a destination in its fourth argument only, the others in their last.
        if arguments and (event != "socket.sendmsg" or len(arguments) == 4):
            sys.audit(event, sock, arguments[-1])
        return method(sock, *arguments)

    return announced


def _announcing_spawn(fork_exec: Callable[..., int]) -> Callable[..., int]:
    @wraps(fork_exec)
    def announced(argv: Any, executables: Any, *rest: Any) -> int:
        sys.audit("subprocess.Popen", executables[0], argv, None, None)
        return fork_exec(argv, executables, *rest)

    return announced


def _replace(owner: object, name: str, replacement: object) -> Callable[[], None]:
    """Set the attribute; the function returned puts back what was there, be it only inherited."""
    inherited = name not in vars(owner)
    original = getattr(owner, name)
    setattr(owner, name, replacement)
    return lambda: delattr(owner, name) if inherited else setattr(owner, name, original)

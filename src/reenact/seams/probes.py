"""Connections that carry nothing: all that the agent asks is whether somebody answers there.

So programs wait for a server that they have started, and see whether they are on line. In replay nobody is
there, and the recording answers. Once something is to go over such a connection it is one like any other:
nothing of it is recorded, which is told, and replay refuses it.
"""

from __future__ import annotations

import _socket
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final, NamedTuple
from weakref import WeakKeyDictionary

from reenact.boundary import Call, Context, crossing, current_lane
from reenact.seams.http.exchange import is_any_under_way
from reenact.seams.patches import Patch
from reenact.seams.serving import is_served_here

_asking: Final[dict[Context, Callable[[str, int], bool]]] = {}
"""By the identity of an open run's context: whether who is at a host and port is asked as a call."""


@contextmanager
def asked_by(context: Context, is_asked: Callable[[str, int], bool]) -> Iterator[None]:
    """Have the run of *context* asked whether somebody is at a host and port where it *is_asked*."""
    _asking[context] = is_asked
    try:
        yield
    finally:
        del _asking[context]


class _State(NamedTuple):
    address: Any
    is_connected: bool


_probed: Final[WeakKeyDictionary[socket.socket, _State]] = WeakKeyDictionary()


def _connect(original: Callable[..., None]) -> Callable[..., None]:
    def connect(self: socket.socket, address: object, /) -> None:
        call = _probe(self, address)
        if call is None:
            original(self, address)
            return
        with crossing(call) as step:
            if step.live:
                original(self, address)
                step.answer = 0
        _hold(self, address, is_connected=step.live)

    return connect


def _connect_ex(original: Callable[..., int]) -> Callable[..., int]:
    def connect_ex(self: socket.socket, address: object, /) -> int:
        call = _probe(self, address)
        if call is None:
            return original(self, address)
        with crossing(call) as step:
            if step.live:
                step.answer = original(self, address)
        if step.answer == 0:
            _hold(self, address, is_connected=step.live)
        return int(step.answer)

    return connect_ex


PATCHES: Final = [Patch(socket.socket, "connect", _connect), Patch(socket.socket, "connect_ex", _connect_ex)]


def _probe(connecting: socket.socket, address: Any) -> Call | None:
    """The call that a connection is; ``None`` where it is part of another, or no question of the run's."""
    lane = current_lane()
    if lane is None or lane.within is not None or type(connecting) is not socket.socket:
        return None
    is_stream = (
        connecting.family in (socket.AF_INET, socket.AF_INET6) and connecting.type == socket.SOCK_STREAM
    )
    if not is_stream or connecting.gettimeout() == 0 or is_any_under_way(lane.context):
        return None
    host, port = address[:2]
    is_asked = _asking.get(lane.context)
    if is_asked is None or is_served_here(host, port) or not is_asked(host, port):
        return None
    url = f"tcp://{f'[{host}]' if ':' in host else host}:{port}"
    return Call("network", f"CONNECT {url}", {"connect": url}, is_json=True)


def _hold(connected: socket.socket, address: object, *, is_connected: bool) -> None:
    _probed[connected] = _State(address, is_connected)
    connected.__class__ = _Probed


def _begin_use(connected: socket.socket) -> None:
    """Something is to go over the connection: from now on it is none of ours."""
    state = _probed.pop(connected)
    connected.__class__ = socket.socket
    sys.audit("socket.connect", connected, state.address)  # where a guard refuses it, or a watch tells
    if not state.is_connected:
        _socket.socket.connect(connected, state.address)


def _using(name: str) -> Callable[..., object]:
    def use(self: socket.socket, *args: object, **options: object) -> object:
        _begin_use(self)
        return getattr(self, name)(*args, **options)

    return use


class _Probed(socket.socket):
    """A socket that is connected, or was when it was recorded, as long as nothing goes over it."""

    __slots__ = ()

    def shutdown(self, how: int, /) -> None:
        if _probed[self].is_connected:
            super().shutdown(how)

    def getpeername(self) -> object:
        return super().getpeername() if _probed[self].is_connected else _probed[self].address


for _name in (
    *("send", "sendall", "sendfile", "sendmsg", "sendto", "makefile", "detach", "dup"),
    *("recv", "recv_into", "recvfrom", "recvfrom_into", "recvmsg", "recvmsg_into"),
):
    setattr(_Probed, _name, _using(_name))

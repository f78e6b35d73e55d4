"""Probes: connections that only test whether a server accepts them, and carry no data.

So programs wait for a server that they have started, or check that they are online. In replay there is no
server, and the recording answers. As soon as data is to go over such a connection, it is treated as any other
connection: its data is not recorded, the run notes that, and replay refuses it.
"""

from __future__ import annotations

import _socket
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final, NamedTuple

from reenact.boundary import Call, Context, crossing, current_lane
from reenact.process_state import probe_judges, probed_sockets
from reenact.seams.http.exchange import is_any_under_way
from reenact.seams.patches import Patch
from reenact.seams.serving import is_served_here


@contextmanager
def record_probes(context: Context, is_asked: Callable[[str, int], bool]) -> Iterator[None]:
    """In the block, a probe by the run of *context* is a call if *is_asked* says so for its host and port."""
    probe_judges[context] = is_asked
    try:
        yield
    finally:
        del probe_judges[context]


class Probe(NamedTuple):
    """A connection over which no data has gone yet."""

    address: Any
    is_connected: bool


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


def _probe(connecting: socket.socket, address: Any) -> Call[int] | None:
    """The call for a probe; ``None`` if it is part of another call or not to be recorded."""
    lane = current_lane()
    if lane is None or lane.within is not None or type(connecting) is not socket.socket:
        return None
    is_stream = (
        connecting.family in (socket.AF_INET, socket.AF_INET6) and connecting.type == socket.SOCK_STREAM
    )
    if not is_stream or connecting.gettimeout() == 0 or is_any_under_way(lane.context):
        return None
    host, port = address[:2]
    is_asked = probe_judges.get(lane.context)
    if is_asked is None or is_served_here(host, port) or not is_asked(host, port):
        return None
    url = f"tcp://{f'[{host}]' if ':' in host else host}:{port}"
    return Call("network", f"CONNECT {url}", {"connect": url}, is_json=True)


def _hold(connected: socket.socket, address: object, *, is_connected: bool) -> None:
    probed_sockets[connected] = Probe(address, is_connected)
    connected.__class__ = _Probed


def _begin_use(connected: socket.socket) -> None:
    """Turn the probe into an ordinary connection, because data is to go over it."""
    state = probed_sockets.pop(connected)
    connected.__class__ = socket.socket
    sys.audit("socket.connect", connected, state.address)  # the audit hooks refuse it, or note it
    if not state.is_connected:
        _socket.socket.connect(connected, state.address)


def _begin_use_and_call(name: str) -> Callable[..., object]:
    def use(self: socket.socket, *args: object, **options: object) -> object:
        _begin_use(self)
        return getattr(self, name)(*args, **options)

    return use


class _Probed(socket.socket):
    """A socket that is connected, or was during recording, while no data has gone over it."""

    __slots__ = ()

    def shutdown(self, how: int, /) -> None:
        if probed_sockets[self].is_connected:
            super().shutdown(how)

    def getpeername(self) -> object:
        return super().getpeername() if probed_sockets[self].is_connected else probed_sockets[self].address


for _name in (
    *("send", "sendall", "sendfile", "sendmsg", "sendto", "makefile", "detach", "dup"),
    *("recv", "recv_into", "recvfrom", "recvfrom_into", "recvmsg", "recvmsg_into"),
):
    setattr(_Probed, _name, _begin_use_and_call(_name))

"""System calls that the kernel holds up until we have decided about them: Linux, by seccomp.

A process installs the filter in itself before it becomes a program; it holds for that program and for all it
starts. Whoever is handed the listener over is asked about each call. When nobody has it any more, they fail.
"""

from __future__ import annotations

import ctypes
import os
import platform
import struct
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from fcntl import ioctl
from functools import cache
from resource import RLIMIT_NOFILE, getrlimit
from socket import recv_fds, send_fds, socket
from typing import Any, Final, NamedTuple, Self


class _Machine(NamedTuple):
    """What differs from one kind of processor to the other."""

    audit: int
    seccomp: int
    socket: int
    connect: int
    sendto: int
    sendmsg: int
    sendmmsg: int
    small: tuple[int, ...]
    """The calls of 32-bit programs that make sockets, which are refused."""


_MACHINES: Final = {
    "x86_64": _Machine(0xC000003E, 317, 41, 42, 44, 46, 307, (102, 359)),
    "aarch64": _Machine(0xC00000B7, 277, 198, 203, 206, 211, 269, (281,)),
}
_FAMILIES: Final = (0, 1, 2, 10, 16, 38)
"""Sockets that can be made: Unix, IPv4, IPv6, and the kernel's own; packets past IP, say, cannot."""
_OTHER_NUMBERS: Final = 0x40000000
"""From here on the same calls have other numbers (x32), which no program needs."""
_IO_URING_SETUP: Final = 425
_INSTALLED: Final = b"+"

_SET_CHILD_SUBREAPER: Final = 36
_SET_NO_NEW_PRIVS: Final = 38
_SET_FILTER: Final = 1
_WITH_LISTENER: Final = 8
_RECEIVE: Final = 0xC0502100
_RESPOND: Final = 0xC0182101
_CONTINUE: Final = 1

_NOTIFICATION: Final = struct.Struct("=QIIiIQ6Q")
_RESPONSE: Final = struct.Struct("=QqiI")
_NAME_IN_MESSAGE: Final = struct.Struct("=QI")
"""How a ``msghdr`` begins: where the address stands, and its size."""
_MESSAGE_BYTES: Final = 64
_MAX_MESSAGES: Final = 1024
_MAX_ADDRESS_BYTES: Final = 128
_LAST_PLACE: Final = 2**63 - 1
"""Beyond is the kernel's own memory; a call that names it fails by itself."""

# The filter: what is done with a call, and the instructions that lead there.
_ALLOW: Final = 0x7FFF0000
_ASK: Final = 0x7FC00000
_NOT_THERE: Final = 0x00050000 | 38
_NO_SUCH_FAMILY: Final = 0x00050000 | 97
_NUMBER: Final = 0
_AUDIT: Final = 4
_DESCRIPTOR: Final = 16
_ADDRESS_OF_SENDTO: Final = 16 + 8 * 4


class HeldCall(NamedTuple):
    """A call that a process has made and that has not happened yet."""

    id: int
    pid: int
    number: int
    arguments: tuple[int, ...]

    def addresses(self) -> Iterator[bytes]:
        """The socket addresses it names; ``OSError`` where the process is gone, or not ours to read."""
        memory = os.open(f"/proc/{self.pid}/mem", os.O_RDONLY)
        try:
            for place, size in self._places(memory):
                if 0 < place <= _LAST_PLACE:
                    yield os.pread(memory, min(size, _MAX_ADDRESS_BYTES), place)
        finally:
            os.close(memory)

    def _places(self, memory: int) -> Iterator[tuple[int, int]]:
        machine, arguments = _machine(), self.arguments
        if self.number == machine.connect:
            yield arguments[1], arguments[2]
        elif self.number == machine.sendto:
            yield arguments[4], arguments[5]
        else:
            count = min(arguments[2], _MAX_MESSAGES) if self.number == machine.sendmmsg else 1
            for position in range(count):
                start = arguments[1] + position * _MESSAGE_BYTES
                yield _NAME_IN_MESSAGE.unpack(_read(memory, start))


def _read(memory: int, start: int) -> bytes:
    """How the message at *start* begins; with no name where nothing is there, and the call will fail."""
    if start > _LAST_PLACE:
        return bytes(_NAME_IN_MESSAGE.size)
    return os.pread(memory, _NAME_IN_MESSAGE.size, start).ljust(_NAME_IN_MESSAGE.size, b"\0")


class Listener:
    """Where the kernel asks."""

    def __init__(self, fd: int) -> None:
        self._fd = fd

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._fd)

    def fileno(self) -> int:
        return self._fd

    def next(self) -> HeldCall | None:
        """The next call; ``None`` where who made it has been interrupted."""
        notification = bytearray(_NOTIFICATION.size)
        try:
            ioctl(self._fd, _RECEIVE, notification)
        except OSError:
            return None
        call_id, pid, _, number, _, _, *arguments = _NOTIFICATION.unpack(notification)
        return HeldCall(call_id, pid, number, tuple(arguments))

    def let_go(self, call: HeldCall) -> None:
        """Let it happen."""
        self._respond(_RESPONSE.pack(call.id, 0, 0, _CONTINUE))

    def refuse(self, call: HeldCall, error: int) -> None:
        """Let it fail with *error*."""
        self._respond(_RESPONSE.pack(call.id, 0, -error, 0))

    def _respond(self, response: bytes) -> None:
        with suppress(OSError):  # nobody waits for it any more
            ioctl(self._fd, _RESPOND, response)


def is_known_machine() -> bool:
    """Whether we know how to ask the kernel; it may still refuse."""
    return sys.platform == "linux" and platform.machine() in _MACHINES


def hand_over(to: socket) -> None:
    """Hold up the calls of this process and of all it starts; the other end of *to* decides about them.

    To be called between fork and exec; afterwards nobody gets more rights by starting a program.
    """
    with suppress(OSError):  # the command runs all the same, and who listens hears nothing
        os.dup2(to.fileno(), _unasked_fd(), inheritable=False)
        with socket(fileno=_unasked_fd()) as handover:
            _libc().prctl(_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
            listener = int(_libc().syscall(_machine().seccomp, _SET_FILTER, _WITH_LISTENER, filter_program()))
            if listener >= 0:
                send_fds(handover, [_INSTALLED], [listener])
                os.close(listener)


def handed_over(by: socket) -> Listener | None:
    """The listener, from the other end of *by*; ``None`` if the kernel refused, or nobody was there."""
    _, listeners, _, _ = recv_fds(by, len(_INSTALLED), 1)
    return Listener(listeners[0]) if listeners else None


@contextmanager
def adopting_orphans() -> Iterator[None]:
    """In the block, processes below us stay so when their parents end; some kernels let us read no others."""
    _libc().prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    try:
        yield
    finally:
        _libc().prctl(_SET_CHILD_SUBREAPER, 0, 0, 0, 0)


@cache
def _unasked_fd() -> int:
    """Nobody is asked about messages by this descriptor: the listener travels there, before anybody listens.

    It is the last that a program gets, and closed when the program begins.
    """
    limit, _ = getrlimit(RLIMIT_NOFILE)
    return (min(limit, 1024) if limit > 0 else 1024) - 1


def _machine() -> _Machine:
    return _MACHINES[platform.machine()]


@cache
def _libc() -> Any:
    return ctypes.CDLL(None, use_errno=True)


@cache
def filter_program() -> Any:
    """The filter as the kernel reads it; made once, before a child is forked that needs it."""
    machine = _machine()
    small = [part for number in machine.small for part in (_skip_unless(number), _return(_NO_SUCH_FAMILY))]
    families = [part for family in _FAMILIES for part in (_skip_unless(family), _return(_ALLOW))]
    instructions = [
        *(_load(_AUDIT), _skip_unless(machine.audit), _skip(2 + len(small)), _load(_NUMBER), *small),
        _return(_ALLOW),
        _load(_NUMBER),
        *(_skip_below(_OTHER_NUMBERS), _return(_NOT_THERE)),
        *(_skip_unless(machine.socket, 2 + len(families)), _load(_DESCRIPTOR), *families),
        _return(_NO_SUCH_FAMILY),
        *(_skip_unless(machine.connect), _return(_ASK)),
        *(_skip_unless(machine.sendmmsg), _return(_ASK)),
        *(_skip_unless(machine.sendmsg, 4), _load(_DESCRIPTOR)),
        *(_skip_if(_unasked_fd()), _return(_ASK), _return(_ALLOW)),
        # What is handed to the kernel by way of a ring is not seen; programs do without where there is none.
        *(_skip_unless(_IO_URING_SETUP), _return(_NOT_THERE)),
        *(_skip_if(machine.sendto), _return(_ALLOW)),
        # Without an address it goes where the socket is connected to, which was asked about.
        *(_load(_ADDRESS_OF_SENDTO), _skip_if(0), _return(_ASK)),
        *(_load(_ADDRESS_OF_SENDTO + 4), _skip_if(0), _return(_ASK)),
        _return(_ALLOW),
    ]
    code = ctypes.create_string_buffer(b"".join(instructions))
    program = ctypes.create_string_buffer(struct.pack("@HP", len(instructions), ctypes.addressof(code)))
    program.code = code  # type: ignore[attr-defined]  # the kernel follows the address
    return program


def _load(offset: int) -> bytes:
    return _instruction(0x20, offset)


def _skip_if(value: int) -> bytes:
    """The next instruction is passed over where *value* was loaded."""
    return _instruction(0x15, value, if_true=1)


def _skip_unless(value: int, count: int = 1) -> bytes:
    """*count* instructions are passed over where another value was loaded."""
    return _instruction(0x15, value, if_false=count)


def _skip_below(value: int) -> bytes:
    """The next instruction is passed over where less than *value* was loaded."""
    return _instruction(0x35, value, if_false=1)


def _skip(count: int) -> bytes:
    return _instruction(0x05, count)


def _return(action: int) -> bytes:
    return _instruction(0x06, action)


def _instruction(code: int, value: int, *, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("=HBBI", code, if_true, if_false, value)

"""Seccomp notifications (Linux): the kernel suspends network system calls until we have decided about them.

A child process installs the filter between fork and exec; it applies to the program and to all its children.
The process that has the listener decides about each call. Once the listener is closed, such calls fail.
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
    """The system call numbers of a processor architecture."""

    audit: int
    seccomp: int
    socket: int
    connect: int
    sendto: int
    sendmsg: int
    sendmmsg: int
    small: tuple[int, ...]
    """The calls by which 32-bit programs create sockets; they are refused."""


_MACHINES: Final = {
    "x86_64": _Machine(0xC000003E, 317, 41, 42, 44, 46, 307, (102, 359)),
    "aarch64": _Machine(0xC00000B7, 277, 198, 203, 206, 211, 269, (281,)),
}
_FAMILIES: Final = (0, 1, 2, 10, 16, 38)
"""The allowed socket families: Unix, IPv4, IPv6 and those to the kernel; raw packets are refused."""
_X32_NUMBERS: Final = 0x40000000
"""The first number of the x32 variants of the same calls, which are refused: no program needs them."""
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
"""The first fields of a ``msghdr``: the pointer to the address and its size."""
_MESSAGE_BYTES: Final = 64
_MAX_MESSAGES: Final = 1024
_MAX_ADDRESS_BYTES: Final = 128
_LAST_ADDRESS: Final = 2**63 - 1
"""Higher addresses are kernel memory; a call that passes one fails by itself."""

# The filter's actions, and the offsets of the fields that it loads.
_ALLOW: Final = 0x7FFF0000
_NOTIFY: Final = 0x7FC00000
_NO_SUCH_CALL: Final = 0x00050000 | 38
_NO_SUCH_FAMILY: Final = 0x00050000 | 97
_NUMBER: Final = 0
_AUDIT: Final = 4
_DESCRIPTOR: Final = 16
_ADDRESS_OF_SENDTO: Final = 16 + 8 * 4


class HeldCall(NamedTuple):
    """A suspended system call."""

    id: int
    pid: int
    number: int
    arguments: tuple[int, ...]

    def addresses(self) -> Iterator[bytes]:
        """The socket addresses it passes; ``OSError`` if the process has ended or must not be read by us."""
        memory = os.open(f"/proc/{self.pid}/mem", os.O_RDONLY)
        try:
            for place, size in self._address_ranges(memory):
                if 0 < place <= _LAST_ADDRESS:
                    yield os.pread(memory, min(size, _MAX_ADDRESS_BYTES), place)
        finally:
            os.close(memory)

    def _address_ranges(self, memory: int) -> Iterator[tuple[int, int]]:
        machine, arguments = _machine(), self.arguments
        if self.number == machine.connect:
            yield arguments[1], arguments[2]
        elif self.number == machine.sendto:
            yield arguments[4], arguments[5]
        else:
            count = min(arguments[2], _MAX_MESSAGES) if self.number == machine.sendmmsg else 1
            for position in range(count):
                start = arguments[1] + position * _MESSAGE_BYTES
                yield _NAME_IN_MESSAGE.unpack(_read_head(memory, start))


def _read_head(memory: int, start: int) -> bytes:
    """Read the first fields of the ``msghdr`` at *start*; zeros for a bad pointer, where the call fails."""
    if start > _LAST_ADDRESS:
        return bytes(_NAME_IN_MESSAGE.size)
    return os.pread(memory, _NAME_IN_MESSAGE.size, start).ljust(_NAME_IN_MESSAGE.size, b"\0")


class Listener:
    """The descriptor on which the kernel reports suspended calls."""

    def __init__(self, fd: int) -> None:
        self._fd = fd

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._fd)

    def fileno(self) -> int:
        return self._fd

    def next(self) -> HeldCall | None:
        """The next suspended call; ``None`` if its process was interrupted meanwhile."""
        notification = bytearray(_NOTIFICATION.size)
        try:
            ioctl(self._fd, _RECEIVE, notification)
        except OSError:
            return None
        call_id, pid, _, number, _, _, *arguments = _NOTIFICATION.unpack(notification)
        return HeldCall(call_id, pid, number, tuple(arguments))

    def continue_call(self, call: HeldCall) -> None:
        """Let the kernel execute *call*."""
        self._respond(_RESPONSE.pack(call.id, 0, 0, _CONTINUE))

    def refuse(self, call: HeldCall, error: int) -> None:
        """Let *call* fail with *error*."""
        self._respond(_RESPONSE.pack(call.id, 0, -error, 0))

    def _respond(self, response: bytes) -> None:
        with suppress(OSError):  # the process does not wait for the call any more
            ioctl(self._fd, _RESPOND, response)


def is_known_machine() -> bool:
    """Whether we know the system calls of this machine; the kernel may still refuse the filter."""
    return sys.platform == "linux" and platform.machine() in _MACHINES


def send_listener(to: socket) -> None:
    """Install the filter in this process and send its listener to the other end of *to*.

    To be called between fork and exec. From then on setuid programs give no further rights.
    """
    with suppress(OSError):  # the command runs without a fence, and receive_listener() returns None
        os.dup2(to.fileno(), _exempt_fd(), inheritable=False)
        with socket(fileno=_exempt_fd()) as handover:
            _libc().prctl(_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
            listener = int(_libc().syscall(_machine().seccomp, _SET_FILTER, _WITH_LISTENER, filter_program()))
            if listener >= 0:
                send_fds(handover, [_INSTALLED], [listener])
                os.close(listener)


def receive_listener(by: socket) -> Listener | None:
    """Receive the listener from the other end of *by*; ``None`` if the kernel refused or no child started."""
    _, listeners, _, _ = recv_fds(by, len(_INSTALLED), 1)
    return Listener(listeners[0]) if listeners else None


@contextmanager
def adopt_orphans() -> Iterator[None]:
    """In the block we adopt orphaned descendants: some kernels let us read the memory of no other process."""
    _libc().prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    try:
        yield
    finally:
        _libc().prctl(_SET_CHILD_SUBREAPER, 0, 0, 0, 0)


@cache
def _exempt_fd() -> int:
    """The descriptor whose messages are not suspended: the listener is sent through it.

    It has the highest number that a program can get, and is closed by exec.
    """
    limit, _ = getrlimit(RLIMIT_NOFILE)
    return (min(limit, 1024) if limit > 0 else 1024) - 1


def _machine() -> _Machine:
    return _MACHINES[platform.machine()]


@cache
def _libc() -> Any:
    return ctypes.CDLL(None, use_errno=True)


@cache
def filter_program() -> object:
    """The filter in the kernel's format; it is built once, before the child is forked."""
    machine = _machine()
    small = [part for number in machine.small for part in (_skip_unless(number), _return(_NO_SUCH_FAMILY))]
    families = [part for family in _FAMILIES for part in (_skip_unless(family), _return(_ALLOW))]
    instructions = [
        *(_load(_AUDIT), _skip_unless(machine.audit), _skip(2 + len(small)), _load(_NUMBER), *small),
        _return(_ALLOW),
        _load(_NUMBER),
        *(_skip_below(_X32_NUMBERS), _return(_NO_SUCH_CALL)),
        *(_skip_unless(machine.socket, 2 + len(families)), _load(_DESCRIPTOR), *families),
        _return(_NO_SUCH_FAMILY),
        *(_skip_unless(machine.connect), _return(_NOTIFY)),
        *(_skip_unless(machine.sendmmsg), _return(_NOTIFY)),
        *(_skip_unless(machine.sendmsg, 4), _load(_DESCRIPTOR)),
        *(_skip_if(_exempt_fd()), _return(_NOTIFY), _return(_ALLOW)),
        # Calls through an io_uring are not suspended, so there is none; programs have a fallback.
        *(_skip_unless(_IO_URING_SETUP), _return(_NO_SUCH_CALL)),
        *(_skip_if(machine.sendto), _return(_ALLOW)),
        # Without an address it goes to the peer of the socket, and connect() was decided about.
        *(_load(_ADDRESS_OF_SENDTO), _skip_if(0), _return(_NOTIFY)),
        *(_load(_ADDRESS_OF_SENDTO + 4), _skip_if(0), _return(_NOTIFY)),
        _return(_ALLOW),
    ]
    code = ctypes.create_string_buffer(b"".join(instructions))
    program = ctypes.create_string_buffer(struct.pack("@HP", len(instructions), ctypes.addressof(code)))
    program.code = code  # type: ignore[attr-defined]  # keeps the buffer alive: *program* points to it
    return program


def _load(offset: int) -> bytes:
    return _instruction(0x20, offset)


def _skip_if(value: int) -> bytes:
    """Skip the next instruction if the loaded value is *value*."""
    return _instruction(0x15, value, if_true=1)


def _skip_unless(value: int, count: int = 1) -> bytes:
    """Skip *count* instructions unless the loaded value is *value*."""
    return _instruction(0x15, value, if_false=count)


def _skip_below(value: int) -> bytes:
    """Skip the next instruction if the loaded value is less than *value*."""
    return _instruction(0x35, value, if_false=1)


def _skip(count: int) -> bytes:
    return _instruction(0x05, count)


def _return(action: int) -> bytes:
    return _instruction(0x06, action)


def _instruction(code: int, value: int, *, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("=HBBI", code, if_true, if_false, value)

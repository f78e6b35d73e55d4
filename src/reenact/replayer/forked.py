"""What forked children were refused, carried back to the process that opened the guard.

A fork inherits the guard and is stopped like its parent, but what it notes it notes in its own memory.
A report is lost when the pipe is full (64 KiB) or the child outlives the guard.
"""

from __future__ import annotations

import os
from contextlib import suppress
from threading import Lock
from typing import Final

import msgspec

from reenact.replayer.blocked import BlockedCall

_PIPE_BYTES: Final = 64 * 1024


class ForkReports:
    """A pipe, while open, from every fork of the opening process back to it."""

    def __init__(self) -> None:
        self._pipe: tuple[int, int] | None = None
        self._home_pid = 0
        self._unfinished = b""
        self._reading = Lock()

    def open(self) -> None:
        self._home_pid = os.getpid()
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
        if self._pipe and os.getpid() != self._home_pid:
            with suppress(BlockingIOError):
                os.write(self._pipe[1], msgspec.json.encode(call) + b"\n")

    def receive(self) -> list[BlockedCall]:
        """What children have sent since the last time."""
        with self._reading:
            lines = (self._unfinished + self._read()).split(b"\n")
            self._unfinished = lines.pop()
        return [msgspec.json.decode(line, type=BlockedCall) for line in lines]

    def _read(self) -> bytes:
        if self._pipe and os.getpid() == self._home_pid:
            with suppress(BlockingIOError):
                return os.read(self._pipe[0], _PIPE_BYTES)
        return b""

"""What a command prints: passed on as it comes, and told by a digest for each line.

The command keeps the kind of output it would have without us. Where ours is a terminal it gets one of its
own, as wide and as high; else a pipe.
"""

from __future__ import annotations

import errno
import os
import re
import select
import signal
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from threading import Thread
from types import FrameType
from typing import Any, Final

from reenact.formats.capture import PrintedLines
from reenact.formats.workspace import WORKSPACE_ROOT

MAX_LINES: Final = 2000
"""So many lines have a digest of their own; all of them together have one."""
_DIGITS: Final = 12
_WHOLE_NAME: Final = rb"(?:%b)(?![\w-]|\.\w)"
_WORKSPACE: Final = str(WORKSPACE_ROOT).encode()
_READ_BYTES: Final = 1 << 16
_LAST_WORDS_S: Final = 1.0
"""How long what a command left behind may go on printing."""


class Printed:
    """Counts the lines of an output while it comes; *salt* keeps equal lines of two runs apart.

    Where they name one of *folders*, in which the run has its files, they are those of a run elsewhere.
    """

    def __init__(self, salt: bytes, folders: Iterable[str] = ()) -> None:
        self._salt = salt
        names = sorted({os.fsencode(folder) for folder in folders if folder}, key=len, reverse=True)
        self._folders = re.compile(_WHOLE_NAME % b"|".join(map(re.escape, names))) if names else None
        self._whole = sha256(salt)
        self._rest = b""
        self.size_bytes = 0
        self.digests: list[str] = []
        self.lines: list[bytes] = []
        """The lines themselves, to be shown; they are written nowhere."""

    def add(self, data: bytes) -> None:
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            self._line(line.removesuffix(b"\r") + b"\n")

    def _line(self, line: bytes) -> None:
        counted = line if self._folders is None else self._folders.sub(_WORKSPACE, line)
        self._whole.update(counted)
        self.size_bytes += len(counted)
        if len(self.lines) < MAX_LINES:
            self.lines.append(line)
            self.digests.append(sha256(self._salt + counted).hexdigest()[:_DIGITS])

    def end(self) -> PrintedLines:
        """All of it, with what stands behind the last line's end."""
        if self._rest:
            self._line(self._rest)
            self._rest = b""
        return PrintedLines(
            bytes=self.size_bytes, digest=f"sha256:{self._whole.hexdigest()}", lines=self.digests
        )


def differing_line(recorded: PrintedLines, printed: Printed) -> str | None:
    """Where what was printed is not what was recorded, for a person; ``None`` where it is."""
    now = printed.end()
    if now.digest == recorded.digest:
        return None
    for number, (theirs, ours) in enumerate(zip(recorded.lines, now.lines, strict=False), 1):
        if theirs != ours:
            shown = printed.lines[number - 1].decode("utf-8", "replace").rstrip("\n")
            return f"line {number} of what the command printed differs from the recorded one: {shown}"
    fewer = min(len(recorded.lines), len(now.lines))
    if fewer == MAX_LINES:
        return f"what the command printed differs from the recorded output, after line {MAX_LINES}"
    if len(now.lines) > fewer:
        shown = printed.lines[fewer].decode("utf-8", "replace").rstrip("\n")
        return f"the command printed more than the recorded {fewer} lines: {shown}"
    return f"the command printed {fewer} lines, the recorded one {len(recorded.lines)}"


@contextmanager
def passed_on(to: int, printed: Printed) -> Iterator[int]:
    """A descriptor to print to, for the block; what comes is passed on to *to* at once."""
    reading, writing = os.openpty() if os.isatty(to) else os.pipe()
    before: Any = None
    if os.isatty(to):
        _leave_line_ends(writing)
        _shape(to, writing)

        def reshape(_: int, __: FrameType | None) -> None:
            with suppress(OSError):
                _shape(to, reading)

        before = signal.signal(signal.SIGWINCH, reshape)
    over_read, over_write = os.pipe()
    passing = Thread(target=_pass_on, args=(reading, over_read, to, printed), daemon=True)
    passing.start()
    try:
        yield writing
    finally:
        os.close(writing)
        os.close(over_write)
        passing.join()
        os.close(over_read)
        if before is not None:
            signal.signal(signal.SIGWINCH, before)


def _pass_on(reading: int, over: int, to: int, printed: Printed) -> None:
    """Until the output ends, or nobody takes it any more, which its pipe then tells who goes on printing."""
    try:
        for data in _pieces(reading, over):
            printed.add(data)
            while data:
                data = data[os.write(to, data) :]
    except OSError:
        return
    finally:
        os.close(reading)


def _pieces(reading: int, over: int) -> Iterator[bytes]:
    poll = select.poll()
    poll.register(reading, select.POLLIN)
    poll.register(over, select.POLLIN)
    while True:
        ready = dict(poll.poll())
        if reading not in ready:
            # The command is over. Others may still hold its output; they get a moment.
            poll.unregister(over)
            if not poll.poll(_LAST_WORDS_S * 1000):
                return
        try:
            data = os.read(reading, _READ_BYTES)
        except OSError as error:
            if error.errno == errno.EIO:  # nobody has the terminal any more
                return
            raise
        if not data:
            return
        yield data


def _leave_line_ends(terminal: int) -> None:
    """Our own terminal makes of them what it does."""
    import termios

    attributes = termios.tcgetattr(terminal)
    attributes[1] &= ~termios.OPOST
    termios.tcsetattr(terminal, termios.TCSANOW, attributes)


def _shape(terminal: int, like: int) -> None:
    import fcntl
    import termios

    size = fcntl.ioctl(terminal, termios.TIOCGWINSZ, bytes(8))
    fcntl.ioctl(like, termios.TIOCSWINSZ, size)

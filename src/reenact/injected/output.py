"""A command's output: forwarded at once, and recorded as one digest per line.

If our output is a terminal, the command gets a pseudo-terminal of the same size; else a pipe.
"""

from __future__ import annotations

import errno
import os
import re
import select
import signal
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from hashlib import sha256
from threading import Thread
from time import monotonic
from types import FrameType
from typing import Any, Final

from reenact.formats.capture import PrintedLines
from reenact.formats.workspace import WORKSPACE_ROOT
from reenact.seams.stdlib.process.whole import leave_output

MAX_LINES: Final = 2000
"""Only so many lines have their own digest; another digest covers the whole output."""
_DIGITS: Final = 12
_WHOLE_NAME: Final = rb"(?:%b)(?![\w-]|\.\w)"
_WHOLE_WORD: Final = rb"(?<![A-Za-z0-9])(?:%b)(?![A-Za-z0-9])"
_WORKSPACE: Final = str(WORKSPACE_ROOT).encode()
_READ_BYTES: Final = 1 << 16
_PIPE_BYTES: Final = 1 << 16
"""How much the command itself may have left in the pipe when it ended."""
_LAST_WORDS_S: Final = 1.0
"""How long processes that outlive the command may still print."""


class Printed:
    """Hashes an output line by line; *salt* gives equal lines of two captures different digests.

    A name of one of *folders*, where the run has its files, is hashed as the neutral workspace root.
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
        """The lines, for messages; they are not stored."""

    def add(self, data: bytes) -> None:
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            self._add_line(line.removesuffix(b"\r") + b"\n")

    def _add_line(self, line: bytes) -> None:
        counted = self._neutralize(line)
        self._whole.update(counted)
        self.size_bytes += len(counted)
        if len(self.lines) < MAX_LINES:
            self.lines.append(line)
            self.digests.append(self._digest(counted))

    def _neutralize(self, line: bytes) -> bytes:
        return line if self._folders is None else self._folders.sub(_WORKSPACE, line)

    def _digest(self, line: bytes) -> str:
        return sha256(self._salt + line).hexdigest()[:_DIGITS]

    def digests_with(self, names: Mapping[bytes, bytes]) -> list[str]:
        """The digests of the lines with other *names* in the place of those that were printed."""
        longest_first = sorted(names, key=len, reverse=True)
        found = re.compile(_WHOLE_WORD % b"|".join(map(re.escape, longest_first)))
        lines = (found.sub(lambda match: names[match[0]], self._neutralize(line)) for line in self.lines)
        return [self._digest(line) for line in lines]

    def end(self) -> PrintedLines:
        """Add an unfinished last line and return the digests."""
        if self._rest:
            self._add_line(self._rest)
            self._rest = b""
        return PrintedLines(
            bytes=self.size_bytes, digest=f"sha256:{self._whole.hexdigest()}", lines=self.digests
        )


def describe_differing_line(
    recorded: PrintedLines, printed: Printed, renamed: Mapping[bytes, bytes] | None = None
) -> str | None:
    """Describe the first line that differs from the recorded output; ``None`` if none does.

    *renamed* has the recorded names of values that have another name in this run.
    """
    now = printed.end()
    if now.digest == recorded.digest:
        return None
    with_names = printed.digests_with(renamed) if renamed else now.lines
    lines = zip(recorded.lines, now.lines, with_names, strict=False)
    for number, (theirs, *ours) in enumerate(lines, 1):
        if theirs not in ours:
            shown = printed.lines[number - 1].decode("utf-8", "replace").rstrip("\n")
            return f"line {number} of what the command printed differs from the recorded one: {shown}"
    fewer = min(len(recorded.lines), len(now.lines))
    if renamed and len(now.lines) == len(recorded.lines) < MAX_LINES:
        return None
    if fewer == MAX_LINES:
        return f"what the command printed differs from the recorded output, after line {MAX_LINES}"
    if len(now.lines) > fewer:
        shown = printed.lines[fewer].decode("utf-8", "replace").rstrip("\n")
        return f"the command printed more than the recorded {fewer} lines: {shown}"
    return f"the command printed {fewer} lines, the recorded one {len(recorded.lines)}"


@contextmanager
def forward_output(to: int, printed: Printed) -> Iterator[int]:
    """Yield a descriptor to print to; what arrives there is added to *printed* and forwarded to *to*."""
    reading, writing = os.openpty() if os.isatty(to) else os.pipe()
    before: Any = None
    if os.isatty(to):
        _leave_line_ends(writing)
        _copy_size(to, writing)

        def reshape(_: int, __: FrameType | None) -> None:
            with suppress(OSError):
                _copy_size(to, reading)

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
    """Forward until the output ends or *to* is closed; then the command's own writes fail too."""
    try:
        for data in _read_pieces(reading, over):
            if data is None:
                leave_output(reading, to)
                return
            printed.add(data)
            while data:
                data = data[os.write(to, data) :]
    except OSError:
        return
    finally:
        os.close(reading)


def _read_pieces(reading: int, over: int) -> Iterator[bytes | None]:
    """What comes from *reading*; ``None`` if others still have it some time after the command has ended."""
    poll = select.poll()
    poll.register(reading, select.POLLIN)
    poll.register(over, select.POLLIN)
    until_s: float | None = None
    more_bytes = 0
    while True:
        left_s = None if until_s is None else max(0.0, until_s - monotonic())
        ready = dict(poll.poll(None if left_s is None else left_s * 1000))
        if until_s is None and over in ready:
            # The command has ended. Its children may still hold the output; they get a moment.
            poll.unregister(over)
            until_s = monotonic() + _LAST_WORDS_S
            continue
        if reading not in ready or (left_s == 0 and more_bytes >= _PIPE_BYTES):
            yield None
            return
        try:
            data = os.read(reading, _READ_BYTES)
        except OSError as error:
            if error.errno == errno.EIO:  # no process has the terminal open any more
                return
            raise
        if not data:
            return
        if until_s is not None:
            more_bytes += len(data)
        yield data


def _leave_line_ends(terminal: int) -> None:
    """Turn output processing off: our own terminal does it."""
    import termios

    attributes = termios.tcgetattr(terminal)
    attributes[1] &= ~termios.OPOST
    termios.tcsetattr(terminal, termios.TCSANOW, attributes)


def _copy_size(terminal: int, like: int) -> None:
    import fcntl
    import termios

    size = fcntl.ioctl(terminal, termios.TIOCGWINSZ, bytes(8))
    fcntl.ioctl(like, termios.TIOCSWINSZ, size)

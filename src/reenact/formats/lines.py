"""Line-based formats as a stream: one line at a time, its number and its place in the file kept."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import BinaryIO, Final

import msgspec

from reenact.errors import FormatError

MAX_LINE_BYTES: Final = 64 * 1024 * 1024
"""A longer line is refused: no event is that large, because large payloads live in blobs."""

OnError = Callable[[FormatError], None]
"""What takes each error of a lenient reading; without one the first error is raised."""

_BOM: Final = b"\xef\xbb\xbf"
_SKIP_BYTES: Final = 1024 * 1024
_BLOCK_BYTES: Final = 64 * 1024


class Line(msgspec.Struct, frozen=True, gc=False):
    """One line without its end; *offset* is where it starts in the file, in bytes."""

    number: int
    offset: int
    text: bytes


def read_lines(
    stream: BinaryIO, *, file: str, max_line_bytes: int = MAX_LINE_BYTES, on_error: OnError | None = None
) -> Iterator[Line]:
    """The lines of *stream* in constant memory.

    Tolerated and never written: a byte order mark at the start, CR before LF, lines of nothing but
    white space, a missing last line end. A line beyond *max_line_bytes* is a :class:`FormatError`.
    """
    report = on_error or raise_error
    readline = stream.readline
    offset = number = 0
    while text := readline(max_line_bytes + 2):  # room for CR LF
        number += 1
        start, offset = offset, offset + len(text)
        if text.endswith(b"\n"):
            text = text[:-2] if text.endswith(b"\r\n") else text[:-1]
        elif len(text) > max_line_bytes:
            offset += skip_line(stream)
        if number == 1 and text.startswith(_BOM):
            text, start = text[3:], 3
        if len(text) > max_line_bytes:
            report(FormatError(f"the line is longer than {max_line_bytes} bytes", file=file, line=number))
        elif text and not text.isspace():
            yield Line(number, start, text)


def read_blocks(
    stream: BinaryIO, *, file: str, max_line_bytes: int = MAX_LINE_BYTES, on_error: OnError | None = None
) -> Iterator[list[Line]]:
    """The same lines, as many at a time as fill 64 KiB, for readers that take many faster than one.

    An error is reported between the lines before and the lines behind it. A stream that grows is
    waited for until a block is full.
    """
    report = on_error or raise_error
    errors: list[FormatError] = []
    block: list[Line] = []
    size_bytes = 0
    for line in read_lines(stream, file=file, max_line_bytes=max_line_bytes, on_error=errors.append):
        if errors or size_bytes >= _BLOCK_BYTES:
            yield block
            _drain(errors, report)
            block, size_bytes = [], 0
        block.append(line)
        size_bytes += len(line.text)
    yield block
    _drain(errors, report)


def raise_error(error: FormatError) -> None:
    """The strict way to take an error."""
    raise error


def _drain(errors: list[FormatError], report: OnError) -> None:
    while errors:
        report(errors.pop(0))


def skip_line(stream: BinaryIO) -> int:
    """Leave the rest of the line unread; how many bytes that was."""
    skipped = 0
    while text := stream.readline(_SKIP_BYTES):
        skipped += len(text)
        if text.endswith(b"\n"):
            break
    return skipped

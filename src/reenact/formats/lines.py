"""Line-based formats as a stream: one line at a time, its number and its place in the file kept."""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO, Final, NamedTuple

from reenact.errors import FormatError

MAX_LINE_BYTES: Final = 64 * 1024 * 1024
"""A longer line is refused: no event is that large, because large payloads live in blobs."""

_BOM: Final = b"\xef\xbb\xbf"


class Line(NamedTuple):
    """One line without its end; *offset* is where it starts in the file, in bytes."""

    number: int
    offset: int
    text: bytes


def read_lines(stream: BinaryIO, *, file: str, max_line_bytes: int = MAX_LINE_BYTES) -> Iterator[Line]:
    """The lines of *stream* in constant memory.

    Tolerated and never written: a byte order mark at the start, CR before LF, empty lines, a missing
    last line end. A line beyond *max_line_bytes* is a :class:`FormatError`.
    """
    offset = 0
    number = 0
    while text := stream.readline(max_line_bytes + 2):
        number += 1
        start, offset = offset, offset + len(text)
        if len(text) > max_line_bytes + 1:
            raise FormatError(f"the line is longer than {max_line_bytes} bytes", file=file, line=number)
        if number == 1 and text.startswith(_BOM):
            text, start = text[3:], 3
        text = text.rstrip(b"\r\n")
        if text:
            yield Line(number, start, text)

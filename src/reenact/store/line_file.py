"""A file of lines that may still grow; the lines that were read so far can be read again in any order."""

from __future__ import annotations

import os
from array import array
from codecs import BOM_UTF8
from collections.abc import Callable, Iterator
from typing import BinaryIO, Final

from reenact.errors import FormatError
from reenact.formats.lines import MAX_LINE_BYTES

_BLOCK_BYTES: Final = 1024 * 1024


class LineFile:
    """The lines of *stream*, numbered from 1; not mapped into memory, because the file may also shrink.

    With *takes_tail*, text after the last line end is a line; without, it counts as not yet complete.
    """

    def __init__(self, stream: BinaryIO, *, file: str, takes_tail: bool) -> None:
        self._stream = stream
        self.file = file
        self._takes_tail = takes_tail
        self._starts = array("Q", [0])
        self.count = 0
        """How many lines have been read so far."""
        self.read_bytes = 0
        """How far the file has been read: to the end of the last whole line."""

    @property
    def size_bytes(self) -> int:
        return os.fstat(self._stream.fileno()).st_size

    @property
    def torn_bytes(self) -> int:
        """The size of the incomplete line at the end."""
        return 0 if self._takes_tail else self.size_bytes - self.read_bytes

    def read_lines(self) -> Iterator[tuple[int, bytes]]:
        """The next lines with their numbers; none if the file has not grown."""
        end = self.read_bytes
        for number, text in enumerate(self._read_whole_lines(end).split(b"\n")[:-1], self.count + 1):
            end += len(text) + 1
            self._starts.append(end)
            self.count, self.read_bytes = number, end
            yield number, _strip(text, is_first=number == 1)

    def line(self, number: int) -> bytes:
        """The text of a line that has been read."""
        start, end = self._starts[number - 1], self._starts[number]
        text = os.pread(self._stream.fileno(), end - start, start)
        return _strip(text.removesuffix(b"\n"), is_first=number == 1)

    def find(self, number: int) -> tuple[int, bytes] | None:
        """The start of any line, and its text; the lines before it are counted and not kept."""
        if number <= self.count:
            return self._starts[number - 1], self.line(number)
        at, start = self.count + 1, self.read_bytes
        while block := self._read_whole_lines(start):
            ends = block.count(b"\n")
            if at + ends > number:
                *before, line, _ = block.split(b"\n", number - at + 1)
                return start + sum(map(len, before)) + len(before), _strip(line, is_first=number == 1)
            at, start = at + ends, start + len(block)
        return None

    def search(self, number: int, number_of: Callable[[bytes], int]) -> tuple[int, bytes] | None:
        """The start of the line with this *number*, and its text; *number_of* reads the number in a line."""
        low, high = 0, self.size_bytes  # the line starts between these
        while low < high:
            middle = (low + high) // 2
            start = middle and self._end_of_line(middle - 1)
            end = self._end_of_line(start) if start is not None and start < high else None
            if start is None or end is None:
                high = middle
                continue
            text = _strip(self._read_between(start, end), is_first=start == 0)
            found = number_of(text)
            if found == number:
                return start, text
            low, high = (end, high) if found < number else (low, middle)
        return None

    def block_before(self, end: int) -> tuple[int, bytes]:
        """Some whole lines before the offset *end*: where the first begins, and their bytes."""
        start = max(0, end - _BLOCK_BYTES)
        block = self._read_between(start, end)
        if start == 0:
            return 0, block
        cut = block.find(b"\n") + 1
        if 0 < cut < len(block):
            return start + cut, block[cut:]
        start = self._start_of_line(end - 1)  # the line is longer than a block
        return start, self._read_between(start, end)

    def _read_between(self, start: int, end: int) -> bytes:
        return os.pread(self._stream.fileno(), end - start, start)

    def _end_of_line(self, start: int) -> int | None:
        """Where the next line begins after the offset *start*; ``None`` if no line end follows."""
        length = _BLOCK_BYTES // 16
        while text := os.pread(self._stream.fileno(), length, start):
            if end := text.find(b"\n") + 1:
                return start + end
            start += len(text)
        return None

    def _start_of_line(self, end: int) -> int:
        """Where the line begins that ends at the offset *end*."""
        while end:
            start = max(0, end - _BLOCK_BYTES)
            found = self._read_between(start, end).rfind(b"\n") + 1
            if found:
                return start + found
            end = start
        return 0

    def first_line(self) -> bytes:
        """The text of the first line, whether it was read or not; empty if there is none."""
        length = _BLOCK_BYTES // 16
        while True:
            text = os.pread(self._stream.fileno(), length, 0)
            line, end, _ = text.partition(b"\n")
            if end or len(text) < length or length > MAX_LINE_BYTES:
                return _strip(line, is_first=True) if end or self._takes_tail else b""
            length *= 4

    def last_line(self) -> bytes:
        """The text of the last whole line, searched from the end; empty if there is none."""
        size_bytes = self.size_bytes
        length = _BLOCK_BYTES // 16
        while True:
            start = max(0, size_bytes - length)
            text = os.pread(self._stream.fileno(), size_bytes - start, start)
            if not self._takes_tail:
                text = text[: text.rfind(b"\n") + 1]
            text = text.rstrip(b"\r\n")
            if start == 0 or b"\n" in text or length > MAX_LINE_BYTES:
                return text.rpartition(b"\n")[2]
            length *= 4

    def close(self) -> None:
        self._stream.close()

    def _read_whole_lines(self, start: int) -> bytes:
        """Some lines from *start* on, each with its end."""
        length = _BLOCK_BYTES
        while True:
            text = os.pread(self._stream.fileno(), length, start)
            end = text.rfind(b"\n") + 1
            if end:
                return text[:end]
            if len(text) < length:
                return text + b"\n" if text and self._takes_tail else b""
            if length > MAX_LINE_BYTES:
                reason = f"the line is longer than {MAX_LINE_BYTES} bytes"
                raise FormatError(reason, file=self.file, line=self.count + 1)
            length *= 4


def _strip(text: bytes, *, is_first: bool) -> bytes:
    """*text* without carriage return and byte order mark, like :func:`reenact.formats.lines.read_lines`."""
    text = text.removesuffix(b"\r")
    return text.removeprefix(BOM_UTF8) if is_first else text

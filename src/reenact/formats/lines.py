"""Reads line-based formats as a stream: line by line, or many lines at a time.

A line has its number and its offset in the file. A block of canonical lines takes two calls of the codec; any
other block is read line by line.
"""

from __future__ import annotations

from codecs import BOM_UTF8
from collections.abc import Callable, Iterator
from io import BytesIO
from typing import BinaryIO, Final, TypeVar

import msgspec

from reenact.errors import FormatError
from reenact.formats.record import Codec

LINE_SUFFIXES: Final = (".jsonl", ".ndjson")
"""Of files with one JSON value per line."""
MAX_LINE_BYTES: Final = 64 * 1024 * 1024
"""A longer line is refused; no event is that large, because large payloads are in blobs."""

OnError = Callable[[FormatError], None]
"""Called with each error of lenient reading; without it, the first error is raised."""

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

    Accepted, although never written: a byte order mark at the start, CR before LF, lines of white space, a
    missing last line end. A line longer than *max_line_bytes* is a :class:`FormatError`.
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
        if number == 1 and text.startswith(BOM_UTF8):
            text, start = text[3:], 3
        if len(text) > max_line_bytes:
            report(FormatError(f"the line is longer than {max_line_bytes} bytes", file=file, line=number))
        elif text and not text.isspace():
            yield Line(number, start, text)


def read_blocks(
    stream: BinaryIO, *, file: str, max_line_bytes: int = MAX_LINE_BYTES, on_error: OnError | None = None
) -> Iterator[list[Line]]:
    """The same lines in blocks of about 64 KiB, for readers that are faster with many lines.

    An error is reported after the block of the lines before it. A growing stream is read until a block is
    full.
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
    """The strict handling of an error."""
    raise error


def _drain(errors: list[FormatError], report: OnError) -> None:
    while errors:
        report(errors.pop(0))


def skip_line(stream: BinaryIO) -> int:
    """Skip the rest of the line; returns its size in bytes."""
    skipped = 0
    while text := stream.readline(_SKIP_BYTES):
        skipped += len(text)
        if text.endswith(b"\n"):
            break
    return skipped


R = TypeVar("R")

_CODEC_BLOCK_BYTES: Final = 32 * 1024


class TextBlock(msgspec.Struct, frozen=True):
    """Whole lines, the first of which has *number* and starts at *offset*; the last may have no line end."""

    number: int
    offset: int
    text: bytes
    line_count: int


def read_records(
    stream: BinaryIO,
    codec: Codec[R],
    *,
    file: str,
    max_line_bytes: int = MAX_LINE_BYTES,
    on_error: OnError | None = None,
) -> Iterator[tuple[Line, R]]:
    """Each line of *stream* with its record, in constant memory; accepts what :func:`read_lines` does.

    Without *on_error* the first invalid line raises, after the lines before it were returned; with it every
    invalid line is reported and skipped. A growing stream is read until a block is full.
    """
    report = on_error or raise_error
    for block in read_text_blocks(stream, max_line_bytes=max_line_bytes):
        records = codec.from_block(block.text)
        if records is not None:
            yield from zip(_lines(block), records, strict=True)
        else:
            yield from _read_each(block, codec, file, max_line_bytes, report)


def read_text_blocks(
    stream: BinaryIO, *, block_bytes: int = _CODEC_BLOCK_BYTES, max_line_bytes: int = MAX_LINE_BYTES
) -> Iterator[TextBlock]:
    """Split at line ends; of a line that is too long, only as much as shows that is returned."""
    rest: list[bytes] = []
    rest_bytes, number, offset = 0, 1, 0
    while chunk := stream.read(block_bytes):
        end = chunk.rfind(b"\n") + 1
        if end:
            text = b"".join((*rest, memoryview(chunk)[:end]))
            count = text.count(b"\n")
            yield TextBlock(number, offset, text, count)
            number, offset, rest = number + count, offset + len(text), [chunk[end:]]
            rest_bytes = len(rest[0])
            continue
        rest.append(chunk)
        rest_bytes += len(chunk)
        if rest_bytes > max_line_bytes + 2:
            skipped = skip_line(stream)
            yield TextBlock(number, offset, b"".join(rest) + b"\n", 1)
            rest, rest_bytes, number, offset = [], 0, number + 1, offset + rest_bytes + skipped
    if rest_bytes:
        yield TextBlock(number, offset, b"".join(rest), 1)


def split_block(block: TextBlock, part_bytes: int = _CODEC_BLOCK_BYTES) -> Iterator[TextBlock]:
    """The same lines in parts that fit into the processor's cache, which doubles the speed of decoding."""
    text, start, number = block.text, 0, block.number
    while start < len(text):
        end = text.rfind(b"\n", start, start + part_bytes) + 1 or text.find(b"\n", start) + 1 or len(text)
        count = text.count(b"\n", start, end) or 1
        yield TextBlock(number, block.offset + start, text[start:end], count)
        number, start = number + count, end


def _lines(block: TextBlock) -> Iterator[Line]:
    offset = block.offset
    *texts, _ = block.text.split(b"\n")  # it ends with a line end
    for number, text in enumerate(texts, block.number):
        yield Line(number, offset, text)
        offset += len(text) + 1


def lines_of(
    block: TextBlock, *, file: str, report: OnError, max_line_bytes: int = MAX_LINE_BYTES
) -> Iterator[Line]:
    """The lines of *block*, with their numbers and offsets in the whole file."""

    def report_placed(error: FormatError) -> None:
        if error.line is not None:
            error.line += block.number - 1
        report(error)

    text = BytesIO(block.text)
    for inner in read_lines(text, file=file, max_line_bytes=max_line_bytes, on_error=report_placed):
        yield Line(inner.number + block.number - 1, inner.offset + block.offset, inner.text)


def _read_each(
    block: TextBlock, codec: Codec[R], file: str, max_line_bytes: int, report: OnError
) -> Iterator[tuple[Line, R]]:
    for line in lines_of(block, file=file, report=report, max_line_bytes=max_line_bytes):
        try:
            record = codec.from_bytes(line.text)
        except FormatError as error:
            report(error.at(file=file, line=line.number))
        else:
            yield line, record

"""REPLAY.jsonl v1: one reader and one writer for both dialects, streaming."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, suppress
from functools import cached_property
from typing import Any, BinaryIO, Final

from reenact.canonical import read_json
from reenact.errors import FormatError, UnknownVersion, UsageError
from reenact.formats.dialects import DIALECTS, Event, current, dialect_of, legacy
from reenact.formats.dialects.common import HEADER, Dialect, DialectName
from reenact.formats.lines import MAX_LINE_BYTES, Line, OnError, raise_error, read_blocks, read_lines
from reenact.formats.record import ABSENT

LEAVES: Final = "SealLeaves"
"""The event that lists leaves of a sealed log; several of them follow the header of a published log."""
PROOF: Final = "seal"
"""The member with the proof of a line that was published under a seal."""
PUBLISHED: Final = "published"
"""The header's member that names the policy of a log that was published without a seal."""

ReplayHeader = current.ReplayHeader | legacy.ReplayHeader
ToolCall = current.ToolCall | legacy.ToolCall
ToolResult = current.ToolResult | legacy.ToolResult


def read_replay_log(
    stream: BinaryIO, *, file: str, max_line_bytes: int = MAX_LINE_BYTES, on_error: OnError | None = None
) -> Iterator[tuple[Line, Event]]:
    """Each line of a log with its event, header first, in constant memory.

    The first invalid line raises its :class:`FormatError`; with *on_error*, that is called with each instead
    and reading continues. A newer version always raises.
    """
    reading = _Reading(file, on_error or raise_error)
    for block in read_blocks(stream, file=file, max_line_bytes=max_line_bytes, on_error=on_error):
        yield from reading.read(block)
    reading.close()


def find_dialect(stream: BinaryIO, *, file: str) -> Dialect[Any] | None:
    """The dialect of the first event of a log; ``None`` if no line is an event."""
    for line in read_lines(stream, file=file, on_error=lambda _: None):
        with suppress(FormatError):
            return dialect_of(read_json(line.text))
    return None


def is_published(open_stream: Callable[[], BinaryIO], *, file: str, under_seal: bool = False) -> bool:
    """Whether a log was published: its header has a proof or a policy, or leaves follow it.

    With *under_seal*, whether it was published with proofs.
    """
    marks = {PROOF} if under_seal else {PROOF, PUBLISHED}
    with closing(open_stream()) as stream:
        lines = read_lines(stream, file=file, on_error=lambda _: None)
        for line, _ in zip(lines, range(2), strict=False):
            with suppress(FormatError):
                value = read_json(line.text)
                if isinstance(value, dict) and (
                    marks & value.keys() or LEAVES in (value.get("type"), value.get("event"))
                ):
                    return True
    return False


class _Reading:
    """The state of one pass over a log: its dialect, known from the first event on."""

    def __init__(self, file: str, report: OnError) -> None:
        self._file = file
        self._report = report
        self._dialect: Dialect[Any] | None = None

    def read(self, block: list[Line]) -> Iterable[tuple[Line, Event]]:
        """The lines of *block* with their events: all at once if all lines are canonical, else one by one."""
        if self._dialect is not None:
            events = self._dialect.from_lines([line.text for line in block])
            if events is not None:
                return zip(block, events, strict=True)
        return self._read_each(block)

    def _read_each(self, block: list[Line]) -> Iterator[tuple[Line, Event]]:
        for line in block:
            try:
                event = self._read_first(line) if self._dialect is None else self._read_next(line)
            except UnknownVersion as error:
                raise error.at(file=self._file, line=line.number) from None
            except FormatError as error:
                self._report(error.at(file=self._file, line=line.number))
            else:
                yield line, event

    def _read_first(self, line: Line) -> Event:
        value = read_json(line.text)
        self._dialect = dialect_of(value)
        if self._dialect.name_in(value) != HEADER:
            self._report(_missing_header(self._file, line.number))
        return self._dialect.from_json(value)

    def _read_next(self, line: Line) -> Event:
        assert self._dialect is not None
        event = self._dialect.from_bytes(line.text)
        if isinstance(event, ReplayHeader):
            raise FormatError("a second ReplayHeader; a log has one, on its first line")
        return event

    def close(self) -> None:
        """Report a log without any event."""
        if self._dialect is None:
            self._report(_missing_header(self._file, 1))


def _missing_header(file: str, line: int) -> FormatError:
    return FormatError(
        'the first line must be a ReplayHeader such as {"type":"ReplayHeader","replay_version":1,…}',
        file=file,
        line=line,
    )


class ReplayReader:
    """A log that can be read several times; each method is one pass over it.

    *open_stream* opens it for each pass. *on_error* is called with the errors of each pass.
    """

    def __init__(
        self,
        open_stream: Callable[[], BinaryIO],
        *,
        file: str = "REPLAY.jsonl",
        max_line_bytes: int = MAX_LINE_BYTES,
        on_error: OnError | None = None,
    ) -> None:
        self._open_stream = open_stream
        self._file = file
        self._max_line_bytes = max_line_bytes
        self._on_error = on_error

    def __iter__(self) -> Iterator[Event]:
        return (event for _, event in self.lines())

    def lines(self) -> Iterator[tuple[Line, Event]]:
        """Each event with its line."""
        with closing(self._open_stream()) as stream:
            yield from read_replay_log(
                stream, file=self._file, max_line_bytes=self._max_line_bytes, on_error=self._on_error
            )

    @cached_property
    def header(self) -> ReplayHeader:
        """The first line; :class:`FormatError` if it is not a header, even with *on_error*."""
        with closing(self._open_stream()) as stream:
            _, event = next(read_replay_log(stream, file=self._file, max_line_bytes=self._max_line_bytes))
        assert isinstance(event, ReplayHeader)
        return event

    @property
    def dialect(self) -> DialectName:
        """The dialect of the header."""
        return "current" if isinstance(self.header, current.ReplayHeader) else "legacy"

    def tool_calls(self) -> Iterator[ToolCall]:
        """The tool calls in order."""
        return (event for event in self if isinstance(event, ToolCall))

    def total_latency_ms(self) -> int | float:
        """The sum of the latencies of all tool results."""
        return sum(event.latency_ms for event in self if isinstance(event, ToolResult))

    def average_step_utility(self) -> float:
        """The mean of the utilities of results, 0.0 without any; compare it with :func:`is_same_f32`."""
        total, count = 0.0, 0
        for event in self:
            if isinstance(event, ToolResult) and event.step_utility is not ABSENT:
                total, count = total + event.step_utility, count + 1
        return total / count if count else 0.0


class ReplayWriter:
    """Writes a log, header first; every event is one canonical line, flushed by itself."""

    def __init__(self, stream: BinaryIO, dialect: DialectName = "current") -> None:
        self._stream = stream
        self._dialect = DIALECTS[dialect]
        self._is_empty = True

    def emit(self, event: Event) -> None:
        """Append *event*; raises for an event of the other dialect, a misplaced header or invalid values."""
        if not self._dialect.owns(event):
            raise UsageError(
                f"{type(event).__name__} is not an event of the {self._dialect.name} dialect; "
                "convert it with reenact.formats.dialects.conversion first"
            )
        name = self._dialect.name_of(event)
        if self._is_empty != (name == HEADER):
            raise UsageError(
                f"{name}: a log has one ReplayHeader, as its first event; emit it first and once"
            )
        self._stream.write(self._dialect.to_bytes(event) + b"\n")
        self._stream.flush()
        self._is_empty = False


def is_same_f32(a: float, b: float) -> bool:
    """Whether two numbers are the same 32-bit float, as 0.8 and 0.800000011920929 are.

    The original emitter stores utilities and confidences as 32-bit floats and writes them with all digits in
    its logs, and with few digits in its receipts.
    """
    return _round_to_f32(a) == _round_to_f32(b)


def _round_to_f32(number: float) -> float:
    try:
        narrowed: float = struct.unpack("<f", struct.pack("<f", number))[0]
    except OverflowError:
        return number
    return narrowed

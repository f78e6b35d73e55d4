"""What every kind of artifact can be asked, and its events in the words of a capture.

A log's ``ToolCall`` and a trace's ``tool_call`` become the capture's ``tool_call`` with ``callId``, ``tool``
and ``args``. What a capture has no word for has a type of its own (``message``, ``verification``, …) and a
``name``.
"""

from __future__ import annotations

import os
from array import array
from collections.abc import Iterator
from typing import Any, BinaryIO, Final, Literal, Protocol, TypeAlias

import msgspec

from reenact.errors import FormatError, StoreError
from reenact.formats.lines import MAX_LINE_BYTES

REMARK: Final = "remark"
"""The type of an event that says no more than another one does in its place."""
OUTSIDE: Final = ("run_start", "run_end", REMARK)
"""The types of events that are no steps of the run."""
ASKING: Final = ("tool_call", "llm_request")
"""The types of events that are never an outcome."""


class RunEvent(msgspec.Struct):
    """One event; payloads stand in *data* as they are stored."""

    seq: int
    """Its number in the artifact: of line-based ones the line."""
    ts: int | float
    """Milliseconds since the epoch."""
    type: str
    data: dict[str, Any]


class EventHeadData(msgspec.Struct, gc=False):
    """What an index needs of an event's data; everything else is passed over without being decoded."""

    callId: str | None = None  # noqa: N815 — the wire's own name, as all below
    parent: str | None = None
    lane: str = "0"
    tool: str | None = None
    provider: str | None = None
    model: str | None = None
    source: str | None = None
    key: str | None = None
    type: str | None = None
    name: str | None = None
    ok: bool = True
    cancelled: bool = False
    error: Any = None
    modelError: Any = None  # noqa: N815
    usage: dict[str, Any] | None = None
    latencyMs: int | float | None = None  # noqa: N815
    """Where the artifact states how long a call took."""
    utility: int | float | None = None


class EventHead(msgspec.Struct, gc=False):
    """The head of one event."""

    seq: int
    ts: int | float
    type: str
    data: EventHeadData

    @property
    def kind(self) -> str:
        """``tool``, ``model``, ``state``, the source of a value, or what the event is called."""
        if self.type == "nondeterministic":
            return str(self.data.source)
        return _KINDS.get(self.type, self.type)

    @property
    def name(self) -> str:
        """The tool, the model, the kind of state, or the key of a value."""
        data = self.data
        match self.type:
            case "tool_call" | "tool_result":
                found = data.tool
            case "llm_request" | "llm_response":
                found = data.model or data.provider
            case "state_mutation":
                found = data.type
            case "nondeterministic":
                found = data.key
            case _:
                found = data.name
        return found or ""


_KINDS: Final = {
    "tool_call": "tool",
    "tool_result": "tool",
    "llm_request": "model",
    "llm_response": "model",
    "state_mutation": "state",
}


def head_of(event: RunEvent) -> EventHead:
    """The head of an event that is decoded already."""
    return EventHead(event.seq, event.ts, event.type, msgspec.convert(event.data, EventHeadData))


_BLOCK_BYTES: Final = 1024 * 1024
_BOM: Final = b"\xef\xbb\xbf"


class LineFile:
    """The lines of *stream*, numbered from 1; it is never mapped, because a file may also shrink.

    With *takes_tail* a last line without its end is a line; else it is half of one and waited for.
    """

    def __init__(self, stream: BinaryIO, *, file: str, takes_tail: bool) -> None:
        self._stream = stream
        self.file = file
        self._takes_tail = takes_tail
        self._starts = array("Q", [0])

    def __len__(self) -> int:
        """How many lines have been read so far."""
        return len(self._starts) - 1

    @property
    def size_bytes(self) -> int:
        return os.fstat(self._stream.fileno()).st_size

    @property
    def read_bytes(self) -> int:
        """How far the file has been read: to the end of the last whole line."""
        return self._starts[-1]

    def read_on(self) -> Iterator[tuple[int, bytes]]:
        """The next lines with their numbers; none where the file goes no further for now."""
        end = self.read_bytes
        for number, text in enumerate(self._whole_lines(self.read_bytes).split(b"\n")[:-1], len(self) + 1):
            end += len(text) + 1
            self._starts.append(end)
            yield number, _stripped(text, is_first=number == 1)

    def line(self, number: int) -> bytes:
        """The text of a line that has been read."""
        start, end = self._starts[number - 1], self._starts[number]
        text = os.pread(self._stream.fileno(), end - start, start)
        return _stripped(text.removesuffix(b"\n"), is_first=number == 1)

    def find(self, number: int) -> bytes | None:
        """The text of a line that may be far ahead; what is before it is counted and not kept."""
        if number <= len(self):
            return self.line(number)
        at, start = len(self) + 1, self.read_bytes
        while block := self._whole_lines(start):
            ends = block.count(b"\n")
            if at + ends > number:
                line = block.split(b"\n", number - at + 1)[number - at]
                return _stripped(line, is_first=number == 1)
            at, start = at + ends, start + len(block)
        return None

    def first_line(self) -> bytes:
        """The text of the file's first line, read or not; empty where there is none."""
        length = _BLOCK_BYTES // 16
        while True:
            text = os.pread(self._stream.fileno(), length, 0)
            line, end, _ = text.partition(b"\n")
            if end or len(text) < length or length > MAX_LINE_BYTES:
                return _stripped(line, is_first=True) if end or self._takes_tail else b""
            length *= 4

    def last_line(self) -> bytes:
        """The text of the file's last whole line, found from its end; empty where there is none."""
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

    def _whole_lines(self, start: int) -> bytes:
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
                raise FormatError(reason, file=self.file, line=len(self) + 1)
            length *= 4


def _stripped(text: bytes, *, is_first: bool) -> bytes:
    """Without what is tolerated around a line, as :func:`reenact.formats.lines.read_lines` tolerates it."""
    text = text.removesuffix(b"\r")
    return text.removeprefix(_BOM) if is_first else text


RunKind: TypeAlias = Literal["capture", "events", "replay-log", "replay-log-legacy", "bundle", "trace"]
"""``events`` is the log of a capture without the rest of it, as ``git difftool`` hands it over."""


class Header(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, kw_only=True):
    """What an artifact says of itself; what it does not say is ``None``."""

    path: str
    kind: RunKind
    state: str | None = None
    """Of a capture: ``open``, ``interrupted``, ``complete`` or ``recovered``."""
    status: str | None = None
    """``ok``, ``error``, or the format's own word; ``None`` while the run is not finished."""
    capture_id: str | None = None
    run_id: str | None = None
    created_at_ms: int | float | None = None
    completed_at_ms: int | float | None = None
    provider: str | None = None
    model: str | None = None
    redaction: str | None = None
    producer: str | None = None
    command: tuple[str, ...] | None = None
    error: str | None = None
    exit_status: int | None = None
    final_output: Any = None
    token_usage: Any = None
    """Where the artifact states the run's use of tokens, not each call's."""
    warnings: tuple[str, ...] = ()

    @property
    def is_open(self) -> bool:
        """Whether more events may come."""
        return self.state == "open"


class WithoutBlobs:
    """What the artifacts answer whose payloads are all in one file."""

    file: str

    def resolved(self, value: Any) -> Any:
        return value

    def find_alone(self, seq: int) -> None:
        """Whoever wants an event reads up to it."""

    def borrow_blobs(self, other: RunSource) -> None:
        """There is nothing to look for."""

    def blob(self, digest: object) -> bytes:
        raise StoreError(f"{self.file}: has no blobs, so not {digest}; name the capture")


class RunSource(Protocol):
    """One artifact, opened."""

    @property
    def path(self) -> str: ...

    @property
    def file(self) -> str:
        """The file whose lines the events are, for messages."""

    @property
    def count(self) -> int:
        """The number of the last event read so far."""

    @property
    def size_bytes(self) -> int: ...

    @property
    def read_bytes(self) -> int:
        """How far the pass over the artifact has come."""

    @property
    def torn_bytes(self) -> int:
        """Half an event behind the last whole one."""

    def header(self) -> Header:
        """What the artifact says of itself now."""

    def read_on(self) -> Iterator[EventHead]:
        """The heads of the next block of events; none where there are no more for now."""

    def find_alone(self, seq: int) -> Any:
        """An event as it stands in the file, found without reading what is before it; ``None`` where that
        cannot be: there is none, or it is told by way of others."""

    def raw(self, seq: int) -> Any:
        """An event that has been read, as it stands in the file."""

    def event(self, seq: int) -> RunEvent | None:
        """The same in common words; ``None`` for a line that is no event."""

    def resolved(self, value: Any) -> Any:
        """A payload of an event, put together from where its parts are stored."""

    def borrow_blobs(self, other: RunSource) -> None:
        """Look for payloads in *other* where they are not here; equal digests mean equal payloads."""

    def blob(self, digest: object) -> bytes:
        """The bytes of a payload; :class:`~reenact.errors.StoreError` where they are not here."""

    def close(self) -> None:
        """Let go of the file."""

    def verify(self) -> None:
        """Raise :class:`~reenact.errors.FormatError` where the artifact is not what it says it is."""

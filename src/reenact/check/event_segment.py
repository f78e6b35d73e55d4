"""What one segment of a capture's event log says; segments are scanned apart and joined in order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from reenact.check.findings import Finding, Severity
from reenact.check.links import SegmentLinks
from reenact.errors import FormatError
from reenact.formats.blocks import TextBlock, lines_of, split_block
from reenact.formats.capture import CaptureEvent, event_codec
from reenact.formats.glance import Glance
from reenact.formats.record import ABSENT
from reenact.store.references import blobs_in

BACKWARDS_TOLERANCE_MS: Final = 1000
"""Clocks are set back by small steps; more than this in one step is worth a word."""

_BLOB: Final = b'"$blob"'
_glance: Final = Glance(CaptureEvent)
_decode: Final = msgspec.json.Decoder().decode


class EventSegment(msgspec.Struct):
    """Lines are counted from the beginning of the log, in all members."""

    findings: list[Finding] = msgspec.field(default_factory=list)
    lines: int = 0
    """Without blank ones."""
    links: SegmentLinks = msgspec.field(default_factory=SegmentLinks)
    runs: dict[tuple[str, str], int] = msgspec.field(default_factory=dict)
    """Where each pair of capture and run is first named."""
    blobs: dict[str, int] = msgspec.field(default_factory=dict)
    """Where each blob is first named."""
    first_time: tuple[int, float] | None = None
    last_time_ms: float | None = None
    first_event: int | None = None
    end: int | None = None
    behind_end: int | None = None
    """The first event behind *end*."""
    starts_run: bool = False
    """Whether the first event is a run_start."""


class EventBlock(NamedTuple):
    """Some events, the lines they stand on, and those lines."""

    numbers: Sequence[int]
    events: Sequence[Any]
    """Of the types of :mod:`reenact.formats.capture`, or those that stand for them at a glance."""
    text: bytes


class EventScan:
    """Scans the segments of the log *file*."""

    def __init__(self, file: str) -> None:
        self.file = file

    def __call__(self, block: TextBlock) -> EventSegment:
        scan = _Scan(self.file)
        for events in scan.read(block):
            scan.take(events)
        return scan.segment

    def event_blocks(self, block: TextBlock) -> Iterator[EventBlock]:
        """The events of a segment."""
        return _Scan(self.file).read(block)


class _Scan:
    def __init__(self, file: str) -> None:
        self._file = file
        self.segment = EventSegment()

    def read(self, block: TextBlock) -> Iterator[EventBlock]:
        """The events of *block*: many at once where nothing is odd, else one by one."""
        for part in split_block(block):
            events = _glance.from_block(part.text)
            if events is None:
                yield from self._read_each(part)
            else:
                self.segment.lines += len(events)
                yield EventBlock(range(part.number, part.number + len(events)), events, part.text)

    def _read_each(self, part: TextBlock) -> Iterator[EventBlock]:
        for line in lines_of(part, file=self._file, report=self._unreadable):
            self.segment.lines += 1
            try:
                event = event_codec.from_bytes(line.text)
            except FormatError as error:
                self._unreadable(error.at(line=line.number))
            else:
                yield EventBlock((line.number,), (event,), line.text)

    def _unreadable(self, error: FormatError) -> None:
        self.segment.findings.append(Finding.of("event_unreadable", error, file=self._file))

    def _find(self, code: str, message: str, line: int, severity: Severity = "error") -> None:
        self.segment.findings.append(Finding(code, message, self._file, severity, line))

    def take(self, block: EventBlock) -> None:
        """Check the events of one block."""
        segment = self.segment
        if segment.first_event is None:
            segment.first_event = block.numbers[0]
            segment.starts_run = _name(block.events[0]) == "RunStart"
        self._check_times(block)
        self._check_identity(block)
        links = segment.links
        for number, event in zip(block.numbers, block.events, strict=True):
            if segment.end is not None and segment.behind_end is None:
                segment.behind_end = number
            link = link_of(event)
            if link is not None:
                is_call, call_id = link
                (links.call if is_call else links.outcome)(call_id, number)
            elif _name(event) == "RunEnd":
                segment.end = segment.end or number
            elif _name(event) == "RunStart" and number > 1:
                self._find("second_start", "a run starts once, with the first event", number)
        if _BLOB in block.text:
            self._note_blobs(block)

    def _check_identity(self, block: EventBlock) -> None:
        """Whether each event is the one of its line, in its run."""
        runs = self.segment.runs
        if not runs.keys() >= {(event.captureId, event.runId) for event in block.events}:
            for number, event in zip(block.numbers, block.events, strict=True):
                runs.setdefault((event.captureId, event.runId), number)
        if [event.seq for event in block.events] != [*block.numbers]:
            for number, event in zip(block.numbers, block.events, strict=True):
                if event.seq != number:
                    self._find("sequence", f"seq {event.seq} stands where {number} should", number)

    def _check_times(self, block: EventBlock) -> None:
        times = [event.ts for event in block.events]
        segment = self.segment
        segment.first_time = segment.first_time or (block.numbers[0], times[0])
        before = times[0] if segment.last_time_ms is None else segment.last_time_ms
        if times != sorted(times) or times[0] < before:
            for number, time in zip(block.numbers, times, strict=True):
                segment.findings += went_back(before, (number, time), self._file)
                before = time
        segment.last_time_ms = times[-1]

    def _note_blobs(self, block: EventBlock) -> None:
        for number, line in zip(block.numbers, block.text.split(b"\n"), strict=False):
            for digest in blobs_in(_decode(line)) if _BLOB in line else ():
                self.segment.blobs.setdefault(digest, number)


def link_of(event: Any) -> tuple[bool, str] | None:
    """Whether *event* is a call, and its id; ``None`` for one that stands by itself."""
    name = _name(event)
    call_id = getattr(event.data, "callId", ABSENT)
    if call_id is ABSENT or name == "StateMutation":
        return None
    if name == "Nondeterministic":
        return event.data.request is not ABSENT, call_id
    return name in ("ToolCall", "LlmRequest"), call_id


def _name(event: Any) -> str:
    return type(event).__name__


def went_back(before_ms: float, placed: tuple[int, float], file: str) -> list[Finding]:
    """The finding on a time that is earlier than the one *before*, if it is."""
    line, time_ms = placed
    back_ms = before_ms - time_ms
    if back_ms <= BACKWARDS_TOLERANCE_MS:
        return []
    return [Finding("time", f"goes back by {back_ms / 1000:.1f} s", file, "warning", line)]

"""A file of lines scanned in segments, and the links between calls and outcomes across them.

Most calls are made once and get their outcome later. Each segment reports the calls within it that are not
like that, and joining the segments finds those across them. Only these few keys are followed line by line,
in a second pass, so that memory hardly grows with the log.
"""

from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import BinaryIO, Final, Literal, NamedTuple, TypeAlias, TypeVar

import msgspec

from reenact.formats.lines import TextBlock, read_text_blocks
from reenact.workers import map_batches

SEGMENT_BYTES: Final = 512 * 1024

S = TypeVar("S")
Scan: TypeAlias = Callable[[TextBlock], S]


def scan_segments(
    stream: BinaryIO, scan: Scan[S], *, processes: int = 1, segment_bytes: int = SEGMENT_BYTES
) -> Iterator[tuple[int, S]]:
    """The size and the result of *scan* of each segment, in order, with any number of processes.

    With several processes, *scan* and its results must be picklable, and the main script must be safe to
    import.
    """
    blocks = read_text_blocks(stream, block_bytes=segment_bytes)
    if processes <= 1:
        for block in blocks:
            yield len(block.text), scan(block)
        return
    sizes: deque[int] = deque()

    def measured_blocks() -> Iterator[TextBlock]:
        for block in blocks:
            sizes.append(len(block.text))
            yield block

    for result in map_batches(scan, measured_blocks(), jobs=processes, works_here=True):
        yield sizes.popleft(), result


_PART_KEYS: Final = 1 << 18
"""The number of keys that are compared at a time."""

Fault: TypeAlias = Literal["second_call", "second_outcome", "no_call", "no_outcome"]


LinkEvent: TypeAlias = tuple[int, bool, str]
"""A line number, whether it is a call, and the key that the call shares with its outcome."""


class LinkFault(NamedTuple):
    line: int
    fault: Fault
    key: str


class SegmentLinks(msgspec.Struct):
    """The calls and outcomes of one segment."""

    places: dict[str, int] = msgspec.field(default_factory=dict)
    """By key: the line of a call without an outcome, 0 for a call with one, and the negative line of an
    outcome without a call. One number, because this runs for every line of a log."""
    odd: set[str] = msgspec.field(default_factory=set)
    """Keys with repeated calls or outcomes."""

    def add(self, is_call: bool, key: str, line: int) -> None:
        """Add the call, or the outcome, at *line*."""
        noted = line if is_call else -line
        place = self.places.setdefault(key, noted)
        if place > 0 and not is_call:
            self.places[key] = 0
        elif place != noted:
            self.odd.add(key)


class Links(msgspec.Struct):
    """The segments of a log, joined in their order."""

    hashes: array[int] = msgspec.field(default_factory=partial(array, "q"))
    """The hash of every called key, once per segment: 8 bytes each."""
    waiting: dict[str, int] = {}
    """The lines of the calls without an outcome so far, by key."""
    suspects: set[str] = set()

    def join(self, segment: SegmentLinks) -> None:
        """Add the next segment, in order."""
        self.suspects |= segment.odd
        called = dict(segment.places)
        for key, place in segment.places.items() if any(called.values()) else ():
            if place > 0:
                self.waiting[key] = place
            elif place < 0:
                del called[key]
                if self.waiting.pop(key, None) is None:
                    self.suspects.add(key)
        self.hashes.extend(map(hash, called))

    def find_faults(self, read_again: Callable[[Suspects], Iterable[LinkEvent]]) -> list[LinkFault]:
        """All faults; *read_again* returns every event of the few keys that must be followed line by line."""
        repeated: set[int] = set()
        parts = len(self.hashes) // _PART_KEYS + 1
        for part in range(parts):  # a part of the keys at a time, to limit memory
            seen: set[int] = set()
            for number in self.hashes:
                if parts == 1 or number % parts == part:
                    (repeated if number in seen else seen).add(number)
        suspects = Suspects(self.suspects, repeated) if self.suspects or repeated else None
        faults = [] if suspects is None else follow(read_again(suspects))
        for key, line in self.waiting.items():
            if suspects is None or key not in suspects:
                faults.append(LinkFault(line, "no_outcome", key))
        return faults


class Suspects(msgspec.Struct):
    """Keys that may be faulty, some known only by their hash; following them clears hash collisions."""

    keys: set[str]
    hashes: set[int]

    def __contains__(self, key: object) -> bool:
        return key in self.keys or hash(key) in self.hashes


def follow(events: Iterable[LinkEvent]) -> list[LinkFault]:
    """The faults of some keys; *events* has all events of these keys."""
    waiting: dict[str, int] = {}
    called: set[str] = set()
    faults: list[LinkFault] = []
    for line, is_call, key in events:
        if is_call:
            if key in called:
                faults.append(LinkFault(line, "second_call", key))
            called.add(key)
            waiting[key] = line
        elif waiting.pop(key, None) is None:
            faults.append(LinkFault(line, "second_outcome" if key in called else "no_call", key))
    return faults + [LinkFault(line, "no_outcome", key) for key, line in waiting.items()]

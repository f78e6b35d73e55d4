"""The event log: numbers the events of a run and writes them to its sink."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterable
from itertools import groupby
from threading import RLock
from time import time_ns
from typing import Final

import msgspec

from reenact.boundary import Lane
from reenact.canonical import encode_clean
from reenact.formats.capture import JOINED, PUT, READ, TOGETHER, TOOK, CaptureSeed, event_codec
from reenact.lane_name import ROOT
from reenact.recorder.sink import BatchSink, CaptureSink, SyncedSink

_COUNTED: Final = (PUT, TOOK, READ, READ + JOINED, READ + TOGETHER)
"""Acts that a task may do many times in a row."""
MOST_ACTS: Final = 10_000
"""At most this many acts of tasks are noted between two events."""


_CALL_NUMBER: Final = re.compile(rb'"callId":"[^"]*?[cg](\d{1,15})"')


def last_call_number(lines: Iterable[bytes]) -> int:
    """The highest number of a call in the events of *lines*; 0 without any."""
    return max((int(number) for line in lines for number in _CALL_NUMBER.findall(line)), default=0)


class ProcessNames(msgspec.Struct, frozen=True):
    """Names the lanes and calls of one process where several processes record into one capture.

    Each process calls its first lane ``0``; in the capture only the first process keeps that name.
    """

    root: str = ROOT
    """The lane above all lanes of this process."""
    call_prefix: str = "c"
    """The prefix of call ids."""

    @classmethod
    def of_process(cls, root: str) -> ProcessNames:
        return cls() if root == ROOT else cls(root, f"{root}c")

    def lane(self, lane: Lane) -> str:
        # The first process skips the renaming: this is on the path of every call.
        return lane.name if self.root is ROOT else lane.name_under(self.root)


class _Acts(msgspec.Struct):
    """An act of a lane between two events, and how often it was repeated."""

    lane: Lane
    act: str
    count: int = 1


class EventLog:
    """The events of one run, appended by any number of threads.

    After an append was interrupted, by Ctrl-C for one, the sink says how many events it has, so that no
    number is used twice or left out.
    """

    def __init__(
        self,
        sink: CaptureSink,
        seed: CaptureSeed,
        place: Callable[[Lane], str | None],
        now_ns: Callable[[], int] = time_ns,
    ) -> None:
        """*place* returns the name of a lane in the capture, ``None`` while it is unknown."""
        self._sink = sink
        self._place = place
        self._now_ns = now_ns
        self._sync = sink.sync if isinstance(sink, SyncedSink) else None
        self._write_lines = sink.append_all if isinstance(sink, BatchSink) else self._append_each
        ids = tuple(encode_clean(name).replace(b"%", b"%%") for name in (seed.captureId, seed.runId))
        self._line = (
            b'{"captureId":%b,"data":%%b%%b,"runId":%b,"seq":%%d,"ts":%%d,"type":"%%b","version":1}' % ids
        )
        self.lock = RLock()
        """Held while events are written that must not be separated."""
        self.seq = 0
        """The number of the latest event."""
        self._is_writing = False
        self._interrupting: deque[tuple[bytes, bytes]] = deque()
        """Events that a signal handler or a generator's finalizer recorded during an append."""
        self._order: list[_Acts] = []
        """The acts to write with the next event."""
        self._deferred: deque[Callable[[], None]] = deque()
        """Deferred writes; they come before any other event, in this order."""

    def append(self, event_type: bytes, data: bytes) -> None:
        """Write one event; *data* is canonical JSON."""
        with self.lock:
            if self._deferred:
                self.write_deferred()
            if self._is_writing:
                self._interrupting.append((event_type, data))
                return
            self._is_writing = True
            try:
                while True:
                    seq = self.seq + 1
                    order = self._take_order() if self._order else b""
                    self._sink.append(
                        self._line % (data, order, seq, self._now_ns() // 1_000_000, event_type)
                    )
                    self.seq = seq
                    if not self._interrupting:
                        break
                    event_type, data = self._interrupting.popleft()
            except BaseException:
                self.seq = self._sink.count
                raise
            finally:
                self._is_writing = False
        if self._sync is not None:
            self._sync()

    def append_all(self, events: Iterable[tuple[bytes, bytes, int]]) -> None:
        """Write imported events, each given as type, data and time in ms."""
        with self.lock:
            if self._deferred:
                self.write_deferred()
            order = self._take_order() if self._order else b""
            lines = []
            for seq, (event_type, data, time_ms) in enumerate(events, self.seq + 1):
                lines.append(self._line % (data, order, seq, time_ms, event_type))
                order = b""
            try:
                self._write_lines(lines)
            finally:
                self.seq = self._sink.count
        if self._sync is not None:
            self._sync()

    def _append_each(self, lines: list[bytes]) -> None:
        for line in lines:
            self._sink.append(line)

    def defer(self, write: Callable[[], None]) -> None:
        """Let *write* append its event later: in :meth:`write_deferred`, or before the next event."""
        with self.lock:
            self._deferred.append(write)

    def write_deferred(self) -> None:
        """Flush the deferred writes in order."""
        with self.lock:  # another thread may be writing what the caller waits for
            deferred, self._deferred = self._deferred, deque()
            try:
                while deferred:
                    deferred.popleft()()
            finally:
                self._deferred.extendleft(reversed(deferred))

    def forget_deferred(self) -> None:
        """Drop the deferred writes without taking the lock."""
        self._deferred = deque()

    def refuse_unreadable(self, event_type: bytes, data: bytes) -> None:
        """Raise :class:`~reenact.errors.FormatError` for an event that could not be read again."""
        event_codec.from_bytes(self._line % (data, b"", 1, 0, event_type))

    def note_order(self, lane: Lane, act: str) -> None:
        """Note that *lane* did *act*; it is written with the next event, up to :data:`MOST_ACTS` of them."""
        order = self._order
        if order and order[-1].lane is lane and order[-1].act == act:
            order[-1].count += 1
        elif len(order) < MOST_ACTS:
            order.append(_Acts(lane, act))

    def _take_order(self) -> bytes:
        acts, self._order = self._order, []
        rows = ((self._place(row.lane), row.act, row.count) for row in acts)
        named = [f"{name}{act}{count if count > 1 else ''}" for name, act, count in rows if name is not None]
        return b',"order":%b' % encode_clean(named) if named else b""


def count_acts(acts: Iterable[str]) -> list[str]:
    """The acts of tasks as an event lists them: repeated ones once, with a count."""
    rows = ((act, len(list(row))) for act, row in groupby(acts))
    return [f"{act}{count if count > 1 and act.endswith(_COUNTED) else ''}" for act, count in rows]

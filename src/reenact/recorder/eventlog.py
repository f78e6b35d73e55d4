"""Events in a row: each gets the next number and goes to the sink."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from itertools import groupby
from threading import RLock
from time import time_ns
from typing import Final

import msgspec

from reenact.boundary import Lane
from reenact.canonical import encode_clean
from reenact.formats.capture import PUT, TOOK, CaptureSeed, event_codec
from reenact.lane_name import ROOT
from reenact.recorder.sink import BatchSink, CaptureSink, SettlingSink

MOST_ACTS: Final = 10_000
"""How many are noted between two events."""


class ProcessNames(msgspec.Struct, frozen=True):
    """What lanes and calls of one process are called in the capture, where several processes record.

    In a process the first lane is always ``0``; in the capture that is its name in the first process only.
    """

    root: str = ROOT
    """The lane from which those of this process descend."""
    call_prefix: str = "c"
    """What the ids of calls begin with."""

    @classmethod
    def of_process(cls, root: str) -> ProcessNames:
        return cls() if root == ROOT else cls(root, f"{root}c")

    def lane(self, lane: Lane) -> str:
        # Not asked of the lane in the first process: this is on the path of every call.
        return lane.name if self.root is ROOT else lane.name_under(self.root)


class _Acts(msgspec.Struct):
    """What a lane did between two events, and how often in a row."""

    lane: Lane
    act: str
    count: int = 1


class EventLog:
    """The events of one run, from any number of threads.

    After an append that did not end normally, on a Ctrl-C for one, the sink is asked how many events it
    has, so that no number is given twice or left out.
    """

    def __init__(
        self,
        sink: CaptureSink,
        seed: CaptureSeed,
        place: Callable[[Lane], str | None],
        now_ns: Callable[[], int] = time_ns,
    ) -> None:
        """*place* tells what a lane is called in the capture, once that is known."""
        self._sink = sink
        self._place = place
        self._now_ns = now_ns
        self._settle = sink.settle if isinstance(sink, SettlingSink) else None
        self._write_lines = sink.append_all if isinstance(sink, BatchSink) else self._append_each
        ids = tuple(encode_clean(name).replace(b"%", b"%%") for name in (seed.captureId, seed.runId))
        self._line = (
            b'{"captureId":%b,"data":%%b%%b,"runId":%b,"seq":%%d,"ts":%%d,"type":"%%b","version":1}' % ids
        )
        self.lock = RLock()
        """Held by whoever writes what must stay together."""
        self.seq = 0
        """The number of the latest event."""
        self._is_writing = False
        self._interrupting: deque[tuple[bytes, bytes]] = deque()
        """What a signal handler or a collected generator recorded in the middle of an append."""
        self._order: list[_Acts] = []
        """What is to be written with the next event."""
        self._deferred: deque[Callable[[], None]] = deque()
        """How to write what comes before any other event, in its order."""

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
        if self._settle is not None:
            self._settle()

    def append_all(self, events: Iterable[tuple[bytes, bytes, int]]) -> None:
        """Write events that were told: type, data and time in ms of each."""
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
        if self._settle is not None:
            self._settle()

    def _append_each(self, lines: list[bytes]) -> None:
        for line in lines:
            self._sink.append(line)

    def defer(self, write: Callable[[], None]) -> None:
        """Let *write* append its event later: when asked to, or before anybody writes the next one."""
        with self.lock:
            self._deferred.append(write)

    def write_deferred(self) -> None:
        """Write what is deferred, in the order in which it was."""
        with self.lock:  # another thread may be writing what the caller waits for
            deferred, self._deferred = self._deferred, deque()
            try:
                while deferred:
                    deferred.popleft()()
            finally:
                self._deferred.extendleft(reversed(deferred))

    def forget_deferred(self) -> None:
        """Nothing more is recorded; takes no lock."""
        self._deferred = deque()

    def refuse_unreadable(self, event_type: bytes, data: bytes) -> None:
        """Raise :class:`~reenact.errors.FormatError` for an event that could not be read again."""
        event_codec.from_bytes(self._line % (data, b"", 1, 0, event_type))

    def note_order(self, lane: Lane, act: str) -> None:
        """Write with the next event that *lane* did *act* before it; of very many the first ones."""
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
    """What tasks did, as an event tells it: what was done several times in a row is told once."""
    rows = ((act, len(list(row))) for act, row in groupby(acts))
    return [f"{act}{count if count > 1 and act.endswith((PUT, TOOK)) else ''}" for act, count in rows]

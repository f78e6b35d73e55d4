"""Events in a row: each gets the next number and goes to the sink."""

from __future__ import annotations

from collections import deque
from threading import RLock
from time import time

from reenact.canonical import encode_clean
from reenact.formats.capture import CaptureSeed
from reenact.recorder.sink import CaptureSink


class EventLog:
    """The events of one run, from any number of threads.

    An event's number follows from the sink's own count, so an append that was interrupted, by Ctrl-C
    for one, is neither counted twice nor forgotten.
    """

    def __init__(self, sink: CaptureSink, seed: CaptureSeed) -> None:
        self._sink = sink
        self._prefix = b'{"captureId":%b,"data":' % encode_clean(seed.captureId)
        self._middle = b',"runId":%b,"seq":' % encode_clean(seed.runId)
        self.lock = RLock()
        """Held by whoever writes what must stay together."""
        self._is_writing = False
        self._interrupting: deque[tuple[bytes, bytes]] = deque()
        """What a signal handler or a collected generator recorded in the middle of an append."""

    @property
    def seq(self) -> int:
        """The number of the latest event."""
        return self._sink.count

    def append(self, event_type: bytes, data: bytes) -> None:
        """Write one event; *data* is canonical JSON."""
        with self.lock:
            if self._is_writing:
                self._interrupting.append((event_type, data))
                return
            self._is_writing = True
            try:
                self._sink.append(self.line(event_type, data))
                while self._interrupting:
                    self._sink.append(self.line(*self._interrupting.popleft()))
            finally:
                self._is_writing = False

    def line(self, event_type: bytes, data: bytes) -> bytes:
        """The text of an event, if it is the next one."""
        return b'%b%b%b%d,"ts":%d,"type":"%b","version":1}' % (
            self._prefix,
            data,
            self._middle,
            self._sink.count + 1,
            time() * 1000,
            event_type,
        )

"""A sink that creates the capture directory at the run's first call.

Of all Python processes that a command starts, those that make calls are the agent; the others (a package
manager, a launcher, a one-liner in a script) leave no capture.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from threading import Lock

from reenact.errors import StoreError
from reenact.formats.capture import CaptureManifest, CaptureSeed
from reenact.recorder.sink import Ending, FileCaptureSink
from reenact.store.durable import Durability
from reenact.store.rundir import RunDir


class FirstCallSink:
    """Holds ``run_start`` back until another event follows.

    If another process has its capture in *path* by then, this one is written to the path that *beside*
    returns, and joined later.
    """

    def __init__(self, path: Path, *, durability: Durability, beside: Callable[[], Path]) -> None:
        self._path = path
        self._beside = beside
        self._durability: Durability = durability
        self._sink = FileCaptureSink(path, durability=durability, is_claimed=True)
        self._lock = Lock()
        self._first: bytes | None = None
        self.is_open = False
        self.refusal: StoreError | None = None
        """Why the directory could not be created."""

    def start(self, seed: CaptureSeed) -> None:
        self._seed = seed
        self._home_pid = os.getpid()

    def append(self, event: bytes, /) -> object:
        if self._first is None:
            self._first = event
            return None
        self.open()
        return self._sink.append(event)

    def put_blob(self, data: bytes, /) -> str:
        self.open()
        return self._sink.put_blob(data)

    @property
    def count(self) -> int:
        return self._sink.count if self.is_open else int(self._first is not None)

    def finalize(self, ending: Ending) -> CaptureManifest:
        return self._sink.finalize(ending)

    def open(self) -> None:
        """Create the directory now, unless it is open already."""
        if not self.is_open:
            self._open(self._first)

    def _open(self, first: bytes | None) -> None:
        if os.getpid() != self._home_pid:
            raise StoreError(f"{self._path}: belongs to the parent process; only that one is recorded")
        with self._lock:
            if self.is_open:
                return
            try:
                self._start()
            except StoreError as error:
                self.refusal = error
                raise
            if first is not None:
                self._sink.append(first)
            self.is_open = True

    def _start(self) -> None:
        try:
            self._sink.start(self._seed)
        except StoreError:
            # The command has claimed the directory, so a capture in it was made by a sibling process.
            if not RunDir(self._path).is_capture:
                raise
            self._sink = FileCaptureSink(self._beside(), durability=self._durability)
            self._sink.start(self._seed)

"""Noting what happens in a fork, in order, and recording what is new."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from reenact.boundary import Call, Lane
from reenact.canonical import digest_of_bytes, encode_clean
from reenact.forks.change import ANSWERS
from reenact.formats.capture import CaptureManifest, CaptureSeed
from reenact.recorder.context import CaptureContext
from reenact.recorder.derived import DerivingContext
from reenact.recorder.eventlog import ProcessNames, last_call_number
from reenact.recorder.order import ActLog, TaskOrder
from reenact.recorder.sink import Ending
from reenact.store.blobs import BlobStore
from reenact.store.reader import CaptureReader
from reenact.values.codec import from_json


class Happening(msgspec.Struct, frozen=True, array_like=True):
    """Something that happened in a fork: a recorded or new event, the beginning of a stream, or an act."""

    at_ns: int
    seq: int = 0
    """The recorded event that happened again; for an act, the shared event from which it moves."""
    line: str = ""
    """The new event."""
    began: str = ""
    """The id of the call whose stream has begun."""
    place: tuple[str, str] | None = None
    """For a recorded event that moved: its new lane, and the id of the call that contains it."""
    act: str = ""
    """The act of a task, as in ``order``."""
    rounds: int | None = None
    """For an outcome: the event loop rounds since the last other input, -1 if the loop was idle.

    ``None`` if it came at its recorded time.
    """


class NewEvents:
    """A sink for new events."""

    def __init__(
        self, happened: Callable[[Happening], None], blobs: BlobStore, manifest: CaptureManifest
    ) -> None:
        self._happened = happened
        self._manifest = manifest
        self.put_blob = blobs.put
        self.count = 0
        self.ending: Ending | None = None
        self.end = ""
        """The event that ends the run."""

    def start(self, seed: CaptureSeed) -> None:
        """Nothing is written before the end."""

    def append(self, event: bytes) -> None:
        self.count += 1
        self.end = event.decode()
        self._happened(Happening(time.time_ns(), line=self.end))

    def finalize(self, ending: Ending) -> CaptureManifest:
        self.ending = ending
        return self._manifest


class ForkNames(ProcessNames, frozen=True):
    """Names lanes like the recorded lanes that they replay."""

    name_of: Callable[[Lane], str] = lambda lane: lane.name

    def lane(self, lane: Lane) -> str:
        return self.name_of(lane)


class LaterNumbers(Iterator[int]):
    """Call numbers beyond those of a recording; the first use reads all of it."""

    def __init__(self, reader: CaptureReader) -> None:
        self._reader = reader
        self._lock = threading.Lock()
        self._last: int | None = None

    def __next__(self) -> int:
        with self._lock:
            if self._last is None:
                self._last = last_call_number(self._reader.lines())
            self._last += 1
            return self._last


class ForkRecorder(CaptureContext):
    """Records what is new in a fork."""

    def __init__(
        self,
        happened: Callable[[Happening], None],
        acts: ActLog,
        numbers: Iterator[int],
        *args: Any,
        **options: Any,
    ) -> None:
        super().__init__(*args, **options)
        self._happened = happened
        self._call_numbers = numbers
        self._order = TaskOrder(acts, is_recording=lambda: self._failure is None)
        self.rounds_since_last = self._order.rounds_since_last

    def task_began(self, lane: Lane) -> None:
        self._order.running.add(lane)

    def stream_began(self, call_id: str, leave: Callable[[], None]) -> tuple[int, int]:
        began = super().stream_began(call_id, leave)
        self._happened(Happening(time.time_ns(), began=call_id))
        return began

    def register_request(self, call_id: str, request: object) -> None:
        """Register a recorded request, so that later requests can refer to it."""
        with self._events.lock:
            self._sharing.shrink(call_id, request)

    def append(self, event_type: str, data: dict[str, object]) -> None:
        """Write an event whose data need no conversion."""
        self._events.append(event_type.encode(), encode_clean(data))

    def store_outcome(
        self, event_type: str, data: dict[str, object], raised: BaseException | None
    ) -> dict[str, object]:
        """The data of a changed outcome in their stored form."""
        member = ANSWERS.get(event_type, "value")
        data = {**data}
        if raised is not None:
            del data[member]
            data["error"] = self._payloads.failure(raised)
            if event_type == "tool_result":
                data["ok"] = False
        elif "error" in data:
            data["error"] = self._payloads.store(self._redactor.redact_json(encode_clean(data["error"])))
        else:
            value = from_json(data[member])
            is_http = event_type != "tool_result" and isinstance(value, dict)
            answer = self._payloads.answer(dict(sorted(value.items())) if is_http else value)
            data[member] = answer.stored
            if event_type == "nondeterministic":
                data["valueHash"] = digest_of_bytes(answer.text)
            if "pieces" in data:
                data["pieces"] = self._payloads.store(
                    self._redactor.redact_json(encode_clean(data["pieces"]))
                )
        return data

    def derive_from(self, call: Call) -> None:
        """Derive nothing: tool calls are recorded directly here."""

    def derive_calls(self, call_id: str, lane: str, outcome: dict[str, object]) -> None:
        """Likewise."""


class DerivingRecorder(ForkRecorder, DerivingContext):
    def derive_from(self, call: Call) -> None:
        if call.kind == "llm":
            self.derive_results(call)

    def derive_calls(self, call_id: str, lane: str, outcome: dict[str, object]) -> None:
        self.derive_recorded_calls(call_id, lane, outcome)

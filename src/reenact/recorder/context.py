"""Recording: every call that crosses the boundary becomes events.

A failure to record never reaches the agent: the run goes on unrecorded, a warning is emitted, and the
manifest says that the capture is not whole.
"""

from __future__ import annotations

import itertools
import logging
import threading
from asyncio import CancelledError, get_running_loop
from collections.abc import Callable, Iterator
from hashlib import sha256
from time import time
from typing import Any, Final, NamedTuple

import msgspec

from reenact.boundary import Call, CallKind, Instant, Lane, RunMode
from reenact.canonical import digest_of_bytes, encode_clean
from reenact.errors import ReenactError, UsageError
from reenact.formats.capture import NO_MODEL, CaptureManifest, CaptureSeed, Model, RunStatus
from reenact.formats.failures import failure_text
from reenact.formats.values import embedded, to_ordered_text, to_text
from reenact.recorder.redaction import Redactor
from reenact.recorder.sharing import Sharing
from reenact.recorder.sink import CaptureSink, Ending

log: Final = logging.getLogger("reenact.recorder")

_Raw = msgspec.Raw


class _Shape(NamedTuple):
    """How the events of one kind of call are written."""

    call_type: bytes
    request_member: str
    outcome_type: bytes
    answer_member: str


_SHAPES: Final[dict[CallKind, _Shape]] = {
    "tool": _Shape(b"tool_call", "args", b"tool_result", "result"),
    "llm": _Shape(b"llm_request", "request", b"llm_response", "response"),
    "network": _Shape(b"nondeterministic", "request", b"nondeterministic", "value"),
    "process": _Shape(b"nondeterministic", "request", b"nondeterministic", "value"),
}


class CaptureContext:
    """The context of a run that is being recorded."""

    mode: RunMode = "capture"

    def __init__(
        self,
        sink: CaptureSink,
        seed: CaptureSeed,
        redactor: Redactor,
        *,
        on_warning: Callable[[str], None] | None = None,
    ) -> None:
        self._sink = sink
        self._seed = seed
        self._redactor = redactor
        self._on_warning = on_warning
        self._threshold_bytes = int(seed.blobThresholdBytes or 0)
        self._prefix = b'{"captureId":%b,"data":' % encode_clean(seed.captureId)
        self._middle = b',"runId":%b,"seq":' % encode_clean(seed.runId)
        self._lock = threading.RLock()  # a signal handler may make a call in the middle of one
        self._call_numbers = itertools.count(1)
        self._sharing = Sharing()
        self._model = NO_MODEL
        self._failure: str | None = None
        self.seq = 0
        """The number of the latest event."""
        self.warnings: list[str] = []

    def start(self) -> None:
        """Begin the run; here, and only here, a failing sink is the caller's problem."""
        self._sink.start(self._seed)

    # The boundary's side

    def step(self, call: Call, lane: Lane) -> CaptureStep:
        step = CaptureStep(self, call, f"c{next(self._call_numbers)}")
        try:
            self._record_call(call, lane, step.call_id)
        except Exception as error:
            self._fail(error)
        return step

    def instant(self, instant: Instant, lane: Lane, produce: Callable[[], Any]) -> Any:
        value = produce()
        try:
            self._record_instant(instant, lane, value)
        except Exception as error:
            self._fail(error)
        return value

    def loop_seen(self, loop: Any) -> None:
        """Recording does not care what runs where."""

    def lane_began(self, lane: Lane) -> None:
        """Nor when it starts."""

    def lane_ended(self, lane: Lane) -> None:
        """Nor when it ends."""

    # The seed's side

    def record_event(self, event_type: str, data: dict[str, Any]) -> None:
        """Append one event of the caller's own making."""
        try:
            self._append(event_type.encode(), self._payload_text(data))
        except Exception as error:
            self._fail(error)

    def record_nondeterministic(self, source: str, key: str, value: Any) -> None:
        """Record a value that came from chance or from outside."""
        from_outside = Instant("nondeterministic", {"source": source, "key": key})
        self.instant(from_outside, Lane(self, "0"), lambda: value)

    def next_nondeterministic(self, source: str, key: str) -> Any:
        """Only a replay has recorded values to give."""
        raise UsageError(f"{source}/{key}: the run is being recorded; values are given in replay only")

    def finalize(self, status: RunStatus, error: str | None, final_output: Any) -> CaptureManifest | None:
        """End the run; ``None`` when not even the manifest could be written."""
        data: dict[str, Any] = {"status": status}
        if error is not None:
            data["error"] = error = self._redactor.redact_text(error)
        if final_output is not None:
            text = self._redactor.redact_json(to_text(final_output))
            data |= {"finalOutput": self._stored(text), "finalOutputHash": digest_of_bytes(text)}
        if self._failure is None:
            try:
                self._append(b"run_end", encode_clean(data))
            except Exception as failure:
                self._fail(failure)
        if self._failure is not None:
            status, error = "error", self._failure
        ending = Ending(status, _now_ms(), self._model, error, tuple(self.warnings))
        try:
            return self._sink.finalize(ending)
        except (ReenactError, OSError) as failure:
            self._fail(failure)
            return None

    def warn(self, message: str) -> None:
        """Emit a warning event: to the log, to the listener, into the manifest."""
        message = self._redactor.redact_text(message)
        self.warnings.append(message)
        log.warning("%s", message)
        if self._on_warning is not None:
            self._on_warning(message)

    # Writing

    def _record_call(self, call: Call, lane: Lane, call_id: str) -> None:
        if self._failure is not None:
            return
        shape = _SHAPES[call.kind]
        text = self._redactor.redact_json(to_text(call.request))
        data: dict[str, Any] = {"callId": call_id, "lane": lane.name}
        if lane.within is not None:
            data["parent"] = lane.within
        if call.kind == "tool":
            data["tool"] = call.name
            data["args"] = self._stored(text)
        else:
            self._describe(call, call_id, text, data)
        self._append(shape.call_type, encode_clean(data))

    def _describe(self, call: Call, call_id: str, text: bytes, data: dict[str, Any]) -> None:
        if call.kind == "llm":
            self._note_model(call.facts)
            data["requestHash"] = digest_of_bytes(text)
            text = encode_clean(self._sharing.shrink(call_id, msgspec.json.decode(text)))
        else:
            data |= {"source": call.kind, "key": self._redactor.redact_text(call.name)}
        if call.facts:
            data |= msgspec.json.decode(self._payload_text(call.facts))
        data["request"] = self._stored(text)

    def _note_model(self, facts: dict[str, Any]) -> None:
        if self._model is NO_MODEL and "model" in facts:
            self._model = Model(provider=str(facts.get("provider")), model=str(facts["model"]))

    def _record_instant(self, instant: Instant, lane: Lane, value: Any) -> None:
        if self._failure is not None:
            return
        data = {**instant.request, "lane": lane.name}
        if lane.within is not None:
            data["parent"] = lane.within
        if instant.is_plain:
            text = encode_clean(value)
            data["value"] = _Raw(text)
        else:
            text = self._redactor.redact_ordered_json(to_ordered_text(value))
            data = msgspec.json.decode(self._redactor.redact_json(to_text(data)))
            data["value"] = self._stored_answer(text)
        if instant.type == "nondeterministic":
            data["valueHash"] = "sha256:" + sha256(text).hexdigest()
        self._append(instant.type.encode(), encode_clean(data))

    def record_outcome(self, step: CaptureStep, error: BaseException | None) -> None:
        """Write the outcome of *step*'s call."""
        if self._failure is not None:
            return
        try:
            shape = _SHAPES[step.call.kind]
            data: dict[str, Any] = {"callId": step.call_id} | step.timing()
            self._put_outcome(data, shape, step, error)
            self._append(shape.outcome_type, encode_clean(data))
        except Exception as failure:
            self._fail(failure)

    def _put_outcome(
        self, data: dict[str, Any], shape: _Shape, step: CaptureStep, error: BaseException | None
    ) -> None:
        kind = step.call.kind
        if kind == "tool":
            data["ok"] = error is None
        elif kind != "llm":
            data |= {"source": kind, "key": self._redactor.redact_text(step.call.name)}
        if step.facts:
            data |= msgspec.json.decode(self._payload_text(step.facts))
        if isinstance(error, CancelledError | GeneratorExit):
            data["cancelled"] = True
        elif error is not None:
            data["error"] = self._stored(self._redactor.redact_json(failure_text(error)))
        else:
            text = self._redactor.redact_ordered_json(to_ordered_text(step.answer))
            data[shape.answer_member] = self._stored_answer(text)
            if kind not in ("tool", "llm"):
                data["valueHash"] = digest_of_bytes(text)
        if step.recorded_pieces is not None:
            data["pieces"] = self._stored_answer(self._pieces_text(step.recorded_pieces))

    def _pieces_text(self, pieces: list[Any]) -> bytes:
        """A stream's pieces; a secret that was cut between two of them is found on the joined text."""
        if pieces and all(isinstance(piece, bytes) for piece in pieces):
            return to_ordered_text(self._redactor.redact_chunks(pieces))
        if pieces and all(isinstance(piece, str) for piece in pieces):
            chunks = [piece.encode("utf-8", "surrogatepass") for piece in pieces]
            redacted = self._redactor.redact_chunks(chunks)
            if redacted != chunks:
                pieces = [chunk.decode("utf-8", "replace") for chunk in redacted]
        return self._redactor.redact_ordered_json(to_ordered_text(pieces))

    def _payload_text(self, value: Any) -> bytes:
        return self._redactor.redact_json(to_text(value))

    def _stored(self, text: bytes) -> _Raw:
        """A payload as it stands in its event: itself, or a reference to its blob."""
        if len(text) <= self._threshold_bytes:
            return _Raw(text)
        return _Raw(encode_clean({"$blob": self._sink.put_blob(text), "bytes": len(text)}))

    def _stored_answer(self, ordered_text: bytes) -> _Raw:
        """The same for what the agent gets back in replay, where the order of members matters."""
        is_small = len(ordered_text) <= self._threshold_bytes
        return _Raw(embedded(ordered_text)) if is_small else self._stored(ordered_text)

    def _append(self, event_type: bytes, data: bytes) -> None:
        with self._lock:
            seq = self.seq + 1
            self._sink.append(
                b'%b%b%b%d,"ts":%d,"type":"%b","version":1}'
                % (self._prefix, data, self._middle, seq, time() * 1000, event_type)
            )
            self.seq = seq

    def _fail(self, error: BaseException) -> None:
        """Recording stops here; what is written so far stays."""
        if self._failure is None:
            self._failure = self._redactor.redact_text(f"recording failed: {error}")
            self.warn(f"recording failed, the run goes on unrecorded: {error}")


class CaptureStep:
    """A crossing that is being recorded: the seam makes the call."""

    __slots__ = ("_context", "_gave_way", "_opened", "answer", "call", "call_id", "facts", "recorded_pieces")
    live = True

    def __init__(self, context: CaptureContext, call: Call, call_id: str) -> None:
        self._context = context
        self.call = call
        self.call_id = call_id
        self.answer: Any = None
        self.facts: dict[str, Any] = {}
        self.recorded_pieces: list[Any] | None = None
        """What a stream handed out so far; ``None`` for a call that is no stream."""
        self._opened: int | None = None
        self._gave_way: bool | None = None

    def wait(self) -> None:
        """A recorded call waits for nothing."""

    async def turn(self) -> None:
        """Find out whether the call gives way to the loop: a replayed one must do the same."""
        self._gave_way = False
        get_running_loop().call_soon(self._loop_went_on)

    def _loop_went_on(self) -> None:
        self._gave_way = True

    def piece(self, value: Any) -> None:
        """A stream handed out *value*; from the first on, others may have seen its answer begin."""
        if self.recorded_pieces is None:
            self.recorded_pieces = []
            self._opened = self._context.seq
        self.recorded_pieces.append(value)

    def pieces(self) -> Iterator[Any]:
        """A live stream has no recorded pieces."""
        return iter(())

    def timing(self) -> dict[str, Any]:
        """What replay must know of when the outcome came."""
        facts: dict[str, Any] = {}
        if self._opened is not None:
            facts["opened"] = self._opened
        if self._gave_way is False:
            facts["inline"] = True
        return facts

    def close(self, error: BaseException | None) -> None:
        self._context.record_outcome(self, error)


def _now_ms() -> int:
    return int(time() * 1000)

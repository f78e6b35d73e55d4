"""From a capture to REPLAY.jsonl: its tool calls, their outcomes by hash, how the run began and ended.

Where no tool was seen at work, because the agent's tools are plain functions or run elsewhere, the calls are
those that the model traffic shows, marked ``derived``. Every field that the capture does not know, and every
event that the log has no place for, is named as a loss.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from reenact import canonical
from reenact.formats import capture
from reenact.formats.capture import CaptureEvent, CaptureManifest
from reenact.formats.dialects import current
from reenact.formats.dialects.common import REPLAY_VERSION
from reenact.formats.dialects.conversion import Conversion
from reenact.formats.dialects.turn import Loss
from reenact.formats.hashes import output_hash, params_hash
from reenact.formats.record import ABSENT
from reenact.store.reader import CaptureReader
from reenact.trace.derived_events import DerivedEvents
from reenact.trace.model_calls import as_text, error_of
from reenact.trace.normalize import rfc3339_of_ms
from reenact.trace.plain import plain

NO_POLICY: Final = "none"
"""The policy bundle of a run that was recorded under none."""

_NO_SUCH_FIELD: Final = "a replay log has no such field"


def replay_log_of_capture(reader: CaptureReader) -> Iterator[Conversion]:
    """The log in the current dialect, one conversion per event of the capture, in constant memory."""
    projection = _Projection(reader)
    for event in reader.events():
        yield projection.take(event)


class _Projection:
    """What the events before the one at hand have said."""

    def __init__(self, reader: CaptureReader) -> None:
        self._reader = reader
        self._manifest: CaptureManifest = reader.manifest
        self._open: dict[str, int | float] = {}
        """When each call that has no outcome yet was made."""
        self._tool_calls = 0
        self._latency_ms: int | float = 0
        self._derived = DerivedEvents(reader)
        self._losses: list[Loss] = []
        self._event: CaptureEvent | None = None

    def take(self, event: CaptureEvent) -> Conversion:
        self._losses = []
        events = [self._header(event)] if event.seq == 1 else []
        for each in self._derived.around(event):
            events += self._converted(each)
        return Conversion(tuple(events), tuple(self._losses))

    def _converted(self, event: CaptureEvent) -> list[current.Event]:
        self._event = event
        match event:
            case capture.RunStart():
                return [self._started(event)]
            case capture.ToolCall():
                return [self._called(event)]
            case capture.ToolResult():
                return [self._returned(event)]
            case capture.RunEnd():
                return [self._ended(event)]
            case _:
                self._lose(None, "a replay log has no such event")
                return []

    def _lose(self, field: str | None, reason: str) -> None:
        assert self._event is not None
        name = str(type(self._event).__struct_config__.tag)
        self._losses.append(Loss(self._event.seq, name, field, reason))

    def _lose_present(self, data: Any, *fields: str) -> None:
        for field in fields:
            if getattr(data, field) is not ABSENT:
                self._lose(field, _NO_SUCH_FIELD)
        for field in data.extra:
            self._lose(field, _NO_SUCH_FIELD)

    def _header(self, event: CaptureEvent) -> current.Event:
        producer = self._manifest.producer
        return current.ReplayHeader(
            created_at=rfc3339_of_ms(event.ts),
            producer="reenact" if producer is ABSENT else producer,
            replay_version=REPLAY_VERSION,
        )

    def _started(self, event: capture.RunStart) -> current.Event:
        self._lose("policy_bundle_id", f"required, but not recorded: {NO_POLICY!r} is filled in")
        self._lose_present(event.data, "argv", "cwd", "python")
        return current.SessionStart(
            policy_bundle_id=NO_POLICY, session_id=event.runId, ts=rfc3339_of_ms(event.ts)
        )

    def _called(self, event: capture.ToolCall) -> current.Event:
        data = event.data
        self._lose_present(data, "lane", "parent")
        params = self._plain("args", data.args)
        if not isinstance(params, dict):
            self._lose("args", "params are an object: the arguments stand in its member `args`")
            params = {"args": params}
        self._tool_calls += 1
        self._open[data.callId] = event.ts
        return current.ToolCall(
            params=params,
            params_hash=params_hash(params),
            session_id=event.runId,
            step_id=data.callId,
            tool=data.tool,
            ts=rfc3339_of_ms(event.ts),
            extra=_mark(data.derived),
        )

    def _returned(self, event: capture.ToolResult) -> current.Event:
        data = event.data
        self._lose_present(data, "opened", "opening", "inline", "closed", "exact")
        self._lose("side_effects", "required, but not recorded: none is filled in")
        self._lose("result", "a replay log has the hash of the output only")
        latency_ms = max(0, event.ts - self._open.pop(data.callId, event.ts))
        self._latency_ms += latency_ms
        error = self._error(data)
        message = None if error is None else error.message
        content = self._content(data) if error is None else ""
        return current.ToolResult(
            error=ABSENT if error is None else error,
            latency_ms=latency_ms,
            ok=data.ok,
            output_hash=output_hash(success=data.ok, content=content, error=message),
            session_id=event.runId,
            side_effects=[],
            step_id=data.callId,
            ts=rfc3339_of_ms(event.ts),
            extra=_mark(data.derived),
        )

    def _error(self, data: capture.ToolResultData) -> current.ToolError | None:
        if data.ok:
            return None
        if data.error is ABSENT:
            name = "cancelled" if data.cancelled is True else "error"
            return current.ToolError(name=name, message="")
        told = error_of(self._reader.resolved(data.error))
        return current.ToolError(name=told["error_type"], message=told["message"])

    def _content(self, data: capture.ToolResultData) -> str:
        """What the tool returned, as the text that an output hash covers."""
        stored = data.pieces if data.result is ABSENT else data.result
        value = None if stored is ABSENT else self._plain("result", stored)
        return value if isinstance(value, str) else canonical.encode(value).decode()

    def _ended(self, event: capture.RunEnd) -> current.Event:
        data = event.data
        is_ok = data.status == "ok"
        self._lose("confidence", f"required, but not recorded: {float(is_ok)} is filled in")
        self._lose_present(data, "finalOutputHash", "error")
        output = None if data.finalOutput is ABSENT else self._plain("finalOutput", data.finalOutput)
        return current.SessionEnd(
            confidence=float(is_ok),
            session_id=event.runId,
            status="success" if is_ok else "failure",
            summary=ABSENT if output is None else as_text(output),
            total_latency_ms=self._latency_ms,
            total_tool_calls=self._tool_calls,
            ts=rfc3339_of_ms(event.ts),
        )

    def _plain(self, field: str, stored: Any) -> Any:
        """A payload as plain JSON; that its Python types are gone is a loss."""
        resolved = self._reader.resolved(stored)
        value = plain(resolved)
        if value != resolved:
            self._lose(field, "Python's own types are written as plain JSON")
        return value


def _mark(derived: Any) -> dict[str, Any]:
    """A call that was read from model traffic says so: nobody saw it happen."""
    return {"derived": True} if derived is True else {}

"""Exports a run as an ATIF trajectory: messages, answers of the model with tool calls, and their results.

A tool call that a model asked for is part of the step of that answer. A tool call that was recorded on its
own is a step of the agent without a model.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Final

from reenact._version import __version__
from reenact.canonical import JsonValue
from reenact.formats import capture
from reenact.formats.capture import CaptureEvent
from reenact.formats.dialects.losses import Loss
from reenact.formats.record import ABSENT
from reenact.providers import Text
from reenact.store.reader import CaptureReader
from reenact.trace.model_calls import as_text, read_with_derived, request_of, response_of, usage_of
from reenact.values.tags import strip_tags

SCHEMA: Final = "ATIF-v1.8"
_USAGE: Final = {
    "input_tokens": "prompt_tokens",
    "output_tokens": "completion_tokens",
    "cached_input_tokens": "cached_tokens",
}


def document_of(reader: CaptureReader, note_loss: Callable[[Loss], None]) -> dict[str, object]:
    """The trajectory; its ``extra`` names the capture."""
    manifest = reader.manifest
    writing = _TrajectoryBuilder(reader, note_loss)
    for event in read_with_derived(reader):
        writing.event(event)
    agent = {"name": "reenact", "version": __version__}
    if manifest.model.model != "none":
        agent["model_name"] = manifest.model.model
    provenance = {
        "capture_id": manifest.captureId,
        "events_hash": manifest.integrity.eventsHash,
        "event_count": manifest.eventCount,
        "redaction": manifest.redaction.profile,
        "status": manifest.status,
    }
    return {
        "schema_version": SCHEMA,
        "session_id": manifest.runId,
        "trajectory_id": manifest.captureId,
        "agent": agent,
        "steps": writing.steps,
        "extra": provenance,
    }


class _TrajectoryBuilder:
    def __init__(self, reader: CaptureReader, note_loss: Callable[[Loss], None]) -> None:
        self._reader = reader
        self._note_loss = note_loss
        self.steps: list[dict[str, JsonValue]] = []
        self._said: dict[str, list[tuple[str, str]]] = {}
        """The messages sent to the model so far, by lane."""
        self._answers: dict[str, dict[str, Any]] = {}
        """The step of the latest answer, by lane."""
        self._lanes: dict[str, str] = {}
        """The lane of each call, by call id."""
        self._calls: dict[str, dict[str, Any]] = {}
        """The step of each tool call, by call id."""

    def event(self, event: CaptureEvent) -> None:
        if isinstance(event, capture.LlmRequest):
            self._add_request(event)
        elif isinstance(event, capture.LlmResponse):
            self._add_response(event)
        elif isinstance(event, capture.ToolCall):
            self._add_tool_call(event)
        elif isinstance(event, capture.ToolResult):
            self._add_tool_result(event)
        elif isinstance(event, capture.StateMutation | capture.Nondeterministic):
            tag = str(type(event).__struct_config__.tag)
            self._note_loss(Loss(event.seq, tag, None, "a trajectory has no place for it"))

    def _step(self, event: CaptureEvent, source: str, message: str, lane: str) -> dict[str, Any]:
        step: dict[str, JsonValue] = {
            "step_id": len(self.steps) + 1,
            "timestamp": datetime.fromtimestamp(event.ts / 1000, UTC).isoformat(),
            "source": source,
            "message": message,
            "extra": {"event": event.seq, "lane": lane},
        }
        self.steps.append(step)
        return step

    def _add_request(self, event: capture.LlmRequest) -> None:
        lane = event.data.lane or "0"
        self._lanes[event.data.callId] = lane
        request = request_of(self._reader, event)
        if request is None:
            self._note_loss(Loss(event.seq, "llm_request", "request", "its wire format is unknown"))
            return
        turns = [("system", request.system)] if request.system else []
        for message in request.messages:
            text = "\n".join(part.text for part in message.parts if isinstance(part, Text))
            if message.role not in ("assistant", "model", "tool") and text:
                turns.append(("system" if message.role in ("system", "developer") else "user", text))
        before = self._said.get(lane, [])
        shared = 0
        for one, other in zip(turns, before, strict=False):
            if one != other:
                break
            shared += 1
        for source, text in turns[shared:]:
            self._step(event, source, text, lane)
        is_reported = event.data.derived is True  # it has only the new messages
        self._said[lane] = [] if is_reported else turns

    def _add_response(self, event: capture.LlmResponse) -> None:
        lane = self._lanes.get(event.data.callId, "0")
        response = response_of(self._reader, event)
        step = self._step(event, "agent", response.text if response else "", lane)
        if event.data.model and event.data.model != "unknown":
            step["model_name"] = event.data.model
        reasoning = "\n".join(part.text for part in response.thinking if part.text) if response else ""
        if reasoning:
            step["reasoning_content"] = reasoning
        usage = usage_of(event.data.usage)
        metrics = {theirs: usage[ours] for ours, theirs in _USAGE.items() if usage and ours in usage}
        if metrics:
            step["metrics"] = metrics
        failed = event.data.modelError
        failed = self._reader.resolve(event.data.error) if event.data.error is not ABSENT else failed
        if failed is not None and failed is not ABSENT:
            step["extra"]["error"] = strip_tags(failed)
        self._answers[lane] = step

    def _add_tool_call(self, event: capture.ToolCall) -> None:
        data, lane = event.data, event.data.lane or "0"
        answer = self._answers.get(lane)
        if data.derived is not True or answer is None:
            answer = self._step(event, "agent", "", lane)
            answer["llm_call_count"] = 0
        arguments = strip_tags(self._reader.resolve(data.args))
        call = {
            "tool_call_id": data.callId,
            "function_name": data.tool,
            "arguments": arguments if isinstance(arguments, dict) else {"arguments": arguments},
        }
        answer.setdefault("tool_calls", []).append(call)
        self._calls[data.callId] = answer

    def _add_tool_result(self, event: capture.ToolResult) -> None:
        data = event.data
        step = self._calls.get(data.callId)
        if step is None:
            self._note_loss(Loss(event.seq, "tool_result", None, "its call is not in the run"))
            return
        stored = data.result if data.ok else data.error
        content = None if stored is ABSENT else strip_tags(self._reader.resolve(stored))
        result = {"source_call_id": data.callId, "content": "" if content is None else as_text(content)}
        step.setdefault("observation", {"results": []})["results"].append(result)
        if not data.ok:
            step["extra"].setdefault("failed", []).append(data.callId)

"""Recording an agent whose tools run out of our reach: tool calls are derived from its model traffic.

Calls and results become events marked ``derived`` as soon as a request or answer shows them. Replay ignores
them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any
from urllib.parse import urlsplit

from reenact.boundary import A, Call, Lane, Step
from reenact.providers import DerivedTools, ModelResponse, read_request, read_response
from reenact.providers.meaning import Provider
from reenact.recorder.context import CaptureContext
from reenact.recorder.step import CaptureStep
from reenact.values.objects import message_of


class DerivingContext(CaptureContext):
    """The context of a run of which only the model calls can be seen."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._tools = DerivedTools()
        self._lanes: dict[str, str] = {}
        """By the id of an open model call: its lane."""

    def step(self, call: Call[A], lane: Lane) -> Step[A]:
        if call.kind == "llm":
            self.derive_results(call)
        step = super().step(call, lane)
        self._lanes[step.call_id] = lane.name
        return step

    def record_outcome(self, step: CaptureStep[Any], error: BaseException | None) -> None:
        super().record_outcome(step, error)
        lane = self._lanes.pop(step.call_id, "")
        if step.call.kind == "llm" and step.answer is not None:
            self._derive_calls(lambda: _response(step), step.call_id, lane)

    def derive_recorded_calls(self, call_id: str, lane: str, outcome: dict[str, Any]) -> None:
        """Record the tool calls in a recorded answer; *outcome* is the data of its event."""
        answer, pieces = outcome.get("response"), outcome.get("pieces") or []
        if isinstance(answer, dict):
            self._derive_calls(lambda: _read(outcome["provider"], answer, pieces), call_id, lane)

    def derive_results(self, call: Call) -> None:
        """Record the results that the request of a model call carries."""
        try:
            request: Any = call.request
            asked = read_request(urlsplit(request["url"]).path, request.get("body"))
            for data in self._tools.derive_results(asked) if asked is not None else ():
                self.record_event("tool_result", data)
        except Exception as error:
            self.warn(f"a tool's result could not be read from the model traffic: {message_of(error)}")

    def _derive_calls(self, response: Callable[[], ModelResponse], call_id: str, lane: str) -> None:
        try:
            for data in self._tools.derive_calls(response(), call_id):
                self.record_event("tool_call", {"lane": lane, **data})
        except Exception as error:
            self.warn(f"a tool call could not be read from the model traffic: {message_of(error)}")


def _response(step: CaptureStep[Any]) -> ModelResponse:
    return _read(step.facts["provider"], step.answer, step.recorded_pieces or [])


def _read(provider: Provider, answer: dict[str, Any], pieces: Sequence[str | bytes]) -> ModelResponse:
    chunks = [
        piece if isinstance(piece, bytes) else piece.encode("utf-8", "surrogateescape") for piece in pieces
    ]
    return read_response(provider, answer["status"], {}, chunks)

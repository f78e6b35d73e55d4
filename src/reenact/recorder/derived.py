"""Tools of agents that cannot be seen at work: their calls and results are read from the model traffic.

A model's answer says which tools the agent is to run; a later request carries what came of it. Both become
events marked ``derived``, at the moment they are known. They take no part in replay.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import msgspec

from reenact.boundary import Call, Lane
from reenact.formats.failures import message_of
from reenact.providers import (
    ModelRequest,
    ModelResponse,
    ToolCall,
    ToolResult,
    derive_tool_results,
    pair_tool_results,
    read_request,
    read_response,
)
from reenact.recorder.context import CaptureContext
from reenact.recorder.step import CaptureStep


class _Open(NamedTuple):
    """A tool call whose result has not come back to the model yet."""

    id: str
    call: ToolCall


class DerivingContext(CaptureContext):
    """The context of a run whose model calls are all there is to see."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._open: list[_Open] = []
        self._lanes: dict[str, str] = {}
        """By the id of a model call under way."""

    def step(self, call: Call, lane: Lane) -> CaptureStep:
        if call.kind == "llm":
            self._derive_results(call)
        step = super().step(call, lane)
        self._lanes[step.call_id] = lane.name
        return step

    def record_outcome(self, step: CaptureStep, error: BaseException | None) -> None:
        super().record_outcome(step, error)
        lane = self._lanes.pop(step.call_id, "")
        if step.call.kind == "llm" and step.answer is not None:
            self._derive_calls(step, lane)

    def _derive_results(self, call: Call) -> None:
        try:
            asked = read_request(urlsplit(call.request["url"]).path, call.request.get("body"))
            for opened, result in _answered(self._open, asked) if asked is not None else ():
                self._open.remove(opened)
                self.record_event("tool_result", {"callId": opened.id, "derived": True, **_outcome(result)})
        except Exception as error:
            self.warn(f"a tool's result could not be read from the model traffic: {message_of(error)}")

    def _derive_calls(self, step: CaptureStep, lane: str) -> None:
        try:
            for number, call in enumerate(_response(step).tool_calls, 1):
                opened = _Open(f"{step.call_id}.{number}", call)
                self._open.append(opened)
                self.record_event("tool_call", {"lane": lane, "derived": True, **_asked(opened)})
        except Exception as error:
            self.warn(f"a tool call could not be read from the model traffic: {message_of(error)}")


def _answered(opened: Sequence[_Open], asked: ModelRequest) -> list[tuple[_Open, ToolResult]]:
    """Which of the *opened* calls *asked* has the results of.

    Where a format does without ids, a client may leave out those that it was sent.
    """
    results = derive_tool_results(asked)
    with_ids = any(result.call_id is not None for result in results)
    calls = [one.call if with_ids else msgspec.structs.replace(one.call, id=None) for one in opened]
    by_call = {id(call): one for call, one in zip(calls, opened, strict=True)}
    return [(by_call[id(call)], result) for call, result in pair_tool_results(calls, results)]


def _response(step: CaptureStep) -> ModelResponse:
    pieces = step.recorded_pieces or []
    chunks = [
        piece if isinstance(piece, bytes) else piece.encode("utf-8", "surrogateescape") for piece in pieces
    ]
    return read_response(step.facts["provider"], step.answer["status"], {}, chunks)


def _asked(opened: _Open) -> dict[str, Any]:
    call = opened.call
    args = call.arguments if call.arguments_text is None else call.arguments_text
    known = {"toolCallId": call.id} if call.id is not None else {}
    return {"callId": opened.id, "tool": call.name, "args": args, **known}


def _outcome(result: ToolResult) -> dict[str, Any]:
    content = _text(result.content)
    if not result.is_error:
        return {"ok": True, "result": content}
    return {"ok": False, "error": {"type": "ToolError", "message": content}}


def _text(content: Any) -> Any:
    """A list of texts is what several wire formats make of one text."""
    parts = content if isinstance(content, list) else [content]
    found = [part.get("text") if isinstance(part, dict) else part for part in parts]
    texts = [text for text in found if isinstance(text, str)]
    return "".join(texts) if parts and len(texts) == len(parts) else content

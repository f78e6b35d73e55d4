"""Tool calls as the model traffic shows them: made in one answer, their results in a later request."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from reenact import canonical
from reenact.providers import (
    ModelRequest,
    ModelResponse,
    ToolCall,
    ToolResult,
    derive_tool_results,
    pair_tool_results,
)


class MadeCall(NamedTuple):
    """A call that a model asked for."""

    key: str
    tool: str
    params: dict[str, Any]


class CameBack(NamedTuple):
    """What the agent told the model of a call."""

    key: str
    ok: bool
    content: str
    since_ms: int | float
    """How long after the model had asked."""


class DerivedCalls:
    """Takes the exchanges of a run in their order; what is remembered is the calls without a result."""

    def __init__(self) -> None:
        self._waiting: dict[str, tuple[ToolCall, int | float]] = {}

    def answered(self, response: ModelResponse, call_id: str, ts_ms: int | float) -> Iterator[MadeCall]:
        """The calls of an answer; one without an id of its own is named after the exchange *call_id*."""
        for number, call in enumerate(response.tool_calls, 1):
            key = call.id or f"{call_id}.{number}"
            self._waiting[key] = (call, ts_ms)
            params = call.arguments
            if not isinstance(params, dict):
                params = {"arguments": call.arguments_text if params is None else params}
            yield MadeCall(key, call.name, params)

    def asked(self, request: ModelRequest, ts_ms: int | float) -> Iterator[CameBack]:
        """The results in a request, each once: an agent repeats its history with every request."""
        keys = {id(call): key for key, (call, _) in self._waiting.items()}
        calls = [call for call, _ in self._waiting.values()]
        for call, result in pair_tool_results(calls, derive_tool_results(request)):
            key = keys[id(call)]
            _, since = self._waiting.pop(key)
            yield CameBack(key, not result.is_error, _text(result), max(0, ts_ms - since))


def _text(result: ToolResult) -> str:
    return result.content if isinstance(result.content, str) else canonical.encode(result.content).decode()

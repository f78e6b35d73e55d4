"""Deriving tool calls and results from model traffic.

A model's answer names the tools that the agent must run; a later request has their results. The recorder
writes them as events if only the traffic is visible; readers derive them from captures without tool calls,
because the agent's tools are plain functions. Both use this module and get the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from reenact.canonical import JsonValue
from reenact.providers.meaning import ModelRequest, ModelResponse, ToolCallPart, ToolResultPart


def derive_tool_results(request: ModelRequest) -> list[ToolResultPart]:
    """The tool results that *request* carries, in order.

    Results with a call id include those of earlier turns, because an agent repeats its history.
    Without ids an old result looks like a new one, so only those of the last turn count.
    """
    turns = [(message.role == "assistant", part) for message in request.messages for part in message.parts]
    last_turn = max((place for place, (is_model, _) in enumerate(turns) if is_model), default=-1)
    return [
        part
        for place, (_, part) in enumerate(turns)
        if isinstance(part, ToolResultPart) and (part.call_id is not None or place > last_turn)
    ]


def pair_tool_results(
    calls: Iterable[ToolCallPart], results: Iterable[ToolResultPart]
) -> list[tuple[ToolCallPart, ToolResultPart]]:
    """Each of the *calls* with its result, if there is one: by id, else by name, else by order."""
    left = list(results)
    pairs = []
    for call in calls:
        result = next((result for result in left if _answers(result, call)), None)
        if result is not None:
            left.remove(result)
            pairs.append((call, result))
    return pairs


def _answers(result: ToolResultPart, call: ToolCallPart) -> bool:
    if result.call_id is not None or call.id is not None:
        return result.call_id == call.id
    return result.name is None or result.name == call.name


class DerivedTools:
    """Reads the exchanges of a run in order, and keeps the calls without a result."""

    def __init__(self) -> None:
        self._waiting: dict[str, ToolCallPart] = {}
        """By the call id in events."""

    @property
    def has_waiting(self) -> bool:
        """Whether a call waits for its result."""
        return bool(self._waiting)

    def derive_calls(self, response: ModelResponse, exchange_id: str) -> Iterator[dict[str, JsonValue]]:
        """The data of a ``tool_call`` event for each call that an answer asks for."""
        for number, call in enumerate(response.tool_calls, 1):
            call_id = f"{exchange_id}.{number}"
            self._waiting[call_id] = call
            args = call.arguments if call.arguments_text is None else call.arguments_text
            known = {"toolCallId": call.id} if call.id is not None else {}
            yield {"callId": call_id, "tool": call.name, "args": args, "derived": True, **known}

    def derive_results(self, request: ModelRequest) -> Iterator[dict[str, JsonValue]]:
        """The data of a ``tool_result`` event for each new result in a request."""
        for call_id, result in self._pair_answers(request):
            del self._waiting[call_id]
            yield {"callId": call_id, "derived": True, **_outcome(result)}

    def _pair_answers(self, request: ModelRequest) -> list[tuple[str, ToolResultPart]]:
        results = derive_tool_results(request)
        # In a format with optional ids, a client may omit those that it got.
        with_ids = any(result.call_id is not None for result in results)
        calls = {
            call_id: call if with_ids else msgspec.structs.replace(call, id=None)
            for call_id, call in self._waiting.items()
        }
        by_call = {id(call): call_id for call_id, call in calls.items()}
        return [(by_call[id(call)], result) for call, result in pair_tool_results(calls.values(), results)]


def _outcome(result: ToolResultPart) -> dict[str, JsonValue]:
    content = _text(result.content)
    if not result.is_error:
        return {"ok": True, "result": content}
    return {"ok": False, "error": {"type": "ToolError", "message": content}}


def _text(content: JsonValue) -> JsonValue:
    """Join a list of texts, as which several wire formats send one text."""
    parts = content if isinstance(content, list) else [content]
    found = [part.get("text") if isinstance(part, dict) else part for part in parts]
    texts = [text for text in found if isinstance(text, str)]
    return "".join(texts) if parts and len(texts) == len(parts) else content

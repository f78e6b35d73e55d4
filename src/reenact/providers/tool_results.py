"""Which tool calls a later request answers: how the work of an agent is seen from its model traffic alone."""

from __future__ import annotations

from collections.abc import Iterable

from reenact.providers.meaning import ModelRequest, ToolCall, ToolResult


def derive_tool_results(request: ModelRequest) -> list[ToolResult]:
    """The tool results that *request* carries, in order.

    Results with a call id are all there, also those of earlier turns: an agent repeats its history.
    Without ids an old result cannot be told from a new one, so only those of the last turn count.
    """
    turns = [(message.role == "assistant", part) for message in request.messages for part in message.parts]
    last_turn = max((place for place, (is_model, _) in enumerate(turns) if is_model), default=-1)
    return [
        part
        for place, (_, part) in enumerate(turns)
        if isinstance(part, ToolResult) and (part.call_id is not None or place > last_turn)
    ]


def pair_tool_results(
    calls: Iterable[ToolCall], results: Iterable[ToolResult]
) -> list[tuple[ToolCall, ToolResult]]:
    """Each of the *calls* with its result, if there is one: by id, else by name, else by order."""
    left = list(results)
    pairs = []
    for call in calls:
        result = next((result for result in left if _answers(result, call)), None)
        if result is not None:
            left.remove(result)
            pairs.append((call, result))
    return pairs


def _answers(result: ToolResult, call: ToolCall) -> bool:
    if result.call_id is not None or call.id is not None:
        return result.call_id == call.id
    return result.name is None or result.name == call.name

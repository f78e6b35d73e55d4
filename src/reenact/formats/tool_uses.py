"""The tool calls of a REPLAY.jsonl, each with its result."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from reenact.formats.dialects import Event, legacy
from reenact.formats.lines import Line
from reenact.formats.replay_log import ToolCall, ToolResult


class ToolUse(NamedTuple):
    """One call and what came of it; both of one dialect."""

    line: int
    """Where the result stands; where there is none, the call."""
    call: Any
    result: Any
    """``None`` for a call that the log leaves without one."""


def call_key(event: ToolCall | ToolResult) -> str:
    """What ties a call and its result: ``id`` in the older dialect, ``step_id`` in the current one."""
    return event.id if isinstance(event, legacy.ToolCall | legacy.ToolResult) else event.step_id


def tool_uses(lines: Iterable[tuple[Line, Event]]) -> Iterator[ToolUse]:
    """The uses in the order of their results, then the calls without one.

    A result without a call is no use; only what waits for a result is kept in memory.
    """
    waiting: dict[str, tuple[int, ToolCall]] = {}
    for line, event in lines:
        if isinstance(event, ToolCall):
            waiting[call_key(event)] = (line.number, event)
        elif isinstance(event, ToolResult):
            _, call = waiting.pop(call_key(event), (0, None))
            if call is not None:
                yield ToolUse(line.number, call, event)
    for number, call in waiting.values():
        yield ToolUse(number, call, None)

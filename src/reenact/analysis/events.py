"""Events as all artifacts are read: in the words of a capture, whatever the file says itself.

A log's ``ToolCall`` and a trace's ``tool_call`` become the capture's ``tool_call`` with ``callId``, ``tool``
and ``args``. What a capture has no word for has a type of its own (``message``, ``verification``, …) and a
``name``.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

REMARK: Final = "remark"
"""The type of an event that says no more than another one does in its place."""
OUTSIDE: Final = ("run_start", "run_end", REMARK)
"""The types of events that are no steps of the run."""
ASKING: Final = ("tool_call", "llm_request")
"""The types of events that are never an outcome."""


class Event(msgspec.Struct):
    """One event; payloads stand in *data* as they are stored."""

    seq: int
    """Its number in the artifact: of line-based ones the line."""
    ts: int | float
    """Milliseconds since the epoch."""
    type: str
    data: dict[str, Any]


class HeadData(msgspec.Struct, gc=False):
    """What an index needs of an event's data; everything else is passed over without being decoded."""

    callId: str | None = None  # noqa: N815 — the wire's own name, as all below
    parent: str | None = None
    lane: str = "0"
    tool: str | None = None
    provider: str | None = None
    model: str | None = None
    source: str | None = None
    key: str | None = None
    type: str | None = None
    name: str | None = None
    ok: bool = True
    cancelled: bool = False
    error: Any = None
    modelError: Any = None  # noqa: N815
    usage: dict[str, Any] | None = None
    latencyMs: int | float | None = None  # noqa: N815
    """Where the artifact states how long a call took."""
    utility: int | float | None = None


class Head(msgspec.Struct, gc=False):
    """The head of one event."""

    seq: int
    ts: int | float
    type: str
    data: HeadData

    @property
    def kind(self) -> str:
        """``tool``, ``model``, ``state``, the source of a value, or what the event is called."""
        if self.type == "nondeterministic":
            return str(self.data.source)
        return _KINDS.get(self.type, self.type)

    @property
    def name(self) -> str:
        """The tool, the model, the kind of state, or the key of a value."""
        data = self.data
        match self.type:
            case "tool_call" | "tool_result":
                found = data.tool
            case "llm_request" | "llm_response":
                found = data.model or data.provider
            case "state_mutation":
                found = data.type
            case "nondeterministic":
                found = data.key
            case _:
                found = data.name
        return found or ""


_KINDS: Final = {
    "tool_call": "tool",
    "tool_result": "tool",
    "llm_request": "model",
    "llm_response": "model",
    "state_mutation": "state",
}


def head_of(event: Event) -> Head:
    """The head of an event that is decoded already."""
    return Head(event.seq, event.ts, event.type, msgspec.convert(event.data, HeadData))

"""One event of a run: its head for those who only look, its whole value for those who read.

The words are those of ``events.jsonl``. Other artifacts are told in them too: a ``ToolCall`` of a log becomes
the capture's ``tool_call`` with ``callId``, ``tool`` and ``args``. What a capture has no word for has a type
of its own (``message``, ``verification``, …) and a ``name``. The exact form of a capture's events, in which
they are checked, is :mod:`reenact.formats.capture`.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from reenact.canonical import JsonValue

REMARK: Final = "remark"
"""The type of an event that says no more than another one does in its place."""
OUTSIDE: Final = ("run_start", "run_end", REMARK)
"""The types of events that are no steps of the run."""
ASKING: Final = ("tool_call", "llm_request")
"""The types of events that are never an outcome."""
NO_PAYLOAD: Final = msgspec.Raw()
"""Of an event that has none, in place of its text."""


class EventHeadData(msgspec.Struct, gc=False):
    """What an index needs of an event's data; everything else is passed over without being decoded."""

    callId: str | None = None  # noqa: N815 — the wire's own name, as all below
    lane: str = "0"
    parent: str | None = None
    tool: str | None = None
    provider: str | None = None
    model: str | None = None
    source: str | None = None
    key: str | None = None
    type: str | None = None
    name: str | None = None
    args: msgspec.Raw = NO_PAYLOAD
    """The text as it stands in the line; empty where there is none, or no line."""
    request: msgspec.Raw = NO_PAYLOAD
    """Likewise."""
    requestHash: str | None = None  # noqa: N815
    askedHash: str | None = None  # noqa: N815
    ok: bool = True
    error: Any = None
    modelError: Any = None  # noqa: N815
    usage: dict[str, Any] | None = None
    derived: bool = False
    beside: str = ""
    background: bool = False
    program: str | None = None
    inline: bool = False
    cancelled: bool = False
    opened: int | None = None
    opening: int = 0
    joined: int | None = None
    latencyMs: int | float | None = None  # noqa: N815
    """Where the artifact states how long a call took."""
    utility: int | float | None = None
    exitCode: int | str | None = None  # noqa: N815
    """What a log states of a tool beside *ok*, unless it is 0: a failure for whoever shows runs, but not for
    assertions, which judge what the log says of success."""


class EventHead(msgspec.Struct, gc=False):
    """The head of one event; a line of 300 bytes takes 0.7 µs, where the exact reading takes 2.1."""

    seq: int
    ts: int | float
    type: str
    data: EventHeadData
    captureId: str = ""  # noqa: N815
    runId: str = ""  # noqa: N815
    version: int = 0
    order: list[str] = []
    laterMs: int = 0  # noqa: N815

    @property
    def request_call_id(self) -> str | None:
        """The id of the call that the event makes, where its request may be referred to by later ones."""
        return self.data.callId if bytes(self.data.request) else None


def event_kind(what: str, data: EventHeadData) -> str:
    """``tool``, ``model``, ``state``, the source of a value, or the type *what* of the event itself."""
    return str(data.source) if what == "nondeterministic" else _KINDS.get(what, what)


def event_name(what: str, data: EventHeadData) -> str:
    """The tool, the model, the kind of state, or the key of a value; *what* is the type of the event."""
    match what:
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


class RunEvent(msgspec.Struct, omit_defaults=True):
    """One event as a whole; payloads stand in *data* as they are stored."""

    seq: int
    """Its number in the artifact: of line-based ones the line."""
    ts: int | float
    """Milliseconds since the epoch."""
    type: str
    data: dict[str, Any]
    time: str = ""
    """*ts* as the artifact writes it, where that is a text."""
    captureId: str = ""  # noqa: N815
    runId: str = ""  # noqa: N815
    version: int = 0
    order: list[str] = []
    laterMs: int = 0  # noqa: N815

    @property
    def failure(self) -> JsonValue:
        """What whoever shows runs takes for the failure of an outcome; ``None`` where there is none."""
        if self.data.get("exitCode"):
            return {"type": "exit_code", "message": str(self.data["exitCode"])}
        return self.data.get("error")

    def head(self) -> EventHead:
        """Its head; :class:`msgspec.ValidationError` where a field is of another type."""
        known = {name: self.data[name] for name in _CONVERTED if name in self.data}
        return EventHead(self.seq, self.ts, self.type, msgspec.convert(known, EventHeadData))


_CONVERTED: Final = tuple(name for name in EventHeadData.__struct_fields__ if name not in ("args", "request"))

read_head: Final = msgspec.json.Decoder(EventHead).decode
"""The head in a line; raises what msgspec raises."""
read_event: Final = msgspec.json.Decoder(RunEvent).decode
"""The whole value in a line; likewise."""

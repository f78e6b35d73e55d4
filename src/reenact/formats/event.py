"""One event of a run: its head for indexes, and its whole value for readers.

Types and fields are those of ``events.jsonl``. Events of other artifacts are converted: a ``ToolCall`` of
a log becomes a ``tool_call`` with ``callId``, ``tool`` and ``args``. Events that captures lack get their
own type (``message``, ``verification``, …) and a ``name``. Checks read the exact form of capture events in
:mod:`reenact.formats.capture`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any, Final, Protocol

import msgspec

from reenact.canonical import JsonField, JsonValue

REMARK: Final = "remark"
"""The type of an event whose content another event has already."""
OUTSIDE: Final = ("run_start", "run_end", REMARK)
"""The types of events that are not steps of the run."""
ASKING: Final = ("tool_call", "llm_request")
"""The types of events that are never an outcome."""
NO_PAYLOAD: Final = msgspec.Raw()
"""The value of a missing payload."""


class EventHeadData(msgspec.Struct, gc=False):
    """The data of an event that an index needs; everything else is skipped without decoding."""

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
    """The JSON text in the line; empty if there is none."""
    request: msgspec.Raw = NO_PAYLOAD
    """The JSON text in the line; empty if there is none."""
    requestHash: str | None = None  # noqa: N815
    askedHash: str | None = None  # noqa: N815
    ok: bool = True
    error: Any = None
    modelError: Any = None  # noqa: N815
    usage: dict[str, JsonField] | None = None
    derived: bool = False
    beside: str = ""
    background: bool = False
    program: str | None = None
    inline: bool = False
    cancelled: bool = False
    opened: int | None = None
    opening: int = 0
    joined: int | None = None
    behind: int = 0
    latencyMs: int | float | None = None  # noqa: N815
    """The duration of a call, if the artifact has it."""
    utility: int | float | None = None
    exitCode: int | str | None = None  # noqa: N815
    """The exit code of a tool in a log, unless it is 0: shown as a failure, but not judged by assertions,
    which use *ok*."""


class EventHead(msgspec.Struct, gc=False):
    """The head of one event; reading a line of 300 bytes takes 0.7 µs, the exact event 2.1 µs."""

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
        """The id of the call, if later events may refer to its request."""
        return self.data.callId if bytes(self.data.request) else None


class NamedData(Protocol):
    """The members of an event's data that name what it is about."""

    tool: str | None
    provider: str | None
    model: str | None
    source: str | None
    key: str | None
    type: str | None
    name: str | None


def event_kind(what: str, data: NamedData) -> str:
    """``tool``, ``model``, ``state``, the source of a value, or the type *what* of the event itself."""
    return str(data.source) if what == "nondeterministic" else _KINDS.get(what, what)


def count_steps(heads: Iterable[EventHead]) -> dict[str, int]:
    """The number of steps of each kind, the most frequent first; an outcome is part of its call's step."""
    counts: Counter[str] = Counter()
    waiting: set[str] = set()
    for head in heads:
        call_id = head.data.callId
        if call_id in waiting and head.type not in ASKING:
            waiting.discard(call_id)
        elif head.type not in OUTSIDE:
            counts[event_kind(head.type, head.data)] += 1
            if call_id is not None and head.type != "state_mutation":
                waiting.add(call_id)
    return dict(counts.most_common())


def event_name(what: str, data: NamedData) -> str:
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
    """One whole event; references in *data* are not resolved."""

    seq: int
    """Its number in the artifact: the line number in line-based ones."""
    ts: int | float
    """Milliseconds since the epoch."""
    type: str
    data: dict[str, Any]
    time: str = ""
    """*ts* as text, if the artifact writes it so."""
    captureId: str = ""  # noqa: N815
    runId: str = ""  # noqa: N815
    version: int = 0
    order: list[str] = []
    laterMs: int = 0  # noqa: N815

    @property
    def failure(self) -> JsonValue:
        """The failure of an outcome, as it is shown; ``None`` if there is none."""
        if self.data.get("exitCode"):
            return {"type": "exit_code", "message": str(self.data["exitCode"])}
        return self.data.get("error")

    def head(self) -> EventHead:
        """Its head; :class:`msgspec.ValidationError` if a field has a wrong type."""
        known = {name: self.data[name] for name in _CONVERTED if name in self.data}
        return EventHead(self.seq, self.ts, self.type, msgspec.convert(known, EventHeadData))


_CONVERTED: Final = tuple(name for name in EventHeadData.__struct_fields__ if name not in ("args", "request"))

read_head: Final = msgspec.json.Decoder(EventHead).decode
"""Read the head of a line; raises the errors of msgspec."""
read_event: Final = msgspec.json.Decoder(RunEvent).decode
"""Read the whole event of a line; raises the errors of msgspec."""

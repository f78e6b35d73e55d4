"""The context of converting an event to the other dialect: the log so far, and the list of losses."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, TypeAlias

from reenact.canonical import JsonValue
from reenact.formats.dialects import Event, current, legacy
from reenact.formats.dialects.common import Milliseconds
from reenact.formats.record import ABSENT, Absent, Record


class Loss(NamedTuple):
    """Something that the target does not have, or has only as a filled-in value."""

    line: int | None
    event: str
    field: str | None
    """``None`` if the whole event is lost."""
    reason: str


class Losses(list[Loss]):
    """The losses of one event."""

    def __init__(self, event: Event, name: str, line: int | None) -> None:
        super().__init__()
        self._event = event
        self._name = name
        self._line = line

    def add(self, field: str | None, reason: str) -> None:
        """Report *field*, or the event itself, as lost."""
        self.append(Loss(self._line, self._name, field, reason))

    def add_present(self, *fields: str) -> None:
        """Report those of *fields* that the event has as lost."""
        for field in fields:
            if getattr(self._event, field) is not ABSENT:
                self.add(field, "the target dialect has no such field")

    def carry(self, fields: dict[str, JsonValue], *taken: str) -> dict[str, JsonValue]:
        """Unknown *fields* without the names that the target has *taken*, which are lost."""
        for field in sorted(fields.keys() & set(taken)):
            self.add(field, "the target dialect uses this name itself")
        return {field: value for field, value in fields.items() if field not in taken}

    def carry_extra(
        self, event: Record, kind: type[Record], *, but: str | None = None
    ) -> dict[str, JsonValue]:
        """The unknown fields of the event for an event of *kind*, without the field *but*."""
        left = {name: value for name, value in event.extra.items() if name != but}
        return self.carry(left, str(kind.__struct_config__.tag_field), *kind.__struct_encode_fields__)


def name_filled_session(seen: Seen, losses: Losses) -> None:
    """Report that the session id was filled in; in the legacy dialect only SessionStart has it."""
    if seen.session_id is not ABSENT:
        losses.add("session_id", "filled in from SessionStart")


class Seen(NamedTuple):
    """Facts from the events before the present one."""

    session_id: str | Absent = ABSENT
    time: str = "1970-01-01T00:00:00Z"
    """The time of the event before; the epoch if there was none."""
    tool_calls: int = 0
    latency_ms: Milliseconds = 0

    def after(self, event: Event) -> Seen:
        """The facts after *event*."""
        seen = self
        for field in ("ts", "t", "created_at"):
            time = getattr(event, field, ABSENT)
            if time is not ABSENT:
                seen = seen._replace(time=time)
        if isinstance(event, current.SessionStart | legacy.SessionStart):
            return seen._replace(session_id=event.session_id)
        if isinstance(event, current.ToolCall | legacy.ToolCall):
            return seen._replace(tool_calls=self.tool_calls + 1)
        if isinstance(event, current.ToolResult | legacy.ToolResult):
            return seen._replace(latency_ms=self.latency_ms + event.latency_ms)
        return seen


EventConverter: TypeAlias = Callable[[Any, Seen, Losses], Iterator[Event]]
"""Converts one event to none, one or several of the other dialect."""

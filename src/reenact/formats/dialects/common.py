"""What the dialects of the replay log share: value ranges, the unknown event, reading and writing."""

from __future__ import annotations

from typing import Annotated, Any, Final, Generic, Literal, TypeAlias, TypeVar

import msgspec

from reenact import canonical
from reenact.formats.record import ABSENT, Codec, Count, Record, upgrade
from reenact.formats.rfc3339 import verify_time

DialectName: TypeAlias = Literal["current", "legacy"]

REPLAY_VERSION: Final = 1
HEADER: Final = "ReplayHeader"

Milliseconds = Count | Annotated[float, msgspec.Meta(ge=0)]
Confidence = Annotated[int, msgspec.Meta(ge=0, le=1)] | Annotated[float, msgspec.Meta(ge=0, le=1)]
Utility = Annotated[int, msgspec.Meta(ge=-1, le=1)] | Annotated[float, msgspec.Meta(ge=-1, le=1)]
"""The learning signal of one tool call, from harmful to helpful."""


class UnknownEvent(msgspec.Struct, frozen=True):
    """An event this version does not know, kept whole."""

    value: dict[str, Any]


E = TypeVar("E", bound=Record)


class Dialect(Generic[E]):
    """How one dialect names and times its events, and their codec; *kind* is the union of them."""

    def __init__(
        self, name: DialectName, *, tag_field: str, time_field: str, base: type[E], kind: Any
    ) -> None:
        self.name = name
        self.tag_field = tag_field
        self.time_field = time_field
        self._base = base
        self._codec: Codec[E | UnknownEvent] = Codec(kind, unknown=UnknownEvent)

    @property
    def kind(self) -> Any:
        """The union of the dialect's event types, for a JSON Schema."""
        return self._codec.kind

    def from_bytes(self, text: bytes) -> E | UnknownEvent:
        """One event from its line; :class:`FormatError` with the JSON path."""
        return self._timed(self._codec.from_bytes(text))

    def from_json(self, value: Any) -> E | UnknownEvent:
        """One event from a decoded line; a header of a newer version is refused."""
        if self.names(value) == HEADER:
            value = upgrade(
                value, field="replay_version", current=REPLAY_VERSION, steps={}, what="REPLAY.jsonl"
            )
        return self._timed(self._codec.from_json(value))

    def to_json(self, event: E | UnknownEvent) -> dict[str, Any]:
        """The event as plain JSON values."""
        return event.value if isinstance(event, UnknownEvent) else self._codec.to_json(event)

    def to_bytes(self, event: E | UnknownEvent) -> bytes:
        """The event's line without its end; an event that could not be read again is refused."""
        text = canonical.encode(self.to_json(event))
        self.from_bytes(text)
        return text

    def names(self, value: Any) -> str | None:
        """The name of the event that the decoded line *value* holds, if it is one of this dialect."""
        name = value.get(self.tag_field) if isinstance(value, dict) else None
        return name if isinstance(name, str) else None

    def owns(self, event: object) -> bool:
        """Whether *event* can stand in a log of this dialect."""
        if isinstance(event, UnknownEvent):
            return self.names(event.value) is not None
        return isinstance(event, self._base)

    def _timed(self, event: E | UnknownEvent) -> E | UnknownEvent:
        time = getattr(event, self.time_field, ABSENT)
        if time is not ABSENT:
            verify_time(time, f"$.{self.time_field}")
        elif event_name(event) == HEADER:
            verify_time(event.created_at, "$.created_at")  # type: ignore[union-attr]  # headers have it
        return event


def event_name(event: Record | UnknownEvent) -> str:
    """The name under which *event* stands in its log."""
    if isinstance(event, UnknownEvent):
        return str(event.value.get("type", event.value.get("event")))
    return type(event).__name__

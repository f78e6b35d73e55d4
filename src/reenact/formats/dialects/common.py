"""The common part of both dialects: value ranges, unknown events, reading and writing."""

from __future__ import annotations

from operator import attrgetter
from typing import Annotated, Any, Final, Generic, Literal, TypeAlias, TypeVar

import msgspec
import orjson

from reenact import canonical
from reenact.canonical import JsonValue, read_json
from reenact.formats.record import ABSENT, Codec, Count, Record, upgrade
from reenact.formats.rfc3339 import are_times, verify_time

DialectName: TypeAlias = Literal["current", "legacy"]

REPLAY_VERSION: Final = 1
HEADER: Final = "ReplayHeader"

Milliseconds = Count | Annotated[float, msgspec.Meta(ge=0)]
Confidence = Annotated[int, msgspec.Meta(ge=0, le=1)] | Annotated[float, msgspec.Meta(ge=0, le=1)]
Utility = Annotated[int, msgspec.Meta(ge=-1, le=1)] | Annotated[float, msgspec.Meta(ge=-1, le=1)]
"""The rating of one tool call, from harmful (-1) to helpful (1)."""


class UnknownEvent(msgspec.Struct, frozen=True):
    """An event this version does not know, kept whole."""

    value: dict[str, Any]


E = TypeVar("E", bound=Record)

_encode_lines: Final = canonical.encode_clean_lines
_EXTRA: Final = Record.__struct_encode_fields__[0].encode()
"""The reserved field name of records."""


class Dialect(Generic[E]):
    """The field names of one dialect, and the codec of its events.

    *base* is the base class of its event types; *header* and *kinds* are all of them.
    """

    def __init__(
        self, name: DialectName, *, tag_field: str, time_field: str, base: type[E], header: object, kinds: Any
    ) -> None:
        self.name = name
        self.tag_field = tag_field
        self.time_field = time_field
        self.kind = header | kinds
        """The union of the event types, for a JSON Schema."""
        self._base = base
        self._time_of = attrgetter(time_field)
        self._codec: Codec[E | UnknownEvent] = Codec(self.kind, unknown=UnknownEvent)
        self._decode_lines = msgspec.json.Decoder(kinds).decode_lines

    def from_lines(self, texts: list[bytes]) -> list[E] | None:
        """The events of many lines at once; ``None`` unless all are known, canonical and valid.

        Then :meth:`from_bytes` reads each line by itself. A header also gives ``None``.
        """
        events = self.from_block(b"\n".join(texts) + b"\n")
        return events if events is not None and len(events) == len(texts) else None

    def from_block(self, block: bytes) -> list[E] | None:
        """The same for a text of whole lines with one event each."""
        try:
            events: list[Any] = self._decode_lines(block)
            # Equal texts prove that nothing was repeated, dropped or written in another notation.
            if _encode_lines(events) != block or _may_have_extra(block):
                return None
            free = [event.params for event in events if type(event).__name__ == "ToolCall"]
            # Decoding accepts integers of any size and nesting of any depth. orjson accepts 64 bits and 254
            # levels, of which the brackets leave MAX_DEPTH less the event itself.
            orjson.dumps([[[[free]]]], default=_refuse_params)
        except (msgspec.DecodeError, UnicodeDecodeError, orjson.JSONEncodeError, RecursionError):
            return None
        times = (time for time in map(self._time_of, events) if time is not ABSENT)
        return events if are_times(times) else None

    def from_bytes(self, text: bytes) -> E | UnknownEvent:
        """One event from its line; :class:`FormatError` with the JSON path."""
        events = self.from_lines([text])
        return events[0] if events else self.from_json(read_json(text))

    def from_json(self, value: Any) -> E | UnknownEvent:
        """One event from a decoded line; raises for a header of a newer version."""
        if self.name_in(value) == HEADER:
            value = upgrade(
                value, field="replay_version", current=REPLAY_VERSION, steps={}, what="REPLAY.jsonl"
            )
        event = self._codec.from_json(value)
        for field in (self.time_field, "created_at"):
            time = getattr(event, field, ABSENT)
            if time is not ABSENT:
                verify_time(time, f"$.{field}")
        return event

    def to_json(self, event: E | UnknownEvent) -> dict[str, JsonValue]:
        """The event as plain JSON values."""
        return event.value if isinstance(event, UnknownEvent) else self._codec.to_json(event)

    def to_bytes(self, event: E | UnknownEvent) -> bytes:
        """The line of the event without its line end; raises if the event is not valid."""
        value = self.to_json(event)
        text = canonical.encode(value)
        self.from_json(value)
        return text

    def name_in(self, value: JsonValue) -> str | None:
        """The name of the event in the decoded line *value*; ``None`` if it is not of this dialect."""
        name = value.get(self.tag_field) if isinstance(value, dict) else None
        return name if isinstance(name, str) else None

    def name_of(self, event: E | UnknownEvent) -> str:
        """The name of *event* in its log."""
        if isinstance(event, UnknownEvent):
            return str(self.name_in(event.value))
        return type(event).__name__

    def owns(self, event: object) -> bool:
        """Whether *event* belongs to this dialect."""
        if isinstance(event, UnknownEvent):
            return self.name_in(event.value) is not None
        return isinstance(event, self._base)


def _may_have_extra(block: bytes) -> bool:
    return not block.isascii() and _EXTRA in block


def _refuse_params(value: object) -> None:
    if value is not ABSENT:
        raise TypeError(value)

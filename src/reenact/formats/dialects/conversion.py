"""Converts events from one dialect to the other; everything that the target cannot hold is a loss.

An event that is converted there and back without a loss is unchanged; every change in one that is converted
back was reported as a loss.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from reenact.errors import FormatError
from reenact.formats.dialects import DIALECTS, Event
from reenact.formats.dialects.common import DialectName, UnknownEvent
from reenact.formats.dialects.losses import Loss, Losses, Seen
from reenact.formats.dialects.to_current import TO_CURRENT
from reenact.formats.dialects.to_legacy import TO_LEGACY


class Conversion(NamedTuple):
    """The events that one event was converted to, and the losses."""

    events: tuple[Event, ...]
    losses: tuple[Loss, ...]


class Converter:
    """Converts the events of one log in order; events of the target dialect are not changed."""

    def __init__(self, to: DialectName) -> None:
        self._source, self._target = DIALECTS["current"], DIALECTS["legacy"]
        self._turns = TO_LEGACY
        if to == "current":
            self._source, self._target = self._target, self._source
            self._turns = TO_CURRENT
        self._seen = Seen()

    def convert(self, event: Event, line: int | None = None) -> Conversion:
        """*event* of the given *line* in the target dialect."""
        if self._target.owns(event):
            return Conversion((event,), ())
        losses = Losses(event, self._source.name_of(event), line)
        if isinstance(event, UnknownEvent):
            events = tuple(self._turn_unknown(event, losses))
        else:
            events = tuple(self._turns[type(event)](event, self._seen, losses))
        self._seen = self._seen.after(event)
        return Conversion(events, tuple(losses))

    def _turn_unknown(self, event: UnknownEvent, losses: Losses) -> Iterator[Event]:
        fields = losses.carry(event.value, self._target.tag_field, self._target.time_field)
        value = {self._target.tag_field: fields.pop(self._source.tag_field)}
        if self._source.time_field in fields:
            value[self._target.time_field] = fields.pop(self._source.time_field)
        try:
            yield self._target.from_json(value | fields)
        except FormatError as error:
            losses.add(None, f"the {self._target.name} dialect has another event of this name: {error}")

"""Finding the events of a trace that an assertion is about."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, TypeVar

import msgspec

from reenact.canonical import JsonValue
from reenact.formats.trace import Trace, TraceEvent
from reenact.suite.params import Params
from reenact.suite.verdict import shorten

T = TypeVar("T")

MEMORY_TYPES: Final = ("memory_read", "memory_write")


class Selector(Params, frozen=True, kw_only=True):
    """Selects events; a field that is not given matches everything."""

    event_type: str
    tool: str | None = None
    success: bool | msgspec.UnsetType | None = msgspec.UNSET
    """Null selects events without a success field."""
    call_id: str | None = None

    def matches(self, event: TraceEvent) -> bool:
        data = event.data
        return (
            event.type == self.event_type
            and self.tool in (None, data.get("tool"))
            and self.call_id in (None, data.get("call_id"))
            and (self.success is msgspec.UNSET or data.get("success") is self.success)
        )

    def __str__(self) -> str:
        more = [] if self.call_id is None else [f"call_id {self.call_id}"]
        more += [] if self.success is msgspec.UNSET else [f"success {shorten(self.success)}"]
        named = f"{self.event_type} of {self.tool}" if self.tool else self.event_type
        return f"{named} ({', '.join(more)})" if more else named


def select(trace: Trace, selector: Selector) -> Iterator[TraceEvent]:
    """The events that *selector* matches, in order."""
    return (event for event in trace.events if selector.matches(event))


def of_type(trace: Trace, *types: str) -> list[TraceEvent]:
    """The events of some types, in order."""
    return [event for event in trace.events if event.type in types]


def calls(trace: Trace, tool: str | None = None) -> list[TraceEvent]:
    """The calls of *tool*, or of every tool."""
    return [
        event
        for event in trace.events
        if event.type == "tool_call" and (tool is None or event.data.get("tool") == tool)
    ]


def errors_of(trace: Trace, tool: str) -> list[TraceEvent]:
    """The error events that name *tool*, or that answer one of its calls."""
    its_calls = {event.event_id for event in calls(trace, tool)}
    return [
        event
        for event in of_type(trace, "error")
        if event.data.get("tool") == tool or event.parent_event_id in its_calls
    ]


def successful_results(trace: Trace, sources: Iterable[str] | None) -> list[TraceEvent]:
    """The successful results of *sources* (names of tools or fixtures); of all if ``None``."""
    allowed = None if sources is None else set(sources)
    return [
        event
        for event in of_type(trace, "tool_result")
        if event.data.get("success") is True
        and (
            allowed is None or not allowed.isdisjoint((event.data.get("tool"), event.data.get("fixture_id")))
        )
    ]


def output_events(trace: Trace) -> list[TraceEvent]:
    """The event with the output; none if only the end of the run has it."""
    return of_type(trace, "final_output")[-1:]


def tools_called(trace: Trace) -> str:
    """The names of the tools that were called, each once, in order, for a message."""
    names = dict.fromkeys(str(event.data.get("tool")) for event in calls(trace))
    return f"the tools called were {', '.join(names)}" if names else "no tool was called"


def strings_in(value: JsonValue) -> Iterator[str]:
    """Every string value inside *value*; keys are not values."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for child in value.values():
            yield from strings_in(child)
    elif isinstance(value, list):
        for child in value:
            yield from strings_in(child)


def first(events: Iterable[T]) -> T | None:
    """The first, if there is one."""
    return next(iter(events), None)

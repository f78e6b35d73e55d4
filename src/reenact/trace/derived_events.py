"""The tool calls of a capture that recorded none, as its model traffic shows them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from reenact.formats.capture import CaptureEvent, LlmRequest, LlmResponse, event_codec
from reenact.formats.tags import tag
from reenact.providers import DerivedTools
from reenact.store.reader import CaptureReader
from reenact.trace.exchanges import request_of, response_of


class DerivedEvents:
    """Takes the events of a capture in their order and tells what each shows of tools.

    It shows nothing where the recorder has written calls itself: seen at work, or derived already.
    """

    def __init__(self, reader: CaptureReader) -> None:
        self._reader = reader
        self._tools = None if _has_tool_calls(reader) else DerivedTools()

    def around(self, event: CaptureEvent) -> Iterator[CaptureEvent]:
        """*event* among those it shows, in the order in which the recorder would have written them.

        They have its number and its time.
        """
        if isinstance(event, LlmRequest) and self._tools is not None:
            request = request_of(self._reader, event)
            for data in self._tools.returned(request) if request else ():
                yield _beside(event, "tool_result", data)
        yield event
        if isinstance(event, LlmResponse) and self._tools is not None:
            response = response_of(self._reader, event)
            for data in self._tools.called(response, event.data.callId) if response else ():
                yield _beside(event, "tool_call", data)


def _beside(event: CaptureEvent, kind: str, data: dict[str, Any]) -> CaptureEvent:
    envelope = {name: getattr(event, name) for name in ("version", "captureId", "runId", "seq", "ts")}
    return event_codec.from_json({**envelope, "type": kind, "data": tag(data)})


def _has_tool_calls(reader: CaptureReader) -> bool:
    # Lines are canonical, so that the type of an event is its last member but one.
    return any(line.endswith(b'"type":"tool_call","version":1}') for line in reader.lines())

"""Recording the events of an imported source: they are written in batches, with the times of the source."""

from __future__ import annotations

from typing import Any, Final

from reenact.canonical import JsonValue
from reenact.formats.capture import NO_MODEL
from reenact.recorder.context import UNKNOWN_MODEL, CaptureContext, model_of
from reenact.recorder.payloads import ReportedEvent

_MOST_REPORTED: Final = 256
"""Imported events are redacted and written in batches of this size."""


class ImportingContext(CaptureContext):
    """The context of a run that is read from a recording of another tool."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._reported: list[ReportedEvent] = []
        self._is_reported_json = True

    def new_call_id(self) -> str:
        """A new id for an imported call."""
        return f"{self._names.call_prefix}{next(self._call_numbers)}"

    def record_reported(
        self, event_type: str, data: dict[str, JsonValue], time_ms: int, *, is_json: bool
    ) -> None:
        """Append an event read from the source.

        *is_json* means that all of *data* was decoded from JSON, so it needs no check for other values.
        Events are written in batches; :meth:`write_reported` writes the rest.
        """
        if not self._reported:
            self._events.defer(self._write_reported)
        self._reported.append((event_type, data, time_ms))
        if not is_json:
            self._is_reported_json = False
        if len(self._reported) >= _MOST_REPORTED:
            self.write_reported()

    def write_reported(self) -> None:
        """Write the imported events that are still buffered."""
        if self._reported and self._failure is None:
            try:
                self._events.write_deferred()
            except Exception as error:
                self._fail(error)

    def _write_reported(self) -> None:
        reported, self._reported = self._reported, []
        is_json, self._is_reported_json = self._is_reported_json, True
        self._events.append_all(self._payloads.encode_reported(reported, is_json=is_json))
        if self._model is NO_MODEL:
            request = next((data for event_type, data, _ in reported if event_type == "llm_request"), None)
            if request is not None:
                facts = {name: request[name] for name in UNKNOWN_MODEL}
                self._model = model_of(self._payloads.redact_members(facts))

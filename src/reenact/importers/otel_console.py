"""What OpenTelemetry's console exporter for Python prints: one JSON object after the other, over many lines.

Other lines that the program printed may stand between them; they are a loss.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Final

from reenact.canonical import JsonValue
from reenact.importers.building import iso_ms
from reenact.importers.importing import Importer, Runs
from reenact.importers.otlp import span_of
from reenact.importers.source import ForeignSource, JsonObject, Losses, expect_list, expect_object
from reenact.importers.spans import Span, import_spans, read_spans

_SPAN: Final = (
    "context",
    "parent_id",
    "start_time",
    "end_time",
    "attributes",
    "events",
    "status",
    "resource",
)
_CONTEXT: Final = ("trace_id", "span_id", "trace_state")
_EVENT: Final = ("timestamp",)
_STATUS: Final = ("status_code", "description")
_BEGIN: Final = re.compile(r"^\{", re.MULTILINE)


def _recognises(source: ForeignSource) -> bool:
    return _BEGIN.search(source.head.decode("utf-8", "replace")) is not None and source.has(
        "context", "trace_id", "span_id", "trace_state", "start_time"
    )


def _read(source: ForeignSource, runs: Runs) -> None:
    lost: Losses = []
    resources: list[tuple[str, JsonValue]] = []
    listed = [*_objects_of(source.read().decode("utf-8", "replace"), lost)]
    for value, _ in listed:
        about = ("resource", value.get("resource"))
        resources += [about] if isinstance(about[1], dict) and about not in resources else []
    import_spans(runs, [*read_spans(listed, _span_of, "span", lost)], lost, resources)


def _objects_of(text: str, lost: Losses) -> Iterator[tuple[JsonObject, int]]:
    """Its objects, each with its line; what is between them is lost."""
    decoder = json.JSONDecoder()
    place = line = 0
    for begin in _BEGIN.finditer(text):
        if begin.start() < place:
            continue
        try:
            value, end = decoder.raw_decode(text, begin.start())
        except (ValueError, RecursionError):
            continue
        _note_lost_text(text[place : begin.start()], line + 1, lost)
        line += text.count("\n", place, begin.start())
        yield value, line + 1
        line += text.count("\n", begin.start(), end)
        place = end
    _note_lost_text(text[place:], line + 1, lost)


def _note_lost_text(text: str, line: int, lost: Losses) -> None:
    if text.strip():
        first = line + text[: len(text) - len(text.lstrip())].count("\n")
        lost.append(("is not a span; it is left out with what follows it, up to the next span", first))


def _span_of(raw: JsonObject) -> Span:
    context = expect_object("context", raw.get("context"))
    status = expect_object("status", raw.get("status") or {})
    return span_of(
        {
            **_rest(raw, _SPAN),
            **_rest(context, _CONTEXT),
            **_ids(context),
            "startTimeUnixNano": _nanoseconds(raw.get("start_time")),
            "endTimeUnixNano": _nanoseconds(raw.get("end_time")),
            "attributes": expect_object("attributes", raw.get("attributes") or {}),
            "events": [_rest(each, _EVENT) for each in _objects("events", raw.get("events"))],
            "links": [_link_of(each) for each in _objects("links", raw.get("links"))],
            "status": {
                **_rest(status, _STATUS),
                "code": f"STATUS_CODE_{status.get('status_code')}",
                "message": status.get("description"),
            },
        }
    )


def _link_of(link: JsonObject) -> JsonValue:
    context = expect_object("context", link.get("context"))
    return {**_rest(link, ("context",)), **_rest(context, _CONTEXT), **_ids(context)}


def _ids(context: JsonObject) -> JsonObject:
    names = {"traceId": "trace_id", "spanId": "span_id"}
    return {ours: str(context.get(name)).removeprefix("0x") for ours, name in names.items()}


def _objects(place: str, value: JsonValue) -> list[JsonObject]:
    return [expect_object(f"an item of {place}", each) for each in expect_list(place, value)]


def _rest(value: JsonObject, known: tuple[str, ...]) -> JsonObject:
    return {name: child for name, child in value.items() if name not in known}


def _nanoseconds(time: JsonValue) -> JsonValue:
    """A time in nanoseconds; one that cannot be read stays as it is."""
    found = iso_ms(time)
    return time if found is None else int(found * 1_000_000)


IMPORTER: Final = Importer(
    name="otel-console",
    title="what OpenTelemetry's console exporter for Python prints (GenAI, OpenInference)",
    version=1,
    fidelity="judgeable",
    recognises=_recognises,
    read=_read,
    holds_many=True,
)

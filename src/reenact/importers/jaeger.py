"""Traces that Jaeger writes as JSON, by its page or its interface: spans with tags, converted to OTLP's.

Tags have the names of the conventions. A list is a text of JSON, and the status is in tags of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from reenact.canonical import JsonValue
from reenact.importers.importing import Importer, Runs
from reenact.importers.otlp import span_of
from reenact.importers.source import (
    ForeignSource,
    JsonObject,
    Losses,
    expect_list,
    expect_object,
    type_mismatch,
)
from reenact.importers.spans import Span, import_spans, read_spans

_DOCUMENT: Final = ("data", "total", "limit", "offset", "errors")
_TRACE: Final = ("traceID", "spans", "processes", "warnings")
_SPAN: Final = (
    "traceID", "spanID", "parentSpanID", "operationName", "references", "startTime", "startTimeMillis",
    "duration", "tags", "logs", "processID", "process", "warnings",
)  # fmt: skip
_LOG: Final = ("timestamp", "fields")
_REFERENCE: Final = ("refType", "traceID", "spanID")
_TAG: Final = ("key", "type", "value")
_ERRORS: Final = (True, "true", "ERROR")


def _recognises(source: ForeignSource) -> bool:
    return source.head.lstrip().startswith((b"{", b"[")) and source.has("traceID", "spanID", "operationName")


def _read(source: ForeignSource, runs: Runs) -> None:
    lost: Losses = []
    about: list[tuple[str, JsonValue]] = []
    document = source.document(lost)
    if isinstance(document, dict) and "data" in document:
        about += _notes_of("document", document, _DOCUMENT)
        document = document["data"]
    traces = [document] if isinstance(document, dict) else expect_list("data", document)
    spans = [span for number, trace in enumerate(traces, 1) for span in _spans_of(number, trace, lost, about)]
    import_spans(runs, spans, lost, about)


def _spans_of(
    number: int, value: JsonValue, lost: Losses, about: list[tuple[str, JsonValue]]
) -> Iterator[Span]:
    """The spans of a trace; its processes are added to *about*."""
    try:
        trace = expect_object("a trace", value)
        listed = expect_list("spans", trace.get("spans"))
        about += _notes_of("trace", trace, _TRACE)
        processes = ("processes", trace.get("processes"))
        about += [processes] if processes not in about else []
    except ValueError as error:
        lost.append((f"trace {number} cannot be read: {error}", None))
        return
    yield from read_spans([(span, None) for span in listed], _span_of, f"trace {number}: span", lost)


def _span_of(raw: JsonObject) -> Span:
    tags, odd = _read_tags(raw.get("tags"))
    failed = [tags.pop(name, None) for name in ("error", "otel.status_code")]
    message = tags.pop("otel.status_description", None)
    started, duration = raw.get("startTime"), raw.get("duration")
    ended = duration
    if isinstance(started, int) and isinstance(duration, int):
        started, ended = started * 1000, (started + duration) * 1000
    links: list[JsonValue] = [
        {
            "traceId": reference.get("traceID"),
            "spanId": reference.get("spanID"),
            **_rest(reference, _REFERENCE),
        }
        for reference in _objects("references", raw.get("references"))
    ]
    return span_of(
        {
            **_rest(raw, _SPAN),
            **odd,
            "traceId": raw.get("traceID"),
            "spanId": raw.get("spanID"),
            "name": raw.get("operationName"),
            "startTimeUnixNano": started,
            "endTimeUnixNano": ended,
            "attributes": tags,
            "events": [_event_of(log) for log in _objects("logs", raw.get("logs"))],
            "links": links,
            "status": {"code": 2, "message": message} if any(each in _ERRORS for each in failed) else {},
        }
    )


def _event_of(log: JsonObject) -> JsonValue:
    fields, odd = _read_tags(log.get("fields"))
    return {"name": fields.pop("event", ""), "attributes": fields, **_rest(log, _LOG), **odd}


def _read_tags(listed: JsonValue) -> tuple[JsonObject, JsonObject]:
    """The values by their keys, and the members of tags that are not known."""
    tags: JsonObject = {}
    odd: JsonObject = {}
    for tag in _objects("tags", listed):
        key = tag.get("key")
        if not isinstance(key, str):
            raise type_mismatch("the key of a tag", "a text", key)
        tags[key] = tag.get("value")
        odd |= {f"tag.{name}": value for name, value in _rest(tag, _TAG).items()}
    return tags, odd


def _objects(place: str, value: JsonValue) -> list[JsonObject]:
    return [expect_object(f"an item of {place}", each) for each in expect_list(place, value)]


def _notes_of(kind: str, value: JsonObject, known: tuple[str, ...]) -> list[tuple[str, JsonValue]]:
    rest = _rest(value, known)
    return [(kind, rest)] if rest else []


def _rest(value: JsonObject, known: tuple[str, ...]) -> JsonObject:
    return {name: child for name, child in value.items() if name not in known}


IMPORTER: Final = Importer(
    name="jaeger",
    title="traces of Jaeger (GenAI, OpenInference)",
    version=1,
    fidelity="judgeable",
    recognises=_recognises,
    read=_read,
    holds_many=True,
)

"""Traces and observations exported from Langfuse: one trace, a list of either, one per line, or CSV."""

from __future__ import annotations

import csv
from io import StringIO
from typing import Final

from reenact.canonical import JsonValue
from reenact.errors import FormatError
from reenact.importers.building import Line, usage_counts
from reenact.importers.importing import Importer, Runs
from reenact.importers.source import MAX_WHOLE_BYTES, ForeignSource, JsonObject, Losses, Unfit
from reenact.importers.spans import (
    MESSAGE,
    Listing,
    Span,
    first_of,
    import_spans,
    messages_of,
    read_listing,
    read_spans,
    take_answer,
    value_of,
)

_KINDS: Final = (
    "GENERATION",
    "SPAN",
    "EVENT",
    "TOOL",
    "AGENT",
    "CHAIN",
    "RETRIEVER",
    "EMBEDDING",
    "EVALUATOR",
    "GUARDRAIL",
)
_KNOWN: Final = frozenset({
    "id", "traceId", "type", "name", "startTime", "endTime", "input", "output",
    "model", "modelId", "modelParameters", "usage", "usageDetails", "costDetails", "level",
    "statusMessage", "parentObservationId", "metadata", "completionStartTime", "promptId", "promptName",
    "promptVersion", "version", "environment", "projectId", "createdAt", "updatedAt", "inputPrice",
    "outputPrice", "totalPrice", "calculatedInputCost", "calculatedOutputCost", "calculatedTotalCost",
    "latency", "timeToFirstToken", "unit", "promptTokens", "completionTokens", "totalTokens", "bookmarked",
    "inputTokens", "outputTokens", "traceName", "providedModelName", "internalModelId",
    "toolCalls", "toolDefinitions", "toolCallNames",
})  # fmt: skip
_USAGE: Final = {
    "input": "inputTokens",
    "output": "outputTokens",
    "inputTokens": "inputTokens",
    "outputTokens": "outputTokens",
    "promptTokens": "inputTokens",
    "completionTokens": "outputTokens",
    "cache_read_input_tokens": "cachedInputTokens",
    "input_cached_tokens": "cachedInputTokens",
}

_COUNTS: Final = frozenset({
    *_USAGE, "total", "totalTokens", "unit", "inputCost", "outputCost", "totalCost", "input_tokens",
    "output_tokens", "total_tokens", "cache_creation_input_tokens", "output_reasoning_tokens",
    "input_audio_tokens", "output_audio_tokens", "prompt_tokens", "completion_tokens",
})  # fmt: skip


def _recognises(source: ForeignSource) -> bool:
    if not source.head.lstrip().startswith((b"{", b"[")):
        return _is_table(source.head)
    is_trace = source.has("observations") and (source.has("timestamp") or source.has("startTime"))
    names_trace = source.has("traceId", "type") or source.has("trace_id", "type", "start_time")
    return is_trace or (names_trace and any(source.has(kind) for kind in _KINDS[:4]))


def _is_table(head: bytes) -> bool:
    first = head.lstrip().partition(b"\n")[0].decode("utf-8", "replace").strip()
    return {"id", "traceId", "type", "startTime"} <= {
        _api_name(name.strip(' "')) for name in first.split(",")
    }


def _read_table(source: ForeignSource, lost: Losses) -> Listing:
    """The rows of a table, whose cells may hold JSON; an empty cell is an absent member."""
    try:
        text = source.read().removeprefix(b"\xef\xbb\xbf").decode()
    except UnicodeDecodeError as error:
        raise FormatError(f"no table in UTF-8: {error.reason}", file=source.name) from None
    values: list[tuple[JsonValue, Line]] = []
    before = csv.field_size_limit(MAX_WHOLE_BYTES)
    try:
        rows = csv.DictReader(StringIO(text, newline=""))
        _ = rows.fieldnames  # reads the first line
        line = rows.line_num + 1
        for row in rows:
            cells: JsonObject = {str(name): cell for name, cell in row.items() if cell not in ("", None)}
            values.append((cells, line))
            line = rows.line_num + 1
    except csv.Error as error:
        lost.append((f"the rest is no table: {error}", rows.line_num + 1))
    finally:
        csv.field_size_limit(before)
    return Listing(values)


def _read(source: ForeignSource, runs: Runs) -> None:
    lost: Losses = []
    is_table = not source.head.lstrip().startswith((b"{", b"["))
    listing = _read_table(source, lost) if is_table else read_listing(source, ["data", "traces"], lost)
    records = [(each, line) for top, line in listing.values for each in _with_observations(top)]
    spans = list(read_spans(records, _span_of, "observation", lost))
    if not spans and not lost:
        raise FormatError("it holds no observation", file=source.name)
    import_spans(runs, spans, lost, listing.about)


def _with_observations(record: JsonValue) -> list[JsonValue]:
    """A trace without its observations, followed by these; a single observation by itself."""
    observations = record.get("observations") if isinstance(record, dict) else None
    if not isinstance(record, dict) or not isinstance(observations, list):
        return [record]
    trace: JsonObject = {"traceId": str(record.get("id") or "trace")}
    below = [
        each | trace if isinstance(each, dict) else each
        for each in observations
        if not isinstance(each, str)  # a list of traces has only the ids of observations
    ]
    return [{**record, "observations": None}, *below]


_TRACE_ITSELF: Final = ("id", "timestamp", "observations")


def _trace_span(trace_record: JsonObject) -> Span:
    trace = str(trace_record.get("id") or "trace")
    span = Span(
        trace_id=trace,
        span_id=trace,
        name=str(trace_record.get("name") or "trace"),
        details={name: value for name, value in trace_record.items() if name not in _TRACE_ITSELF},
    )
    span.set_times(trace_record.get("timestamp"), None)
    return span


def _api_name(column: str) -> str:
    """The API's name for a column of the tables in a bucket export: ``traceId`` for ``trace_id``."""
    first, *rest = column.split("_")
    return first + "".join(part.capitalize() for part in rest)


def _span_of(observation: JsonObject) -> Span:
    if "observations" in observation:
        return _trace_span(observation)
    fields = {_api_name(name): value for name, value in observation.items()}
    if fields.get("id") is None:
        raise Unfit("it has no id")
    kind = str(fields.get("type")).upper()
    is_error = fields.get("level") == "ERROR"
    span = Span(
        trace_id=str(fields.get("traceId") or "trace"),
        span_id=str(fields["id"]),
        name=str(fields.get("name")),
        kind="model" if kind == "GENERATION" else "tool" if kind == "TOOL" else "other",
        error=str(fields.get("statusMessage") or "error") if is_error else None,
        unknown=[f"attribute.{name}" for name in sorted(observation) if _api_name(name) not in _KNOWN],
    )
    span.set_times(fields.get("startTime"), fields.get("endTime"))
    if span.kind == "model":
        span.model = str(first_of(fields, "model", "providedModelName") or "unknown")
        given = value_of(fields.get("input"))
        span.messages = messages_of(given)
        is_wrapped = isinstance(given, dict) and "messages" in given
        span.check_fields("input", given["messages"] if is_wrapped else given, MESSAGE)
        output = value_of(fields.get("output"))
        span.check_fields("output", output, MESSAGE)
        counts = value_of(first_of(fields, "usageDetails", "usage"))
        span.check_fields("usage", counts, _COUNTS)
        answer = output[-1] if isinstance(output, list) and output else output
        take_answer(span, {"role": "assistant", "content": answer} if isinstance(answer, str) else answer)
        span.usage = usage_counts(counts, _USAGE) or usage_counts(fields, _USAGE)
    elif span.kind == "tool":
        span.arguments, span.result = value_of(fields.get("input")), value_of(fields.get("output"))
    else:
        span.details = {"type": kind.lower(), "input": fields.get("input"), "output": fields.get("output")}
    return span


IMPORTER: Final = Importer(
    name="langfuse",
    title="traces exported from Langfuse",
    version=1,
    fidelity="judgeable",
    recognises=_recognises,
    read=_read,
    holds_many=True,
)

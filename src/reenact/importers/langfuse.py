"""Traces and observations exported from Langfuse: a trace, a list of either, or one a line."""

from __future__ import annotations

from typing import Final

from reenact.canonical import JsonValue
from reenact.errors import FormatError
from reenact.importers.building import iso_ms, usage_counts
from reenact.importers.importing import Importer, Runs
from reenact.importers.source import ForeignSource, JsonObject, Losses, Unfit
from reenact.importers.spans import (
    MESSAGE,
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
    "providedModelName", "internalModelId", "toolCalls", "toolDefinitions", "toolCallNames",
})  # fmt: skip
_USAGE: Final = {
    "input": "inputTokens",
    "output": "outputTokens",
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
        return False
    is_trace = source.has("observations") and (source.has("timestamp") or source.has("startTime"))
    names_trace = source.has("traceId", "type") or source.has("trace_id", "type", "start_time")
    return is_trace or (names_trace and any(source.has(kind) for kind in _KINDS[:4]))


def _read(source: ForeignSource, runs: Runs) -> None:
    lost: Losses = []
    listing = read_listing(source, ["data", "traces"], lost)
    told = [(each, line) for top, line in listing.values for each in _with_observations(top)]
    spans = list(read_spans(told, _span_of, "observation", lost))
    if not spans and not lost:
        raise FormatError("it holds no observation", file=source.name)
    import_spans(runs, spans, lost, listing.about)


def _with_observations(told: JsonValue) -> list[JsonValue]:
    """A trace without its observations, and these as they stand alone; an observation by itself."""
    observations = told.get("observations") if isinstance(told, dict) else None
    if not isinstance(told, dict) or not isinstance(observations, list):
        return [told]
    trace: JsonObject = {"traceId": str(told.get("id") or "trace")}
    below = [
        each | trace if isinstance(each, dict) else each
        for each in observations
        if not isinstance(each, str)  # a list of traces names them by their ids alone
    ]
    return [{**told, "observations": None}, *below]


_TRACE_ITSELF: Final = ("id", "timestamp", "observations")


def _trace_span(told: JsonObject) -> Span:
    trace = str(told.get("id") or "trace")
    return Span(
        trace_id=trace,
        span_id=trace,
        name=str(told.get("name") or "trace"),
        started_ms=iso_ms(told.get("timestamp")),
        details={name: value for name, value in told.items() if name not in _TRACE_ITSELF},
    )


def _api_name(column: str) -> str:
    """What the API calls a column of the tables that go to a bucket: ``traceId`` for ``trace_id``."""
    first, *rest = column.split("_")
    return first + "".join(part.capitalize() for part in rest)


def _span_of(observation: JsonObject) -> Span:
    if "observations" in observation:
        return _trace_span(observation)
    told = {_api_name(name): value for name, value in observation.items()}
    if told.get("id") is None:
        raise Unfit("it has no id")
    kind = str(told.get("type")).upper()
    is_error = told.get("level") == "ERROR"
    span = Span(
        trace_id=str(told.get("traceId") or "trace"),
        span_id=str(told["id"]),
        name=str(told.get("name")),
        kind="model" if kind == "GENERATION" else "tool" if kind == "TOOL" else "other",
        started_ms=iso_ms(told.get("startTime")),
        ended_ms=iso_ms(told.get("endTime")),
        error=str(told.get("statusMessage") or "error") if is_error else None,
        unknown=[f"attribute.{name}" for name in sorted(observation) if _api_name(name) not in _KNOWN],
    )
    if span.kind == "model":
        span.model = str(first_of(told, "model", "providedModelName") or "unknown")
        given = value_of(told.get("input"))
        span.messages = messages_of(given)
        is_wrapped = isinstance(given, dict) and "messages" in given
        span.check_fields("input", given["messages"] if is_wrapped else given, MESSAGE)
        output = value_of(told.get("output"))
        span.check_fields("output", output, MESSAGE)
        span.check_fields("usage", first_of(told, "usageDetails", "usage"), _COUNTS)
        answer = output[-1] if isinstance(output, list) and output else output
        take_answer(span, {"role": "assistant", "content": answer} if isinstance(answer, str) else answer)
        span.usage = usage_counts(first_of(told, "usageDetails", "usage"), _USAGE) or usage_counts(
            told, _USAGE
        )
    elif span.kind == "tool":
        span.arguments, span.result = value_of(told.get("input")), value_of(told.get("output"))
    else:
        span.details = {"type": kind.lower(), "input": told.get("input"), "output": told.get("output")}
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

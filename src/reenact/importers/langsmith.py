"""Runs exported from LangSmith: a list, or one per line."""

from __future__ import annotations

from typing import Final

from reenact.canonical import JsonValue
from reenact.importers.building import KnownFields
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

_KNOWN: Final = frozenset({
    "id", "name", "run_type", "inputs", "outputs", "start_time", "end_time", "error", "trace_id",
    "parent_run_id", "parent_run_ids", "dotted_order", "extra", "events", "tags", "session_id",
    "session_name",
    "total_tokens", "prompt_tokens", "completion_tokens", "total_cost", "prompt_cost", "completion_cost",
    "feedback_stats", "status", "app_path", "child_runs", "child_run_ids", "direct_child_run_ids",
    "reference_example_id", "serialized", "first_token_time", "manifest_id", "execution_order",
    "in_dataset",
    "inputs_preview", "outputs_preview", "s3_urls", "inputs_s3_urls", "outputs_s3_urls", "attachments",
    "share_token", "trace_tier", "ttl_seconds", "last_queued_at", "price_model_id", "thread_id",
})  # fmt: skip

_EXTRA: Final = KnownFields(
    metadata=None, invocation_params=None, options=None, runtime=None, batch_size=None
)
_INPUTS: Final = KnownFields(
    "messages", "contents", "input", "prompt", "prompts", "model", "temperature", "max_tokens", "stream",
    "stop", "top_p", "tool_choice", tools=None, response_format=None, extra_headers=None,
)  # fmt: skip
_OUTPUTS: Final = KnownFields(
    "generations", "messages", "run", "type", "id", "object", "created", "model", "system_fingerprint",
    "service_tier", "role", "content", "text", choices=MESSAGE, message=MESSAGE, output=MESSAGE,
    llm_output=None, usage=None, usage_metadata=None,
)  # fmt: skip


def _recognises(source: ForeignSource) -> bool:
    return source.head.lstrip().startswith((b"{", b"[")) and source.has("run_type", "inputs")


def _read(source: ForeignSource, runs: Runs) -> None:
    lost: Losses = []
    listing = read_listing(source, ["runs"], lost)
    records = [(run, line) for top, line in listing.values for run in _with_children(top)]
    import_spans(runs, list(read_spans(records, _span_of, "run", lost)), lost, listing.about)


def _with_children(run: JsonValue) -> list[JsonValue]:
    children = run.get("child_runs") if isinstance(run, dict) else None
    listed = children if isinstance(children, list) else []
    return [run, *(each for child in listed for each in _with_children(child))]


def _span_of(record: JsonObject) -> Span:
    kind = record.get("run_type")
    if not isinstance(kind, str) or record.get("id") is None:
        raise Unfit("it has no id or no run_type")
    span = Span(
        trace_id=str(first_of(record, "trace_id", "id")),
        span_id=str(record["id"]),
        name=str(record.get("name")),
        kind="model" if kind == "llm" else "tool" if kind == "tool" else "other",
        error=str(record["error"]) if record.get("error") else None,
        unknown=[f"attribute.{name}" for name in sorted(record.keys() - _KNOWN)],
    )
    span.set_times(record.get("start_time"), record.get("end_time"))
    # Bulk exports have them as texts.
    inputs, outputs = value_of(record.get("inputs")) or {}, value_of(record.get("outputs")) or {}
    if span.kind == "model":
        _fill_model(span, record, inputs, outputs)
    elif span.kind == "tool":
        span.arguments = inputs["input"] if isinstance(inputs, dict) and list(inputs) == ["input"] else inputs
        span.result = (
            outputs["output"] if isinstance(outputs, dict) and list(outputs) == ["output"] else outputs
        )
    else:
        span.details = {"type": kind, "inputs": inputs, "outputs": outputs}
    return span


def _fill_model(span: Span, record: JsonObject, inputs: JsonValue, outputs: JsonValue) -> None:
    extra = _object(record, "extra")
    span.check_fields("extra", extra, _EXTRA)
    span.check_fields("inputs", inputs, _INPUTS)
    span.check_fields("outputs", outputs, _OUTPUTS)
    for place, given in (("inputs", inputs), ("outputs", outputs)):
        for name in ("messages", "generations"):
            if isinstance(given, dict):
                span.check_fields(f"{place}.{name}", given.get(name), MESSAGE)
    metadata, params = _object(extra, "metadata"), _object(extra, "invocation_params")
    span.model = str(metadata.get("ls_model_name") or first_of(params, "model", "model_name") or "unknown")
    span.provider = str(metadata.get("ls_provider") or "unknown")
    span.messages = messages_of(inputs)
    take_answer(span, _answer_of(span, outputs))
    counts = {"inputTokens": record.get("prompt_tokens"), "outputTokens": record.get("completion_tokens")}
    span.usage = {name: count for name, count in counts.items() if isinstance(count, int)} or None


def _object(record: JsonObject, name: str) -> JsonObject:
    found = value_of(record.get(name))
    return found if isinstance(found, dict) else {}


def _answer_of(span: Span, outputs: JsonValue) -> JsonValue:
    """The first answer, in any of the forms that wrapped clients and LangChain write."""
    found = outputs
    for name in ("generations", "choices", "messages"):
        if isinstance(found, dict) and isinstance(listed := found.get(name), list) and listed:
            found = listed[-1] if name == "messages" else span.first_choice(f"outputs.{name}", listed)
            if isinstance(found, list) and found:
                found = span.first_choice(f"outputs.{name}", found)
            break
    if isinstance(found, dict) and isinstance(found.get("message"), dict):
        return found["message"]
    if isinstance(found, dict) and isinstance(found.get("output"), dict):
        return found["output"]
    return found


IMPORTER: Final = Importer(
    name="langsmith",
    title="runs exported from LangSmith",
    version=1,
    fidelity="judgeable",
    recognises=_recognises,
    read=_read,
    holds_many=True,
)

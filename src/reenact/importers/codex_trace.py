"""Trace bundles of Codex (``CODEX_ROLLOUT_TRACE_ROOT``), with whole requests, and the items of the answers.

A bundle does not have the event stream of an answer. An equivalent stream is built from the items, so that
Codex can replay it.
"""

from __future__ import annotations

import json
from pathlib import PurePosixPath
from typing import Final

from reenact.canonical import JsonValue
from reenact.errors import FormatError
from reenact.importers.building import KnownFields, RunBuilder
from reenact.importers.importing import Importer, Runs
from reenact.importers.source import ForeignSource, JsonObject, Unfit, expect_list, expect_object, read_value
from reenact.seams.http.message import Head
from reenact.seams.http.request import Sent

_EVENT: Final = frozenset({
    "schema_version", "seq", "wall_time_unix_ms", "rollout_id", "thread_id", "codex_turn_id", "payload",
})  # fmt: skip
_MANIFEST: Final = frozenset({
    "schema_version", "trace_id", "rollout_id", "root_thread_id", "started_at_unix_ms", "raw_event_log",
    "payloads_dir",
})  # fmt: skip
_REFERENCE: Final = KnownFields("raw_payload_id", "path", kind=frozenset({"type"}))
_INFERENCE: Final = KnownFields(
    "type", "inference_call_id", "thread_id", "codex_turn_id", "model", "provider_name", "response_id",
    "upstream_request_id", request_payload=_REFERENCE, response_payload=_REFERENCE,
)  # fmt: skip
_ANSWER: Final = KnownFields(
    "response_id", "output_items", "upstream_request_id", "end_turn", token_usage=frozenset({ "input_tokens",
    "cached_input_tokens", "cache_write_input_tokens", "output_tokens", "reasoning_output_tokens",
    "total_tokens", }),
)  # fmt: skip
_VERSIONS: Final = (1, 2)
_BASE: Final = "https://api.openai.com/v1"
"""The default address of Codex; a bundle does not have the address."""
_BYTES_OF_EVENTS: Final = "text/event-stream"


def _recognises(source: ForeignSource) -> bool:
    if not source.is_folder or not (source.path / "manifest.json").is_file():
        return False
    manifest = _manifest_of(source)
    return isinstance(manifest, dict) and {"rollout_id", "raw_event_log", "payloads_dir"} <= manifest.keys()


def _manifest_of(source: ForeignSource) -> JsonValue:
    try:
        return read_value(source.read("manifest.json"))
    except ValueError:
        return None


def _read(source: ForeignSource, runs: Runs) -> None:
    manifest = _manifest_of(source)
    if not isinstance(manifest, dict):
        raise FormatError("expected an object in manifest.json", file=source.name)
    started_ms = manifest.get("started_at_unix_ms")
    run = runs.open(
        started_ms=started_ms if isinstance(started_ms, int | float) else None, upstreams={"openai": _BASE}
    )
    if manifest.get("schema_version") not in _VERSIONS:
        run.note_loss(f"version {manifest.get('schema_version')!r} of bundles is not known; it was read as 2")
    run.note_missing(
        "stream events as they were sent; they are rebuilt from the answers' items",
        "addresses of the models; the default of Codex is used",
        "headers",
        "tasks that made the calls",
    )
    run.check_fields("manifest", manifest, _MANIFEST)
    log = str(manifest.get("raw_event_log"))
    if not _is_inside(log) or not (source.path / log).is_file():
        raise FormatError(f"the event log {log!r} is missing", file=source.name)
    waiting: dict[str, bytes] = {}
    for line, event in source.objects(run.note_loss, log):
        run.check_fields("event", event, _EVENT)
        payload = event.get("payload")
        if not isinstance(payload, dict):
            run.note_loss("the event has no payload", line)
            continue
        run.at(run.time_ms(event.get("wall_time_unix_ms"), line))
        named = f"the event {payload.get('type')}"
        run.attempt(line, _import_event, source, run, payload, waiting, what=named)
    for _ in waiting:
        run.note_loss("a request to the model was never answered")


def _import_event(
    source: ForeignSource, run: RunBuilder, payload: JsonObject, waiting: dict[str, bytes]
) -> None:
    kind, own = payload.get("type"), str(payload.get("inference_call_id"))
    if str(kind).startswith("inference_"):
        run.check_fields("inference", payload, _INFERENCE)
    if kind == "inference_started":
        waiting[own] = _payload(source, payload.get("request_payload"))
    elif kind == "inference_completed":
        body = waiting.pop(own, None)
        if body is None:
            raise Unfit("the request that it answers is missing")
        answer = expect_object("the answer", _json_payload(source, payload.get("response_payload")))
        run.check_fields("answer", answer, _ANSWER)
        is_streamed = expect_object("the request", read_value(body)).get("stream") is True
        sent = Sent("POST", f"{_BASE}/responses", [("content-type", "application/json")], body)
        made = _stream_of(answer) if is_streamed else _json(_response_of(answer))
        media_type = _BYTES_OF_EVENTS if is_streamed else "application/json"
        run.exchange(sent, Head(200, "OK", "HTTP/1.1", [("content-type", media_type)]), made)
    elif kind in ("inference_failed", "inference_cancelled"):
        waiting.pop(own, None)
        run.note_loss(f"{kind}: a bundle does not have failed answers as they were sent")
    else:
        # Tool calls are already in the model's traffic; all other events are kept unchanged.
        run.note(
            str(kind),
            {name: _with_payload(source, value) for name, value in payload.items() if name != "type"},
        )


def _with_payload(source: ForeignSource, value: JsonValue) -> JsonValue:
    """*value*, with the content of the payload if it is a reference to one."""
    if not isinstance(value, dict) or not {"raw_payload_id", "path"} <= value.keys():
        return value
    return {**value, "content": _json_payload(source, value)}


def _json_payload(source: ForeignSource, reference: JsonValue) -> JsonValue:
    try:
        return read_value(_payload(source, reference))
    except ValueError as error:
        raise error if isinstance(error, Unfit) else Unfit("the payload is not JSON") from None


def _payload(source: ForeignSource, reference: JsonValue) -> bytes:
    path = str(expect_object("the reference to a payload", reference).get("path"))
    if not _is_inside(path):
        raise Unfit(f"the payload {path!r} is outside of the bundle")
    try:
        return source.read(path)
    except OSError as error:
        raise Unfit(f"the payload {path!r}: {error.strerror}") from None


def _is_inside(path: str) -> bool:
    parts = PurePosixPath(path).parts
    return bool(parts) and ".." not in parts and not PurePosixPath(path).is_absolute()


def _response_of(answer: JsonObject) -> JsonObject:
    usage = expect_object("token_usage", answer.get("token_usage") or {})
    return {
        "id": answer.get("response_id"),
        "object": "response",
        "status": "completed",
        "output": expect_list("output_items", answer.get("output_items")),
        "usage": {
            "input_tokens": usage.get("input_tokens", 0),
            "input_tokens_details": {"cached_tokens": usage.get("cached_input_tokens", 0)},
            "output_tokens": usage.get("output_tokens", 0),
            "output_tokens_details": {"reasoning_tokens": usage.get("reasoning_output_tokens", 0)},
            "total_tokens": usage.get("total_tokens", 0),
        },
    }


def _stream_of(answer: JsonObject) -> bytes:
    """The stream events for an answer with these items."""
    whole = _response_of(answer)
    begun: JsonObject = {"id": whole["id"], "object": "response", "status": "in_progress", "output": []}
    events: list[tuple[str, JsonObject]] = [("response.created", {"response": begun})]
    for index, item in enumerate(expect_list("output_items", whole["output"])):
        events.append(("response.output_item.added", {"output_index": index, "item": item}))
        events.append(("response.output_item.done", {"output_index": index, "item": item}))
    events.append(("response.completed", {"response": whole}))
    return b"".join(
        b"event: %b\ndata: %b\n\n" % (kind.encode(), _json({"type": kind, **data, "sequence_number": number}))
        for number, (kind, data) in enumerate(events)
    )


def _json(value: JsonValue) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")


IMPORTER: Final = Importer(
    name="codex-trace",
    title="trace bundles of Codex",
    version=1,
    fidelity="replayable",
    recognises=_recognises,
    read=_read,
    reads_folders=True,
)

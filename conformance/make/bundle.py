"""Bundles: every clause of their validity is broken once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from conformance.make.case import Case, Change, Event, Found, document, document_case

BUNDLE: Event = {
    "schema_version": "0.1",
    "adapter": "nanoclaw-replay",
    "scenario": {"trigger": "user_message"},
    "input_messages": [{"role": "user", "content": "what to drink?"}],
    "script": [
        {"type": "tool_call", "tool": "search", "call_id": "c1", "args": {"query": "tea"}},
        {"type": "tool_result", "tool": "search", "call_id": "c1", "success": True, "result": ["green"]},
    ],
    "final_output": {"role": "assistant", "content": "green tea"},
    "status": "success",
    "metrics": {"timing_ms_total": 12},
}


def _set(**fields: Any) -> Change:
    return lambda bundle: bundle.update(fields)


def _step(index: int, **fields: Any) -> Change:
    return lambda bundle: bundle["script"][index].update(fields)


BROKEN: tuple[tuple[str, str, Change, str, str], ...] = (
    (
        "version-newer",
        "1.4: a later major version.",
        _set(schema_version="1.0"),
        "unknown_version",
        "$.schema_version",
    ),
    (
        "version-no-text",
        "1.4: an integer is no version.",
        _set(schema_version=1),
        "unknown_version",
        "$.schema_version",
    ),
    (
        "scenario-no-object",
        "4.2.3: the scenario is an object.",
        _set(scenario=[]),
        "wrong_type",
        "$.scenario",
    ),
    (
        "trigger-unknown",
        "4.2.3: a trigger of another name.",
        _set(scenario={"trigger": "full_moon"}),
        "unknown_trigger",
        "$.scenario.trigger",
    ),
    (
        "context-missing",
        "4.2.4: a scheduler has a context.",
        _set(scenario={"trigger": "scheduler"}),
        "missing_field",
        "$.scenario.scheduler_context",
    ),
    ("script-no-array", "4.2.5: the script is an array.", _set(script={}), "wrong_type", "$.script"),
    (
        "call-without-id",
        "4.2.6: a call has an id.",
        lambda bundle: [step.pop("call_id") for step in (bundle["script"].pop(), bundle["script"][0])],
        "missing_field",
        "$.script[0].call_id",
    ),
    (
        "error-without-call",
        "4.2.6: an error that names a call comes behind it.",
        lambda bundle: bundle["script"].append({"type": "error", "call_id": "c9"}),
        "unknown_call",
        "$.script[2].call_id",
    ),
    (
        "no-output",
        "4.2.7: success has output.",
        _set(final_output={}),
        "missing_field",
        "$.final_output.content",
    ),
    (
        "no-timing",
        "4.2.8: the time is required.",
        _set(metrics={}),
        "missing_field",
        "$.metrics.timing_ms_total",
    ),
    (
        "type-wrong",
        "4.2.9: a count is an integer.",
        _set(metrics={"timing_ms_total": 1, "retry_count": "two"}),
        "wrong_type",
        "$.metrics.retry_count",
    ),
    (
        "id-twice",
        "4.2.9: an id that a step would get by itself is taken.",
        _step(0, event_id="evt-2"),
        "duplicate_event_id",
        "$.script[1].event_id",
    ),
)


def bundle_cases() -> Iterator[Case]:
    yield document_case("replay.json", BUNDLE, "good", "A bundle.")
    yield document_case(
        "replay.json",
        BUNDLE,
        "two-problems",
        "All problems are reported at once.",
        lambda bundle: (bundle.pop("status"), bundle["script"][0].update(type="dance")),
        Found("missing_field", path="$.status"),
        Found("unknown_type", path="$.script[0].type"),
        Found("unknown_call", path="$.script[1].call_id"),
    )
    yield document_case(
        "replay.json",
        BUNDLE,
        "result-before-call",
        "A result needs an earlier call.",
        lambda bundle: bundle["script"].reverse(),
        Found("unknown_call", path="$.script[0].call_id"),
    )
    yield document_case(
        "replay.json",
        BUNDLE,
        "adapter-foreign",
        "An adapter of another name is worth a word.",
        lambda bundle: bundle.update(adapter="own"),
        Found("foreign_adapter", path="$.adapter", severity="warning"),
    )
    yield document_case(
        "replay.json",
        BUNDLE,
        "good-again",
        "A call may be repeated under its id.",
        lambda bundle: bundle["script"].extend(bundle["script"][:2]),
    )
    yield document_case(
        "replay.json",
        BUNDLE,
        "good-unknown",
        "1.2, 1.3: members that nobody knows, and null for what may be absent.",
        lambda bundle: (
            bundle.update(mood="calm", capabilities=None),
            bundle["script"][1].update(mood="calm", fixture_id=None, ts=None),
        ),
    )
    tolerated = b"\xef\xbb\xbf" + document(BUNDLE).replace(b"\n", b"\r\n")
    yield Case(
        "good-tolerated", "1.1: a byte order mark and CR LF.", "replay.json", {"replay.json": tolerated}
    )
    yield document_case(
        "replay.json",
        BUNDLE,
        "good-version-number",
        "1.4: a version without its quotes.",
        _set(schema_version=0.1),
    )
    for key in ("schema_version", "scenario", "input_messages", "script", "status", "metrics"):
        yield document_case(
            "replay.json",
            BUNDLE,
            f"lacks-{key.replace('_', '-')}",
            f"4.2.2: {key} is required.",
            lambda bundle, key=key: bundle.pop(key),
            Found("missing_field", path=f"$.{key}"),
        )
    for name, about, change, code, path in BROKEN:
        yield document_case("replay.json", BUNDLE, name, about, change, Found(code, path=path))
    twice = b'{"scenario": {}, "script": [], "script": []}\n'
    yield Case("key-twice", "1.1: a key appears twice.", "replay.json", {"replay.json": twice}, exit=2)

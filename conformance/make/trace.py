"""Bundles and traces."""

from __future__ import annotations

from collections.abc import Iterator

from conformance.make.case import (
    Case,
    Event,
    Found,
    document_case,
)

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
NOBODY: Event = {"group_id": None, "session_id": None, "task_id": None}
TRACE: Event = {
    "schema_version": "0.1",
    "trace_id": "t1",
    "test_case_id": None,
    "test_run_id": "r1",
    "adapter": {"name": "kit", "version": "1"},
    "capabilities": {"supports_tool_trace": True},
    "scenario": {"trigger": "user_message", "scheduler_context": None, **NOBODY},
    "input_messages": [],
    "events": [
        {
            "event_id": f"evt-{seq}",
            "seq": seq,
            "ts": "2026-02-15T00:00:00.000Z",
            "type": kind,
            "actor": actor,
            "agent_id": "agent-main",
            "parent_event_id": parent,
            "data": {"tool": "search", "call_id": "c1"},
            **NOBODY,
        }
        for seq, kind, actor, parent in ((1, "tool_call", "agent", None), (2, "tool_result", "tool", "evt-1"))
    ],
    "final_output": {"role": "assistant", "content": "green tea"},
    "status": "success",
    "metrics": {"timing_ms_total": 12, "tool_call_count": 1, "retry_count": 0, "token_usage": None},
    "artifacts": {},
}


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


def trace_cases() -> Iterator[Case]:
    yield document_case("trace.json", TRACE, "good", "A normalized trace.")
    yield document_case(
        "trace.json",
        TRACE,
        "count-wrong",
        "The count of tool calls is not the number of them.",
        lambda trace: trace["metrics"].update(tool_call_count=2),
        Found("tool_call_count", path="$.metrics.tool_call_count"),
    )
    yield document_case(
        "trace.json",
        TRACE,
        "gap",
        "The sequence of events has a gap.",
        lambda trace: trace["events"][1].update(seq=3),
        Found("invalid", path="$.events[1].seq"),
    )
    yield document_case(
        "trace.json",
        TRACE,
        "parent-later",
        "A parent is an earlier event.",
        lambda trace: trace["events"][0].update(parent_event_id="evt-2"),
        Found("invalid", path="$.events[0].parent_event_id"),
    )

"""Normalized traces."""

from __future__ import annotations

from collections.abc import Iterator

from conformance.make.case import (
    Case,
    Change,
    Event,
    Found,
    document_case,
)

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


BROKEN: tuple[tuple[str, str, Change, str], ...] = (
    ("version-newer", "A later major version.", lambda t: t.update(schema_version="1.0"), "$.schema_version"),
    ("field-missing", "All fields are required.", lambda t: t["events"][0].pop("actor"), "$.events[0].actor"),
    ("null", "Only some may be null.", lambda t: t.update(test_run_id=None), "$.test_run_id"),
    (
        "id-twice",
        "Two events share an id.",
        lambda t: t["events"][1].update(event_id="evt-1", parent_event_id=None),
        "$.events[1].event_id",
    ),
    (
        "capabilities-wrong",
        "They have names.",
        lambda t: t.update(capabilities=[]),
        "$.capabilities",
    ),
)


def _add(trace: Event) -> None:
    trace["events"][0].update(mood="calm")


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
    yield document_case("trace.json", TRACE, "good-unknown", "Members that nobody knows are kept.", _add)
    for name, about, change, path in BROKEN:
        yield document_case("trace.json", TRACE, name, about, change, Found("invalid", path=path))

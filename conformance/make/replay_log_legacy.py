"""REPLAY.jsonl in the legacy dialect; the good one is the example of its specification with real hashes."""

from __future__ import annotations

import json
from collections.abc import Iterator

from conformance.make.case import (
    OK,
    Case,
    Change,
    Event,
    Found,
    as_it_is,
    changed,
    lines_of,
    set_fields,
)
from reenact.formats.hashes import params_hash

PLAN = params_hash({"steps": ["read", "fix", "test"]})
LEGACY: list[Event] = [
    {
        "event": "ReplayHeader",
        "created_at": "2026-01-13T10:00:00Z",
        "producer": "adjutant@1.2.3",
        "replay_version": 1,
    },
    {
        "event": "SessionStart",
        "issue_number": 42,
        "policy_version": "v1.2.3",
        "session_id": "sess_abc123",
        "t": "2026-01-13T10:00:00Z",
    },
    {"event": "PlanStart", "plan_hash": PLAN, "step_count": 3, "t": "2026-01-13T10:00:01Z"},
    {
        "event": "ToolCall",
        "id": "tc_001",
        "params": {"path": "src/auth.rs"},
        "params_hash": params_hash({"path": "src/auth.rs"}),
        "step_id": "step-1",
        "t": "2026-01-13T10:00:02Z",
        "tool": "file_read",
    },
    {
        "event": "ToolResult",
        "exit_code": None,
        "id": "tc_001",
        "latency_ms": 45,
        "output_hash": OK,
        "step_utility": 0.8,
        "t": "2026-01-13T10:00:02Z",
    },
    {
        "event": "StepComplete",
        "iterations": 1,
        "status": "Success",
        "step_id": "step-1",
        "t": "2026-01-13T10:00:03Z",
    },
    {
        "event": "Verification",
        "commands": ["cargo check", "cargo test"],
        "exit_codes": [0, 0],
        "t": "2026-01-13T10:05:30Z",
        "verification_delta": 3,
    },
    {
        "event": "SessionEnd",
        "confidence": 0.92,
        "status": "Success",
        "t": "2026-01-13T10:05:32Z",
        "total_latency_ms": 45,
        "total_tool_calls": 1,
    },
]


REQUIRED: dict[str, tuple[str, ...]] = {
    "ReplayHeader": ("created_at", "producer"),
    "SessionStart": ("session_id",),
    "PlanStart": ("plan_hash", "step_count"),
    "ToolCall": ("id", "params_hash", "step_id", "tool"),
    "ToolResult": ("id", "latency_ms", "output_hash", "step_utility"),
    "StepComplete": ("iterations", "status", "step_id"),
    "Verification": ("commands", "exit_codes", "verification_delta"),
    "SessionEnd": ("confidence", "status", "total_latency_ms", "total_tool_calls"),
}
CLAUSES = {name: f"5.{number}" for number, name in enumerate(REQUIRED, 1)}


def legacy_case(name: str, about: str, change: Change, *found: Found) -> Case:
    return Case(name, about, "REPLAY.jsonl", {"REPLAY.jsonl": lines_of(changed(LEGACY, change))}, found)


def legacy_cases() -> Iterator[Case]:
    yield legacy_case("good", "A log in the older dialect.", as_it_is)
    unsorted = b"".join(json.dumps(event).encode() + b"\n" for event in LEGACY)
    about = "A line need not be canonical to be read: its keys may stand in any order, with white space."
    yield Case("good-keys-unsorted", about, "REPLAY.jsonl", {"REPLAY.jsonl": unsorted})
    for index, event in enumerate(LEGACY):
        for field in REQUIRED[event["event"]]:
            kind = event["event"].lower()
            yield legacy_case(
                f"lacks-{kind}-{field.replace('_', '-')}",
                f"{CLAUSES[event['event']]}: {event['event']} has {field}.",
                lambda log, index=index, field=field: log[index].pop(field),
                Found("line_unreadable", index + 1, f"$.{field}"),
                Found("not_checked", index + 1, severity="warning"),
            )
    yield legacy_case(
        "params-changed", "Parameters were changed.", set_fields(3, params={}), Found("params_hash", 4)
    )
    yield legacy_case(
        "plan-hash-cut",
        "What should be a hash is none.",
        set_fields(2, plan_hash="abc"),
        Found("plan_hash", 3),
    )
    yield legacy_case(
        "exit-code-missing",
        "Each command has one exit code.",
        set_fields(6, exit_codes=[0]),
        Found("exit_codes", 7),
    )
    yield legacy_case(
        "result-of-another-call",
        "The id of a result was changed.",
        set_fields(4, id="tc_002"),
        Found("result_without_call", 5),
        Found("no_result", 4),
    )

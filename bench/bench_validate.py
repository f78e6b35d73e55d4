"""Validating small actions beside the rate that is promised, and lines of them beside jsonschema."""

from __future__ import annotations

import json
from collections.abc import Iterator
from io import BytesIO
from time import process_time
from typing import Any, Final

import msgspec
from jsonschema import Draft202012Validator

from bench.figure import Figure, ShareOfSpeed, best_in_turns
from reenact.check.actions.action import ACTION
from reenact.check.actions.policy import Policy
from reenact.check.actions.validation import ValidationTally, validate_stream

LINES: Final = 200
PROMISED_PER_S: Final = 100_000


def small_action() -> dict[str, Any]:
    """About 300 bytes: a question and a tool call."""
    return {
        "agent_id": "support-triage",
        "action_id": "act-2026-05-19-001",
        "occurred_at_unix_ms": "1779177600000",
        "model": {"provider": "anthropic", "name": "claude-sonnet-4-5"},
        "input": {"messages": [{"role": "user", "content": "My order #1234 has not shipped."}]},
        "output": {"tool_calls": [{"name": "search_orders", "arguments": {"query": "#1234"}}]},
    }


def ten_rules() -> Policy:
    """Nine rules about other tools, and the one that allows."""
    rules = [
        {"id": f"r{number}", "verdict": "deny", "tools": [f"tool_{number}"], "arguments": {"a": {"above": 1}}}
        for number in range(9)
    ]
    allow = {"id": "search", "verdict": "allow", "tools": ["search_*"]}
    return Policy.from_json({"schema_version": 1, "rules": [*rules, allow]})


def figures() -> Iterator[Figure]:
    """Without digests; lines are read exactly and counted."""
    action, policy = small_action(), ten_rules()
    operations = {
        "validate a small action": lambda: ACTION.execute(action),
        "decide about it by ten rules": lambda: policy.decide_accepted(action, "anthropic/claude-sonnet-4-5"),
    }
    for what, operation in operations.items():
        # The promise is a rate on one core and not a program, so ours takes both turns, in the core's time.
        ours_s = min(best_in_turns(operation, operation, clock=process_time))
        yield Figure(what, ours_s, f"{PROMISED_PER_S:,} a second", 1 / PROMISED_PER_S, ShareOfSpeed(1.0))
    line = msgspec.json.encode(action) + b"\n"
    ours_s, beside_s = best_in_turns(
        lambda: _validate(line * LINES), lambda: _json_schema(line * LINES), clock=process_time
    )
    yield Figure(
        f"validate lines of {len(line)} B",
        ours_s / LINES,
        "json and jsonschema",
        beside_s / LINES,
        ShareOfSpeed(5),
    )


def _validate(text: bytes) -> None:
    tally = ValidationTally()
    for judged in validate_stream(BytesIO(text), "actions.jsonl", ACTION):
        tally.add(judged)


_is_valid = Draft202012Validator(ACTION.json_schema()).is_valid


def _json_schema(text: bytes) -> None:
    """Yes or no alone: without the rules types cannot state, repeated keys, and counts."""
    for line in BytesIO(text):
        assert _is_valid(json.loads(line))

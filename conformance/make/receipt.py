"""Receipts in both shapes, alone and beside their logs."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256
from typing import Any

from conformance.make.case import (
    OK,
    OTHER,
    Case,
    Change,
    Event,
    Found,
    as_it_is,
    changed,
    document,
    lines_of,
)
from conformance.make.replay_log import LOG
from conformance.make.replay_log_legacy import LEGACY, PLAN

TRAJECTORY = "sha256:" + sha256(lines_of(LOG)).hexdigest()
RECEIPT: Event = {
    "schema": "openagents.receipt.v1",
    "session_id": "sess_7f3a",
    "policy_bundle_id": "policy-v1",
    "trajectory_hash": TRAJECTORY,
    "tool_calls": [
        {
            "tool": called["tool"],
            "params_hash": called["params_hash"],
            "output_hash": returned["output_hash"],
            "latency_ms": 12,
            "ok": returned["ok"],
            "side_effects": ["fs_read"],
        }
        for called, returned in ((LOG[2], LOG[3]), (LOG[4], LOG[5]))
    ],
    "verification": [{"command": "make test", "exit_code": 0}],
}
LEGACY_RECEIPT: Event = {
    "session_id": "sess_abc123",
    "started_at": "2026-01-13T10:00:00Z",
    "completed_at": "2026-01-13T10:05:32Z",
    "issue_number": 42,
    "plan_hash": PLAN,
    "tool_calls": [
        {
            "id": "tc_001",
            "tool": "file_read",
            "params_hash": LEGACY[3]["params_hash"],
            "output_hash": OK,
            "step_utility": 0.800000011920929,
            "latency_ms": 45,
            "side_effects": ["fs_read"],
        }
    ],
    "verification": {
        "commands_run": ["cargo check", "cargo test"],
        "exit_codes": [0, 0],
        "verification_delta": 3,
    },
    "final_confidence": 0.92,
    "policy_bundle_id": "v1.2.3",
    "signature": None,
}


def receipt_case(
    name: str, about: str, change: Change, *found: Found, base: Event = RECEIPT, **more: Any
) -> Case:
    return Case(name, about, "RECEIPT.json", {"RECEIPT.json": document(changed(base, change))}, found, **more)


def held_case(name: str, about: str, change: Change, *found: Found, base: Event = RECEIPT) -> Case:
    files = {
        "REPLAY.jsonl": lines_of(LOG if base is RECEIPT else LEGACY),
        "RECEIPT.json": document(changed(base, change)),
    }
    return Case(name, about, "REPLAY.jsonl", files, found, options={"receipt": "RECEIPT.json"})


def _effects_case(name: str, about: str, claimed: list[object], *found: Found) -> Case:
    """The first call of the log has two side effects."""
    log = [line | {"side_effects": ["fs_read", "network"]} if line is LOG[3] else line for line in LOG]
    receipt = changed(RECEIPT, lambda value: value["tool_calls"][0].update(side_effects=claimed))
    receipt["trajectory_hash"] = "sha256:" + sha256(lines_of(log)).hexdigest()
    files = {"REPLAY.jsonl": lines_of(log), "RECEIPT.json": document(receipt)}
    return Case(name, about, "REPLAY.jsonl", files, found, options={"receipt": "RECEIPT.json"})


def receipt_cases() -> Iterator[Case]:
    yield receipt_case("good", "A receipt.", as_it_is)
    yield receipt_case("good-legacy", "A receipt in the older shape.", as_it_is, base=LEGACY_RECEIPT)
    yield receipt_case(
        "session-missing",
        "A required field is missing.",
        lambda receipt: receipt.pop("session_id"),
        Found("invalid", path="$.session_id"),
    )
    yield receipt_case(
        "hash-cut",
        "What should be a hash is none.",
        lambda receipt: receipt["tool_calls"][1].update(output_hash="sha256:12"),
        Found("output_hash", path="$.tool_calls[1].output_hash"),
    )
    yield receipt_case(
        "version-newer",
        "A newer version.",
        lambda receipt: receipt.update(schema="openagents.receipt.v2"),
        Found("invalid", path="$.schema"),
    )
    yield receipt_case(
        "latency-no-number",
        "Milliseconds are a number.",
        lambda receipt: receipt["tool_calls"][0].update(latency_ms="12"),
        Found("invalid", path="$.tool_calls[0].latency_ms"),
    )
    yield receipt_case(
        "legacy-exit-code-missing",
        "In the older shape each command has one exit code.",
        lambda receipt: receipt["verification"]["exit_codes"].pop(),
        Found("exit_codes", path="$.verification.exit_codes"),
        base=LEGACY_RECEIPT,
    )
    yield receipt_case(
        "legacy-time-no-time",
        "What should be a time is none.",
        lambda receipt: receipt.update(started_at="yesterday"),
        Found("invalid", path="$.started_at"),
        base=LEGACY_RECEIPT,
    )
    twice = b'{"schema": "openagents.receipt.v1", "session_id": "a", "session_id": "b"}\n'
    yield Case("key-twice", "A key appears twice.", "RECEIPT.json", {"RECEIPT.json": twice}, exit=2)
    yield receipt_case(
        "good-unknown",
        "Other members are kept, and proved by nothing.",
        lambda receipt: (receipt.update(mood="calm"), receipt["tool_calls"][1].update(mood="calm")),
        Found("unknown_member", path="$.mood", severity="warning"),
        Found("unknown_member", path="$.tool_calls[1].mood", severity="warning"),
    )
    yield held_case("held-good", "A log and its receipt.", as_it_is)
    yield held_case(
        "held-name-changed",
        "The name of a member that nobody requires was changed, so that it is compared with nothing.",
        lambda receipt: receipt.update(Verification=receipt.pop("verification")),
        Found("unknown_member", path="$.Verification", severity="warning"),
    )
    yield held_case(
        "held-good-legacy",
        "The same in the older shape; utilities are 32-bit floats.",
        as_it_is,
        base=LEGACY_RECEIPT,
    )
    yield held_case(
        "held-output-differs",
        "The receipt claims another output.",
        lambda receipt: receipt["tool_calls"][0].update(output_hash=OTHER),
        Found("receipt_differs", 4),
    )
    yield held_case(
        "held-call-missing",
        "The receipt does not list a call; the others still agree.",
        lambda receipt: receipt["tool_calls"].pop(0),
        Found("receipt_lacks", 4),
    )
    yield held_case(
        "held-call-added",
        "The receipt lists a call that never was.",
        lambda receipt: receipt["tool_calls"].append(receipt["tool_calls"][0] | {"tool": "deploy"}),
        Found("log_lacks"),
    )
    yield held_case(
        "held-another-session",
        "The receipt is of another session.",
        lambda receipt: receipt.update(session_id="sess_other"),
        Found("receipt_session", 2),
    )
    for name, about, change, line in (
        ("policy", "another policy", lambda r: r.update(policy_bundle_id="policy-v2"), 2),
        (
            "repo",
            "a repository of which the log says nothing",
            lambda r: r.update(repo={"branch": "main"}),
            2,
        ),
        ("time", "a time long behind the end", lambda r: r.update(created_at="2026-02-16T00:00:00Z"), 8),
        ("command", "another command", lambda r: r["verification"][0].update(command="make lint"), None),
        ("commands", "a command too many", lambda r: r["verification"].append(r["verification"][0]), None),
        ("effects", "another side effect", lambda r: r["tool_calls"][0].update(side_effects=["network"]), 4),
        ("error", "another error", lambda r: r["tool_calls"][1].update(error="disk full"), 6),
    ):
        yield held_case(f"held-{name}-differs", f"2.8: {about}.", change, Found("receipt_differs", line))
    yield held_case(
        "held-good-effects",
        "2.8: side effects may be objects, an error its message.",
        lambda r: (
            r["tool_calls"][0].update(side_effects=[{"type": "fs_read", "path": "a"}]),
            r["tool_calls"][1].update(error="read-only file system"),
        ),
    )
    yield held_case(
        "held-good-silent",
        "2.8: a receipt that has no list of calls says nothing of them.",
        lambda r: r.pop("tool_calls"),
    )
    yield _effects_case("held-good-effects-order", "2.8: two side effects.", ["fs_read", {"kind": "network"}])
    yield _effects_case(
        "held-effects-order-differs",
        "2.8: two side effects in another order.",
        ["network", "fs_read"],
        Found("receipt_differs", 4),
    )
    yield held_case(
        "held-order",
        "2.8: the calls in another order.",
        lambda receipt: receipt["tool_calls"].reverse(),
        Found("receipt_order", 4),
    )
    for name, about, change, line in (
        ("start", "another start", lambda r: r.update(started_at="2026-01-13T09:00:00Z"), 2),
        ("end", "another end", lambda r: r.update(completed_at="2026-01-13T11:00:00Z"), 8),
        ("confidence", "another confidence", lambda r: r.update(final_confidence=0.5), 8),
        ("issue", "another issue", lambda r: r.update(issue_number=43), 2),
        ("plan", "another plan", lambda r: r.update(plan_hash=OTHER), None),
        ("delta", "another delta", lambda r: r["verification"].update(verification_delta=4), None),
    ):
        found = Found("receipt_differs", line)
        yield held_case(f"held-legacy-{name}-differs", f"3.4: {about}.", change, found, base=LEGACY_RECEIPT)
    yield held_case(
        "held-another-log",
        "The receipt names another log.",
        lambda receipt: receipt.update(trajectory_hash=OTHER),
        Found("trajectory_hash"),
    )
    yield held_case(
        "held-id-differs",
        "In the older shape calls are matched by id.",
        lambda receipt: receipt["tool_calls"][0].update(id="tc_009"),
        Found("receipt_lacks", 5),
        Found("log_lacks"),
        base=LEGACY_RECEIPT,
    )

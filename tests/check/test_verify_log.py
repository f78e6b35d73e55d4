"""A log that does not hold together, or is not what its receipt claims, is found out."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest

from reenact.check.receipt import ReceiptCheck
from reenact.check.replay_log import check_replay_log
from reenact.formats.hashes import output_hash, params_hash
from reenact.formats.receipt import read_receipt

HEADER = {"type": "ReplayHeader", "replay_version": 1, "producer": "t", "created_at": "2026-02-15T00:00:00Z"}
OUTPUT = output_hash(success=True, content="ok", error=None)


def call(step: str, second: int = 1, **changes: Any) -> dict[str, Any]:
    params = {"path": step}
    return {
        "type": "ToolCall",
        "ts": f"2026-02-15T00:00:{second:02}Z",
        "step_id": step,
        "tool": "read",
        "params": params,
        "params_hash": params_hash(params),
    } | changes


def result(step: str, second: int = 2, **changes: Any) -> dict[str, Any]:
    return {
        "type": "ToolResult",
        "ts": f"2026-02-15T00:00:{second:02}Z",
        "step_id": step,
        "ok": True,
        "output_hash": OUTPUT,
        "latency_ms": 5,
        "side_effects": [],
    } | changes


def end(calls: int, latency_ms: int) -> dict[str, Any]:
    return {
        "type": "SessionEnd",
        "ts": "2026-02-15T00:00:59Z",
        "status": "success",
        "confidence": 1.0,
        "total_tool_calls": calls,
        "total_latency_ms": latency_ms,
    }


def log_of(*events: dict[str, Any]) -> bytes:
    return b"".join(json.dumps(event).encode() + b"\n" for event in (HEADER, *events))


def findings_of(log: bytes) -> list[tuple[str, int | None]]:
    report = check_replay_log(lambda: io.BytesIO(log), file="REPLAY.jsonl")
    return [(finding.code, finding.line) for finding in report.findings]


LOGS: dict[str, tuple[list[dict[str, Any]], list[tuple[str, int]]]] = {
    "good": ([call("a"), result("a"), end(1, 5)], []),
    "parallel calls": ([call("a"), call("b"), result("b"), result("a"), end(2, 10)], []),
    "params changed": ([call("a", params={"path": "b"}), result("a"), end(1, 5)], [("params_hash", 2)]),
    "result without call": ([result("a"), end(0, 5)], [("result_without_call", 2)]),
    "result before its call": (
        [result("a"), call("a"), end(1, 5)],
        [("result_without_call", 2), ("no_result", 3)],
    ),
    "two results": ([call("a"), result("a"), result("a"), end(1, 10)], [("second_result", 4)]),
    "two calls": ([call("a"), call("a"), result("a"), end(1, 5)], [("second_call", 3)]),
    "no result": ([call("a"), end(1, 0)], [("no_result", 2)]),
    "wrong totals": (
        [call("a"), result("a"), end(2, 6)],
        [("total_tool_calls", 4), ("total_latency_ms", 4)],
    ),
    "time runs back": ([call("a", 30), result("a", 2), end(1, 5)], [("time", 3)]),
    "something behind the end": (
        [end(0, 0), call("a", 59), result("a", 59)],
        [("after_end", 3), ("after_end", 4)],
    ),
}


@pytest.mark.parametrize("name", LOGS)
def test_each_problem_is_found_at_its_line(name: str) -> None:
    """All problems are reported, none is invented."""
    events, expected = LOGS[name]
    found = findings_of(log_of(*events))
    assert set(expected) <= set(found)
    assert name != "good" or found == []


def test_a_bad_line_does_not_hide_the_others() -> None:
    """Reading goes on behind it."""
    log = log_of(call("a"), result("b")).replace(b"\n", b"\n{\n", 1)
    assert {code for code, _ in findings_of(log)} >= {"line_unreadable", "result_without_call"}


def receipt_of(*claims: dict[str, Any]) -> bytes:
    return json.dumps(
        {
            "schema": "openagents.receipt.v1",
            "session_id": "s",
            "trajectory_hash": "sha256:" + "0" * 64,
            "policy_bundle_id": "p",
            "tool_calls": list(claims),
        }
    ).encode()


def claim(step: str, **changes: Any) -> dict[str, Any]:
    return {
        "tool": "read",
        "params_hash": params_hash({"path": step}),
        "output_hash": OUTPUT,
        "latency_ms": 5,
        "side_effects": [],
    } | changes


RECEIPTS: dict[str, tuple[list[dict[str, Any]], list[str]]] = {
    "the same": ([claim("a"), claim("b")], []),
    "another output": ([claim("a"), claim("b", output_hash="sha256:" + "1" * 64)], ["receipt_differs"]),
    "one claim too few": ([claim("a")], ["receipt_lacks"]),
    "one claim too many": ([claim("a"), claim("b"), claim("c")], ["log_lacks"]),
}


@pytest.mark.parametrize("name", RECEIPTS)
def test_a_receipt_is_compared_entry_by_entry(name: str, tmp_path: Path) -> None:
    """Differing, missing and extra entries are all reported."""
    claims, expected = RECEIPTS[name]
    receipt = read_receipt(receipt_of(*claims), "RECEIPT.json")
    check = ReceiptCheck(receipt, file="RECEIPT.json", log_file="REPLAY.jsonl")
    log = log_of(call("a"), result("a"), call("b"), result("b"), end(2, 10))
    check_replay_log(lambda: io.BytesIO(log), file="REPLAY.jsonl", on_result=check.take)
    check.close()
    assert [finding.code for finding in check.findings] == expected

"""A log that does not hold together, or is not what its receipt claims, is found out."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest

from reenact.check.integrity.replay_log import check_replay_log
from reenact.check.receipts import check_receipt
from reenact.errors import FormatError, UnknownVersion
from reenact.formats.hashes import output_hash, params_hash
from reenact.formats.receipt import read_receipt
from reenact.formats.replay_log import read_replay_log

HEADER = {"type": "ReplayHeader", "replay_version": 1, "producer": "t", "created_at": "2026-02-15T00:00:00Z"}
START = {"type": "SessionStart", "session_id": "s", "policy_bundle_id": "p"}
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


def end(calls: int, latency_ms: float) -> dict[str, Any]:
    return {
        "type": "SessionEnd",
        "ts": "2026-02-15T00:00:59Z",
        "status": "success",
        "confidence": 1.0,
        "total_tool_calls": calls,
        "total_latency_ms": latency_ms,
    }


def without(event: dict[str, Any], field: str) -> dict[str, Any]:
    return {name: value for name, value in event.items() if name != field}


def log_of(*events: dict[str, Any]) -> bytes:
    return lines_of(HEADER, START, *events)


def lines_of(*events: dict[str, Any]) -> bytes:
    return b"".join(json.dumps(event).encode() + b"\n" for event in events)


def findings_of(log: bytes, *, lenient: bool = False) -> list[tuple[str, int | None]]:
    report = check_replay_log(lambda: io.BytesIO(log), file="REPLAY.jsonl", lenient=lenient)
    return [(finding.code, finding.line) for finding in report.findings]


LOGS: dict[str, tuple[list[dict[str, Any]], list[tuple[str, int]]]] = {
    "good": ([call("a"), result("a"), end(1, 5)], []),
    "parallel calls": ([call("a"), call("b"), result("b"), result("a"), end(2, 10)], []),
    "no params": ([without(call("a"), "params"), result("a"), end(1, 5)], [("no_params", 3)]),
    "times in other forms": (
        [
            call("a", ts="2026-02-15T00:00:01.5Z"),
            result("a", ts="2026-02-15T02:00:02.1234567+02:00"),
            end(1, 5),
        ],
        [],
    ),
    "fractions of milliseconds": (
        [call("a"), result("a", latency_ms=0.1), call("b"), result("b", latency_ms=0.2), end(2, 0.3)],
        [],
    ),
    "params changed": ([call("a", params={"path": "b"}), result("a"), end(1, 5)], [("params_hash", 3)]),
    "no hash of params": (
        [without(call("a", params_hash="sha256:ABC"), "params"), result("a"), end(1, 5)],
        [("no_params", 3), ("params_hash", 3)],
    ),
    "no hash of output": ([call("a"), result("a", output_hash="abc"), end(1, 5)], [("output_hash", 4)]),
    "result without call": ([result("a"), end(0, 5)], [("result_without_call", 3)]),
    "result before its call": (
        [result("a"), call("a"), end(1, 5)],
        [("result_without_call", 3), ("no_result", 4)],
    ),
    "two results": ([call("a"), result("a"), result("a"), end(1, 10)], [("second_result", 5)]),
    "two calls": ([call("a"), call("a"), result("a"), end(2, 5)], [("second_call", 4)]),
    "a call made again": (
        [call("a"), result("a"), call("a"), result("a"), end(2, 10)],
        [("second_call", 5)],
    ),
    "no result": ([call("a"), end(1, 0)], [("no_result", 3)]),
    "wrong totals": (
        [call("a"), result("a"), end(2, 6)],
        [("total_latency_ms", 5), ("total_tool_calls", 5)],
    ),
    "time runs back": ([call("a", 31), result("a", 3), end(1, 5)], [("time", 4)]),
    "time runs back a little": ([call("a", 4), result("a", 3), end(1, 5)], []),
    "something behind the end": ([end(1, 5), call("a", 60), result("a", 60)], [("after_end", 4)]),
    "no end": ([call("a"), result("a")], [("no_end", 4)]),
    "two headers": ([HEADER, end(0, 0)], [("second_header", 3)]),
    "two sessions": (
        [START | {"session_id": "t"}, end(0, 0)],
        [("foreign_event", 3), ("second_start", 3)],
    ),
    "a call of another session": (
        [call("a", session_id="s"), result("a", session_id="t"), end(1, 5)],
        [("foreign_event", 4)],
    ),
}


@pytest.mark.parametrize("name", LOGS)
def test_each_problem_is_found_at_its_line(name: str) -> None:
    """All problems are reported, none is invented."""
    events, expected = LOGS[name]
    assert findings_of(log_of(*events)) == expected


def test_a_log_without_its_start_is_not_good() -> None:
    """Nobody can say whose session it is of, and under which policy."""
    assert findings_of(lines_of(HEADER, call("a"), result("a"), end(1, 5))) == [("no_start", 1)]


def test_a_call_without_a_result_is_an_error_where_the_session_came_to_its_end() -> None:
    """A session that broke off left it open; one that ended did not."""
    whole = check_replay_log(lambda: io.BytesIO(log_of(call("a"), end(1, 0))), file="REPLAY.jsonl")
    assert [(finding.code, finding.severity) for finding in whole.findings] == [("no_result", "error")]
    cut = check_replay_log(lambda: io.BytesIO(log_of(call("a"))), file="REPLAY.jsonl")
    assert {finding.severity for finding in cut.findings} == {"warning"}


def test_a_published_log_needs_no_params() -> None:
    """Where its header says that it is one, or where the caller knows."""
    log = lines_of(
        HEADER | {"published": "open"}, START, without(call("a"), "params"), result("a"), end(1, 5)
    )
    assert findings_of(log) == []
    log = log_of(without(call("a"), "params"), result("a"), end(1, 5))
    report = check_replay_log(lambda: io.BytesIO(log), file="REPLAY.jsonl", published=True)
    assert report.findings == []


def test_a_log_without_its_header_is_still_checked() -> None:
    """The dialect shows from its other events."""
    log = log_of(result("a"), end(0, 5)).partition(b"\n")[2]
    assert findings_of(log) == [("no_header", 1), ("result_without_call", 2)]


def broken(log: bytes, *places: int) -> bytes:
    lines = log.splitlines(keepends=True)
    return b"".join(b"{\n" if number in places else line for number, line in enumerate(lines, 1))


GOOD = log_of(call("a"), result("a"), call("b"), result("b"), call("c"), result("c"), end(3, 15))


def test_every_broken_line_is_reported_and_the_rest_is_checked_when_asked() -> None:
    """Behind the first one a strict check says nothing of what lines mean: half of it may be missing."""
    log = broken(GOOD, 5, 6)
    unreadable = [("line_unreadable", 5), ("line_unreadable", 6)]
    assert findings_of(log) == [unreadable[0], ("not_checked", 5), unreadable[1]]
    assert findings_of(log, lenient=True) == [
        *unreadable,
        ("total_latency_ms", 9),
        ("total_tool_calls", 9),
    ]


def test_of_many_broken_lines_none_is_passed_over() -> None:
    """One in a hundred, whatever is wrong with it."""
    uses = [event for number in range(500) for event in (call(f"s{number}"), result(f"s{number}"))]
    lines = log_of(*uses, end(500, 2500)).splitlines(keepends=True)
    damage = [b"\xff\n", b'{"type":"ToolCall"}\n', b"[]\n", b'{"a":1,"a":2}\n', b'{"type":NaN}\n']
    places = range(50, 1000, 100)
    for number, place in enumerate(places):
        lines[place - 1] = damage[number % len(damage)]
    found = findings_of(b"".join(lines), lenient=True)
    assert [line for code, line in found if code == "line_unreadable"] == [*places]


NO_LOGS = {"empty": b"", "blank": b"\n\n", "words": b"hello\n", "other JSON": b'{"a":1}\n[1]\n'}


@pytest.mark.parametrize("name", NO_LOGS)
def test_what_has_no_event_is_no_log(name: str) -> None:
    """It is refused, not reported."""
    with pytest.raises(FormatError, match=r"is not a REPLAY\.jsonl"):
        findings_of(NO_LOGS[name])


def test_a_newer_log_is_refused_also_when_lenient() -> None:
    """Nobody knows what its lines mean."""
    with pytest.raises(UnknownVersion, match="install a newer reenact"):
        findings_of(GOOD.replace(b'"replay_version": 1', b'"replay_version": 2'), lenient=True)


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


RECEIPTS: dict[str, tuple[list[dict[str, Any]], list[tuple[str, int | None]]]] = {
    "the same": ([claim("a"), claim("b")], []),
    "in another order": ([claim("b"), claim("a")], [("receipt_order", 4)]),
    "effects as objects": ([claim("a", side_effects=[]), claim("b")], []),
    "other effects": ([claim("a", side_effects=[{"type": "network"}]), claim("b")], [("receipt_differs", 4)]),
    "another error": ([claim("a", error="boom"), claim("b")], [("receipt_differs", 4)]),
    "another output": ([claim("a"), claim("b", output_hash="sha256:" + "1" * 64)], [("receipt_differs", 6)]),
    "another latency": ([claim("a", latency_ms=6), claim("b")], [("receipt_differs", 4)]),
    "another outcome": ([claim("a", ok=False), claim("b")], [("receipt_differs", 4)]),
    "one claim too few": ([claim("b")], [("receipt_lacks", 4)]),
    "one claim too many": ([claim("a"), claim("x"), claim("b")], [("log_lacks", None)]),
    "another tool": ([claim("a", tool="write"), claim("b")], [("receipt_lacks", 4), ("log_lacks", None)]),
}


def receipt_findings(receipt: bytes, log: bytes) -> list[tuple[str, int | None]]:
    findings = check_receipt(
        read_receipt(receipt, "RECEIPT.json"),
        read_replay_log(io.BytesIO(log), file="REPLAY.jsonl"),
        trajectory_hash="sha256:" + "0" * 64,
        file="RECEIPT.json",
        log_file="REPLAY.jsonl",
    )
    return [(finding.code, finding.line) for finding in findings]


TWO_USES = log_of(call("a"), result("a"), call("b"), result("b"), end(2, 10))


@pytest.mark.parametrize("name", RECEIPTS)
def test_a_receipt_is_compared_entry_by_entry(name: str) -> None:
    """Differing, missing and extra entries are distinguished, and one of them does not hide the others."""
    claims, expected = RECEIPTS[name]
    assert receipt_findings(receipt_of(*claims), TWO_USES) == expected


def test_a_receipt_of_another_session_is_found_out() -> None:
    """Also where the calls are the same."""
    receipt = receipt_of(claim("a"), claim("b")).replace(b'"session_id": "s"', b'"session_id": "t"')
    assert receipt_findings(receipt, TWO_USES) == [("receipt_session", 2)]


def test_a_receipt_for_another_log_is_found_out() -> None:
    """The hash of the whole log decides."""
    receipt = receipt_of(claim("a"), claim("b")).replace(b"sha256:000", b"sha256:111")
    assert receipt_findings(receipt, TWO_USES) == [("trajectory_hash", None)]


def test_verifications_are_compared_too() -> None:
    """A receipt that claims one which the log does not have is wrong."""
    value = json.loads(receipt_of(claim("a"), claim("b")))
    value["verification"] = [{"command": "make test", "exit_code": 0}]
    assert receipt_findings(json.dumps(value).encode(), TWO_USES) == [("receipt_differs", None)]


HELD = lines_of(
    HEADER,
    START | {"ts": "2026-02-15T00:00:00Z", "repo": {"branch": "main", "commit": "4f2c9d1"}},
    call("a"),
    result("a", ok=False, error={"name": "OSError", "message": "full"}, side_effects=["fs_write"]),
    {"type": "Verification", "command": "make", "exit_code": 2, "cwd": "app", "verification_delta": -1},
    end(1, 5),
)
CLAIM = claim("a", ok=False, side_effects=["fs_write"], error={"name": "OSError", "message": "full"})
RECEIPT = json.loads(receipt_of(CLAIM)) | {
    "created_at": "2026-02-15T00:01:10Z",
    "repo": {"branch": "main"},
    "verification": [{"command": "make", "exit_code": 2, "cwd": "app", "verification_delta": -1}],
}


def set_at(value: Any, path: str, new: Any) -> None:
    *parents, last = [int(name) if name.isdecimal() else name for name in path.split(".")]
    for name in parents:
        value = value[name]
    value[last] = new


def test_everything_that_a_receipt_says_may_agree() -> None:
    """Also where it says less than the log, or words an error otherwise."""
    assert receipt_findings(json.dumps(RECEIPT).encode(), HELD) == []
    receipt = json.loads(json.dumps(RECEIPT))
    for error in ("full", "OSError", "OSError: full"):
        set_at(receipt, "tool_calls.0.error", error)
        assert receipt_findings(json.dumps(receipt).encode(), HELD) == []


def test_what_a_receipt_does_not_say_is_not_compared() -> None:
    """The list of calls, the stack of an error, the details of an effect."""
    receipt = json.loads(receipt_of(CLAIM))
    log = HELD.replace(b'"message": "full"', b'"message": "full", "stack": "disk:1"')
    assert receipt_findings(json.dumps(receipt).encode(), log) == []
    del receipt["tool_calls"]
    assert receipt_findings(json.dumps(receipt).encode(), log) == []
    receipt["tool_calls"] = []
    assert receipt_findings(json.dumps(receipt).encode(), log) == [("receipt_lacks", 4)]


EFFECTS: dict[str, tuple[list[Any], bool]] = {
    "the same": (["fs_write", "network"], True),
    "described": ([{"type": "fs_write", "path": "a"}, {"kind": "network"}], True),
    "in another order": (["network", "fs_write"], False),
    "described in another order": ([{"type": "network"}, "fs_write"], False),
    "one less": (["fs_write"], False),
    "one twice": (["fs_write", "fs_write", "network"], False),
}


@pytest.mark.parametrize("name", EFFECTS)
def test_side_effects_are_compared_one_by_one(name: str) -> None:
    """In their order, whether they are tags or objects that have one."""
    claimed, agrees = EFFECTS[name]
    log = HELD.replace(b'["fs_write"]', b'["fs_write", "network"]')
    receipt = receipt_of(CLAIM | {"side_effects": claimed})
    assert receipt_findings(receipt, log) == ([] if agrees else [("receipt_differs", 4)])


OTHER_CLAIMS = {
    "policy_bundle_id": "q",
    "created_at": "2026-02-15T01:00:00Z",
    "repo.branch": "other",
    "repo.remote": "https://example.com/app.git",
    "repo.dirty": True,
    "tool_calls.0.ok": True,
    "tool_calls.0.error": None,
    "tool_calls.0.side_effects": ["fs_write", "network"],
    "tool_calls.0.error.message": "empty",
    "tool_calls.0.error.stack": "disk:1",
    "verification.0.command": "make test",
    "verification.0.exit_code": 0,
    "verification.0.cwd": "web",
    "verification.0.duration_ms": 3,
    "verification.0.verification_delta": 0,
    "verification": [],
}


@pytest.mark.parametrize("path", OTHER_CLAIMS)
def test_whatever_a_receipt_says_otherwise_is_found(path: str) -> None:
    """One finding, which names the member; for a call, the tool as well."""
    receipt = json.loads(json.dumps(RECEIPT))
    set_at(receipt, path, OTHER_CLAIMS[path])
    findings = check_receipt(
        read_receipt(json.dumps(receipt).encode(), "RECEIPT.json"),
        read_replay_log(io.BytesIO(HELD), file="REPLAY.jsonl"),
        trajectory_hash="sha256:" + "0" * 64,
        file="RECEIPT.json",
        log_file="REPLAY.jsonl",
    )
    (finding,) = findings
    assert finding.code == "receipt_differs"
    assert path.rpartition(".")[2] in finding.message
    assert finding.message.startswith("read: ") == path.startswith("tool_calls")


LEGACY_CLAIM = {"id": "b", "side_effects": [], "step_utility": 0.8, "tool": "read", "latency_ms": 5}
LEGACY_LOG = b"".join(
    json.dumps(event).encode() + b"\n"
    for event in (
        {"event": "ReplayHeader", "replay_version": 1, "producer": "t", "created_at": "2026-02-15T00:00:00Z"},
        {"event": "SessionStart", "session_id": "s", "policy_version": "p", "t": "2026-02-15T00:00:00Z"},
        {
            "event": "ToolCall",
            "id": "b",
            "step_id": "1",
            "tool": "read",
            "t": "2026-02-15T00:00:01Z",
            "params": {"path": "b"},
            "params_hash": params_hash({"path": "b"}),
        },
        {
            "event": "ToolResult",
            "id": "b",
            "output_hash": OUTPUT,
            "exit_code": None,
            "latency_ms": 5,
            "step_utility": 0.800000011920929,
            "t": "2026-02-15T00:00:02Z",
        },
        {"event": "PlanStart", "plan_hash": OUTPUT, "step_count": 1, "t": "2026-02-15T00:00:02Z"},
        {
            "event": "Verification",
            "commands": ["make", "make test"],
            "exit_codes": [0, 1],
            "verification_delta": 2,
            "t": "2026-02-15T00:00:03Z",
        },
        {
            "event": "SessionEnd",
            "status": "Success",
            "confidence": 0.8999999761581421,
            "total_latency_ms": 5,
            "total_tool_calls": 1,
            "t": "2026-02-15T00:00:04Z",
        },
    )
)
LEGACY_RECEIPTS = {
    "the same, utility in 32 bits": ({}, []),
    "another id": ({"id": "c"}, [("receipt_lacks", 4), ("log_lacks", None)]),
    "another utility": ({"step_utility": 0.7}, [("receipt_differs", 4)]),
}


@pytest.mark.parametrize("name", LEGACY_RECEIPTS)
def test_the_older_receipts_are_matched_by_id(name: str) -> None:
    """And floats are compared as the 32 bits they were."""
    change, expected = LEGACY_RECEIPTS[name]
    hashes = {"params_hash": params_hash({"path": "b"}), "output_hash": OUTPUT}
    receipt = {
        "session_id": "s",
        "policy_bundle_id": "p",
        "started_at": "2026-02-15T00:00:00Z",
        "final_confidence": 0.9,
        "tool_calls": [LEGACY_CLAIM | hashes | change],
    }
    assert receipt_findings(json.dumps(receipt).encode(), LEGACY_LOG) == expected


OLDER_CLAIMS = {
    "started_at": "2026-02-15T00:10:00Z",
    "completed_at": "2026-02-15T00:10:00Z",
    "final_confidence": 0.8,
    "issue_number": 42,
    "plan_hash": None,
    "verification.commands_run": ["make"],
    "verification.exit_codes": [0, 0],
    "verification.verification_delta": 3,
}


@pytest.mark.parametrize("path", [None, *OLDER_CLAIMS])
def test_whatever_an_older_receipt_says_otherwise_is_found(path: str | None) -> None:
    """Times within a second and confidences of the same 32 bits agree."""
    hashes = {"params_hash": params_hash({"path": "b"}), "output_hash": OUTPUT}
    receipt: dict[str, Any] = {
        "session_id": "s",
        "policy_bundle_id": "p",
        "started_at": "2026-02-15T00:00:00.250Z",
        "completed_at": "2026-02-15T00:00:04Z",
        "final_confidence": 0.9,
        "issue_number": None,
        "plan_hash": OUTPUT,
        "tool_calls": [LEGACY_CLAIM | hashes],
        "verification": {
            "commands_run": ["make", "make test"],
            "exit_codes": [0, 1],
            "verification_delta": 2,
        },
    }
    if path is not None:
        set_at(receipt, path, OLDER_CLAIMS[path])
    found = [code for code, _ in receipt_findings(json.dumps(receipt).encode(), LEGACY_LOG)]
    assert found == ([] if path is None else ["receipt_differs"])

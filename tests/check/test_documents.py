"""Artifacts of one document: what is distinguished, and what is found in each."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from reenact.check.artifact import check_artifact, with_other_log, with_receipt
from reenact.check.kinds import kind_of
from reenact.errors import FormatError, UsageError
from tests.formats import GOLDEN

KINDS = {
    "replay_log/current.jsonl": "replay log",
    "replay_log/legacy.jsonl": "replay log",
    "receipt/current.json": "receipt",
    "receipt/legacy.json": "receipt",
    "bundle/every-step.json": "bundle",
    "trace/every-step.json": "trace",
    "action/triage.json": "action",
    "verifiable/triage.json": "record",
    "testcase/every-field.json": "test case",
    "result/failed.json": "test result",
    "result/summary.json": "suite summary",
}


@pytest.mark.parametrize("name", KINDS)
def test_an_artifact_is_known_by_its_content(name: str, tmp_path: Path) -> None:
    """Whatever its file is called; and what is golden has no error."""
    copy = tmp_path / "unnamed"
    copy.write_bytes((GOLDEN / name).read_bytes())
    assert kind_of(copy) == KINDS[name]
    findings = check_artifact(copy).findings
    expected = {"total_tool_calls", "total_latency_ms"} if name == "replay_log/legacy.jsonl" else set()
    assert {finding.code for finding in findings if finding.severity == "error"} == expected


Change = Callable[[dict[str, Any]], object]

CHANGES: dict[str, tuple[str, Change, str, str]] = {
    "a receipt without its session": (
        "receipt/current.json",
        lambda v: v.pop("session_id"),
        "invalid",
        "$.session_id",
    ),
    "a receipt with a hash cut off": (
        "receipt/current.json",
        lambda v: v["tool_calls"][1].update(output_hash="sha256:12"),
        "output_hash",
        "$.tool_calls[1].output_hash",
    ),
    "a verification with an exit code too few": (
        "receipt/legacy.json",
        lambda v: v["verification"]["exit_codes"].pop(),
        "exit_codes",
        "$.verification.exit_codes",
    ),
    "a bundle with an unknown step": (
        "bundle/every-step.json",
        lambda v: v["script"][0].update(type="dance"),
        "unknown_type",
        "$.script[0].type",
    ),
    "a trace that miscounts": (
        "trace/every-step.json",
        lambda v: v["metrics"].update(tool_call_count=99),
        "tool_call_count",
        "$.metrics.tool_call_count",
    ),
    "a trace with a gap": (
        "trace/every-step.json",
        lambda v: v["events"].pop(1),
        "invalid",
        "$.events[1].seq",
    ),
    "an action without output": (
        "action/triage.json",
        lambda v: v.update(output={}),
        "empty_output",
        "$.output",
    ),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_changed_document_is_found_out(name: str, tmp_path: Path) -> None:
    """With the code and the path of what is wrong."""
    golden, change, code, json_path = CHANGES[name]
    value = json.loads((GOLDEN / golden).read_bytes())
    change(value)
    file = tmp_path / "a.json"
    file.write_text(json.dumps(value))
    found = {(finding.code, finding.json_path) for finding in check_artifact(file).findings}
    assert (code, json_path) in found


def test_a_changed_record_fails_by_name(tmp_path: Path) -> None:
    """Every digest that covers the change is named."""
    file = tmp_path / "a.json"
    text = (GOLDEN / "verifiable" / "triage.json").read_bytes()
    value = json.loads(text)
    value["subject"]["output"]["content"] = "changed"
    file.write_text(json.dumps(value))
    codes = {finding.code for finding in check_artifact(file).findings}
    assert codes == {"subject_digest", "record_digest", "output_digest"}


def test_a_pack_names_the_line_of_each_bad_record(tmp_path: Path) -> None:
    """A pack as good as its records has a digest."""
    good = (GOLDEN / "verifiable" / "triage.json").read_bytes()
    other = (GOLDEN / "verifiable" / "tool-calls.json").read_bytes()
    file = tmp_path / "pack.jsonl"
    file.write_bytes(good + other)
    report = check_artifact(file)
    assert (report.what, report.findings, report.facts["records"]) == ("pack", [], 2)
    assert len(report.facts["pack"]) == 64
    file.write_bytes(good + b"{\n" + other.replace(b'"vdr_version":"0"', b'"vdr_version":"9"'))
    assert [(finding.code, finding.line) for finding in check_artifact(file).findings] == [
        ("line_unreadable", 2),
        ("version", 3),
    ]


def test_a_pack_may_be_one_array(tmp_path: Path) -> None:
    """The digest is that of the same records in lines."""
    texts = [(GOLDEN / "verifiable" / name).read_bytes() for name in ("triage.json", "tool-calls.json")]
    lines, array = tmp_path / "a.jsonl", tmp_path / "b.json"
    lines.write_bytes(b"".join(texts))
    array.write_bytes(b"[" + b",".join(texts) + b"]")
    assert check_artifact(lines).facts == check_artifact(array).facts


REPLAY_RECEIPT = {
    "schema": "reenact.replay-receipt.v1",
    "capture": {"captureId": "c", "eventsHash": "sha256:" + "0" * 64, "eventCount": 1},
    "fingerprint": {
        "code": "sha256:" + "1" * 64,
        "packages": "sha256:" + "2" * 64,
        "python": "3",
        "platform": "x",
        "reenact": "0",
    },
    "matching": {"policy": "strict", "redaction": "default", "passthroughTools": [], "volatile": []},
    "divergences": [],
    "liveCallsRefused": [],
    "notes": [],
    "finalOutputHash": None,
    "verdict": "reproduced",
}


@pytest.mark.parametrize("verdict", ["reproduced", "diverged"])
def test_a_replay_receipt_must_mean_its_verdict(verdict: str, tmp_path: Path) -> None:
    """Without a divergence there is only one."""
    file = tmp_path / "receipt.json"
    file.write_text(json.dumps(REPLAY_RECEIPT | {"verdict": verdict}))
    codes = [finding.code for finding in check_artifact(file).findings]
    assert codes == ([] if verdict == "reproduced" else ["verdict"])


NO_ARTIFACTS = {
    "words": (b"hello\n", "not JSON"),
    "a number": (b"5\n", "is not an artifact"),
    "another object": (b'{"a": 1}\n', "is not an artifact"),
    "an empty file": (b"", "not JSON"),
    "an event log": (b'{"captureId":"c","seq":1}\n', "name its directory"),
}


@pytest.mark.parametrize("name", NO_ARTIFACTS)
def test_what_is_no_artifact_is_refused(name: str, tmp_path: Path) -> None:
    """With what could be named instead."""
    text, message = NO_ARTIFACTS[name]
    file = tmp_path / "file"
    file.write_bytes(text)
    with pytest.raises(FormatError, match=message):
        check_artifact(file)


def test_only_what_belongs_together_is_compared() -> None:
    """The message says what would."""
    log = check_artifact(GOLDEN / "replay_log" / "current.jsonl")
    with pytest.raises(UsageError, match="a bundle is not the receipt of a replay log"):
        with_receipt(log, GOLDEN / "bundle" / "every-step.json")
    with pytest.raises(UsageError, match="a trace is not a log that can be compared"):
        with_other_log(log, GOLDEN / "trace" / "every-step.json")

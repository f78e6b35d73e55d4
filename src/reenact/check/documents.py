"""Checks artifacts that are one JSON document, or lines of records, against their format."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from io import BufferedReader
from pathlib import Path
from typing import Any, Final

from reenact.canonical import JsonValue, is_digest, read_json
from reenact.check.actions.action import ACTION
from reenact.check.actions.record import check_record
from reenact.check.actions.validation import validate_stream
from reenact.check.findings import Finding, VerifyReport, unknown_member_findings
from reenact.check.kinds import ArtifactKind
from reenact.errors import FormatError
from reenact.formats import verifiable
from reenact.formats.bundle import FormatProblem, check_bundle
from reenact.formats.lines import read_lines
from reenact.formats.policy import read_policy
from reenact.formats.receipt import LegacyReceipt, read_receipt
from reenact.formats.record import ABSENT
from reenact.formats.replay_receipt import read_replay_receipt
from reenact.formats.result import read_result, read_summary
from reenact.formats.seal import payload_of, read_disclosure, read_envelope, read_seal
from reenact.formats.shadow import ShadowReport, read_shadow_report
from reenact.formats.testcase import check_test_case
from reenact.formats.trace import read_trace

_Checked = tuple[list[Finding], dict[str, Any]]
"""The findings, and facts for the summary."""


def check_document(kind: ArtifactKind, path: Path) -> VerifyReport:
    """Check a file of this *kind* by itself."""
    with path.open("rb") as stream:
        findings, facts = _CHECKS[kind](stream, path.name)
    return VerifyReport(kind, str(path), findings, facts)


def _receipt(stream: BufferedReader, file: str) -> _Checked:
    try:
        receipt = read_receipt(stream.read(), file)
    except FormatError as error:
        return [Finding.of("invalid", error, file=file)], {}
    calls: Any = [] if receipt.tool_calls is ABSENT else receipt.tool_calls
    findings = [
        *_forms(receipt, ("trajectory_hash", "plan_hash"), "$", file),
        *(
            finding
            for index, call in enumerate(calls)
            for finding in _forms(call, ("params_hash", "output_hash"), f"$.tool_calls[{index}]", file)
        ),
        *_exit_codes(receipt, file),
        *unknown_member_findings(receipt, file),
    ]
    return findings, {"session": receipt.session_id, "toolCalls": len(calls)}


def _forms(record: object, fields: Iterable[str], path: str, file: str) -> Iterator[Finding]:
    for field in fields:
        stated = getattr(record, field, None)
        if isinstance(stated, str) and not is_digest(stated):
            message = f"{stated!r:.80} is not sha256: and 64 lowercase hex digits"
            yield Finding(field, message, file, json_path=f"{path}.{field}")


def _exit_codes(receipt: Any, file: str) -> Iterator[Finding]:
    verification = receipt.verification
    if not isinstance(receipt, LegacyReceipt) or verification is None or verification is ABSENT:
        return
    if len(verification.commands_run) != len(verification.exit_codes):
        counts = f"{len(verification.commands_run)} commands, {len(verification.exit_codes)} exit codes"
        message = f"each command has one exit code; found {counts}"
        yield Finding("exit_codes", message, file, json_path="$.verification.exit_codes")


def _replay_receipt(stream: BufferedReader, file: str) -> _Checked:
    try:
        receipt = read_replay_receipt(stream.read(), file=file)
    except FormatError as error:
        return [Finding.of("invalid", error, file=file)], {}
    findings = [
        *_forms(receipt.capture, ("eventsHash",), "$.capture", file),
        *_forms(receipt.fingerprint, ("code", "packages"), "$.fingerprint", file),
        *_forms(receipt, ("finalOutputHash",), "$", file),
        *unknown_member_findings(receipt, file),
    ]
    proved = "diverged" if receipt.divergences or receipt.liveCallsRefused else "reproduced"
    if receipt.verdict != proved:
        message = f"is {receipt.verdict}, but what is listed means {proved}"
        findings.append(Finding("verdict", message, file, json_path="$.verdict"))
    facts = {"capture": receipt.capture.captureId, "verdict": receipt.verdict}
    return findings, facts | {"divergences": len(receipt.divergences)}


def _bundle(stream: BufferedReader, file: str) -> _Checked:
    value = read_json(stream.read())
    script = value.get("script")
    facts = {"steps": len(script)} if isinstance(script, list) else {}
    return _findings(check_bundle(value), file), facts


def _findings(problems: Iterable[FormatProblem], file: str) -> list[Finding]:
    return [
        Finding(problem.code, problem.message, file, problem.severity, problem.line, problem.json_path)
        for problem in problems
    ]


def _trace(stream: BufferedReader, file: str) -> _Checked:
    try:
        trace = read_trace(stream.read(), file)
    except FormatError as error:
        return [Finding.of("invalid", error, file=file)], {}
    calls = sum(event.type == "tool_call" for event in trace.events)
    findings = []
    if trace.metrics.tool_call_count != calls:
        message = f"{trace.metrics.tool_call_count} stated, {calls} found"
        findings.append(Finding("tool_call_count", message, file, json_path="$.metrics.tool_call_count"))
    return findings, {"events": len(trace.events), "toolCalls": calls}


def _test_case(stream: BufferedReader, file: str) -> _Checked:
    from reenact.formats.yaml_text import read_yaml  # PyYAML is slow to import

    document = read_yaml(stream.read(), file)
    assertions = document.value.get("assertions")
    facts = {"assertions": len(assertions)} if isinstance(assertions, list) else {}
    return _findings(check_test_case(document), file), facts


def _result(stream: BufferedReader, file: str) -> _Checked:
    try:
        result = read_result(stream.read(), file)
    except FormatError as error:
        return [Finding.of("invalid", error, file=file)], {}
    return [], {"status": result.status, "assertions": len(result.assertions)}


def _summary(stream: BufferedReader, file: str) -> _Checked:
    try:
        summary = read_summary(stream.read(), file)
    except FormatError as error:
        return [Finding.of("invalid", error, file=file)], {}
    names = ("total", "passed", "failed", "errors")
    return [], {name: getattr(summary, name) for name in names}


def _shadow_report(stream: BufferedReader, file: str) -> _Checked:
    try:
        report = read_shadow_report(stream.read(), file=file)
    except FormatError as error:
        return [Finding.of("invalid", error, file=file)], {}
    if isinstance(report, ShadowReport):
        return [], {"runs": len(report.runs), "verdict": report.verdict}
    return [], {"steps": len(report.steps), "sameTools": report.tools.count}


def _policy(stream: BufferedReader, file: str) -> _Checked:
    try:
        policy = read_policy(stream.read(), file)
    except FormatError as error:
        return [Finding.of("invalid", error, file=file)], {}
    return [], {"rules": len(policy.rules)}


def _action(stream: BufferedReader, file: str) -> _Checked:
    findings: list[Finding] = []
    count = 0
    for judged in validate_stream(stream, file, ACTION):
        count += 1
        if judged.error is not None:
            reason = judged.error.reason if isinstance(judged.error, FormatError) else str(judged.error)
            findings.append(Finding("line_unreadable", reason, file, line=judged.line))
        for problem in judged.result.problems if judged.result else ():
            path = f"$.{problem.path}" if problem.path else "$"
            findings.append(Finding(problem.code, problem.message, file, line=judged.line, json_path=path))
    return findings, {"actions": count}


def _record(stream: BufferedReader, file: str) -> _Checked:
    report = check_record(read_json(stream.read(), "jcs"))
    return report.findings(file), {"record": report.record_digest}


def _pack(stream: BufferedReader, file: str) -> _Checked:
    """A pack as lines or as one array; only the digests of its records are kept in memory."""
    findings: list[Finding] = []
    digests: set[str] = set()
    count = 0
    for line, value in _records(stream, file, findings):
        count += 1
        report = check_record(value)
        findings += report.findings(file, line)
        if report.record_digest is not None:
            digests.add(report.record_digest)
    facts: dict[str, JsonValue] = {"records": count}
    return findings, facts if findings else facts | {"pack": verifiable.pack_digest(digests)}


def _records(
    stream: BufferedReader, file: str, findings: list[Finding]
) -> Iterator[tuple[int | None, JsonValue]]:
    if stream.peek(1)[:1] == b"[":
        yield from ((None, record) for record in read_json(stream.read(), "jcs"))
        return

    def note_unreadable(error: FormatError) -> None:
        findings.append(Finding.of("line_unreadable", error, file=file))

    for line in read_lines(stream, file=file, on_error=note_unreadable):
        try:
            yield line.number, read_json(line.text, "jcs")
        except FormatError as error:
            note_unreadable(error.at(file=file, line=line.number))


def _disclosure(stream: BufferedReader, file: str) -> _Checked:
    try:
        disclosure = read_disclosure(stream.read(), file=file)
    except FormatError as error:
        return [Finding.of("invalid", error, file=file)], {}
    facts = {"tree": disclosure.tree, "position": disclosure.position}
    return [*unknown_member_findings(disclosure, file)], facts


def _seal(stream: BufferedReader, file: str) -> _Checked:
    try:
        envelope = read_envelope(stream.read(), file=file)
        seal = read_seal(payload_of(envelope), file=file)
    except FormatError as error:
        return [Finding.of("invalid", error, file=file)], {}
    events = {} if seal.capture is ABSENT else {"sealedEvents": seal.capture.events.count}
    facts = {**events, "sealedLines": seal.log.lines.count, "sealedAt": seal.sealedAt}
    return [*unknown_member_findings(envelope, file)], facts


_CHECKS: Final[Mapping[ArtifactKind, Callable[[BufferedReader, str], _Checked]]] = {
    "receipt": _receipt,
    "replay receipt": _replay_receipt,
    "bundle": _bundle,
    "trace": _trace,
    "action": _action,
    "record": _record,
    "pack": _pack,
    "seal": _seal,
    "disclosure": _disclosure,
    "test case": _test_case,
    "test result": _result,
    "suite summary": _summary,
    "shadow report": _shadow_report,
    "policy": _policy,
}

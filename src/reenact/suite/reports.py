"""Results of a suite for people, for JSON, for JUnit and for GitHub."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import PurePath
from typing import Final, Literal, NamedTuple, TypeAlias
from xml.etree import ElementTree as ET

import msgspec

from reenact import canonical
from reenact.formats.result import RESULT_CODEC, SUMMARY_CODEC, AssertionResult, SuiteSummary, TestResult
from reenact.suite.runner import EVIDENCE_CHARACTERS, PROBLEMS, Outcome
from reenact.suite.verdict import count_of, shorten

Tone: TypeAlias = Literal["pass", "fail", "error", "warning"]

_WORDS: Final = {"pass": "pass ", "fail": "FAIL ", "error": "ERROR"}
_SHOWN_EVENTS: Final = 8


class ReportLine(NamedTuple):
    """A line for a terminal; its first *toned* characters are in the colour of *tone*."""

    text: str
    tone: Tone | None = None
    toned: int = 0


def test_line(outcome: Outcome) -> ReportLine:
    """The test on one line: status, file, id, and counts of assertions."""
    result = outcome.result
    word = _WORDS[result.status]
    name = f"  {result.test_case_id}" if result.test_case_id else ""
    return ReportLine(f"{word}  {result.test_file}{name}  ({_tally(outcome)})", result.status, len(word))


def _tally(outcome: Outcome) -> str:
    if outcome.result.status == "error":
        return "could not be run"
    found = outcome.result.assertions
    failed = [each for each in found if each.status == "fail"]
    warnings = sum(each.severity == "warning" for each in failed)
    remarks = len(outcome.result.warnings or ())
    skipped = sum(each.status == "skip" for each in found)
    parts = [count_of(len(found), "assertion")]
    parts += [f"{len(failed) - warnings} failed"] if len(failed) > warnings else []
    parts += [count_of(warnings + remarks, "warning")] if warnings + remarks else []
    return ", ".join(parts + ([f"{skipped} skipped"] if skipped else []))


def evidence(outcome: Outcome) -> Iterator[ReportLine]:
    """The details of a test that failed, could not be run, or has warnings; no lines for others."""
    result = outcome.result
    failed = [found for found in result.assertions if found.status == "fail"]
    if not failed and not result.warnings and result.status != "error":
        return
    tone: Tone = "warning" if result.status == "pass" else result.status
    title = f": {outcome.title}" if outcome.title else ""
    yield ReportLine(f"{tone.upper()} {result.test_file}{title}", tone, len(tone))
    if result.error:
        yield ReportLine(f"  {place(outcome)}: {result.error.message}")
        for problem in result.error.extra.get(PROBLEMS, [])[1:]:
            yield ReportLine(f"  {problem}")
    for warning in result.warnings or ():
        where = f"{result.test_file}:{warning.line}: {warning.json_path}"
        yield ReportLine(f"  warning: {where}: {warning.message}", "warning", 10)
    for found in failed:
        yield from _failure(found, outcome)


def place(outcome: Outcome) -> str:
    """The place of an error as ``file:line``, which editors understand."""
    error = outcome.result.error
    assert error
    parts = [error.file or outcome.result.test_file]
    parts += [str(error.line)] if isinstance(error.line, int) else []
    return ":".join(parts) + (f": {error.json_path}" if error.json_path else "")


def _failure(found: AssertionResult, outcome: Outcome) -> Iterator[ReportLine]:
    tone: Tone = "fail" if found.severity == "critical" else "warning"
    where = f"{outcome.result.test_file}:{outcome.lines.get(found.id, 1)}"
    yield ReportLine(f"  {found.id}  {found.type}, {found.severity}, {where}", tone, 2 + len(found.id))
    yield ReportLine(f"    {found.message}")
    if found.params:
        yield ReportLine(f"    params    {shorten(found.params, EVIDENCE_CHARACTERS)}")
    if found.observed is not None:
        yield ReportLine(f"    observed  {shorten(found.observed, EVIDENCE_CHARACTERS)}")
    refs = found.evidence.event_refs
    for ref in refs[:_SHOWN_EVENTS]:
        yield ReportLine(f"    {ref:<8}  {outcome.events.get(ref, '')}")
    if len(refs) > _SHOWN_EVENTS:
        yield ReportLine(f"    … and {len(refs) - _SHOWN_EVENTS} more events")


def last_line(summary: SuiteSummary) -> ReportLine:
    """The suite on one line, in the colour of its worst result."""
    counts = {"passed": summary.passed, "failed": summary.failed, "could not be run": summary.errors}
    listed = ", ".join(f"{count} {what}" for what, count in counts.items() if count)
    text = f"{count_of(summary.total, 'test')}: {listed} in {summary.duration_ms / 1000:.2f} s"
    tone: Tone = "error" if summary.errors else "fail" if summary.failed else "pass"
    return ReportLine(text, tone, len(text))


def all_evidence(outcomes: Iterable[Outcome]) -> Iterator[ReportLine]:
    """The evidence of all *outcomes*, a blank line before each."""
    for outcome in outcomes:
        for index, line in enumerate(evidence(outcome)):
            if index == 0:
                yield ReportLine("")
            yield line


def json_report(summary: SuiteSummary, results: Iterable[TestResult]) -> bytes:
    """A suite summary with the additional member ``results``, so that readers of summaries accept it."""
    value = SUMMARY_CODEC.to_json(summary)
    value["results"] = [RESULT_CODEC.to_json(result) for result in results]
    return msgspec.json.format(canonical.encode(value), indent=2) + b"\n"


SUITE_NAME: Final = "reenact"
_NOT_XML: Final = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def junit_report(summary: SuiteSummary, outcomes: Sequence[Outcome]) -> bytes:
    """The XML document; characters that XML cannot hold are replaced."""
    counts = {
        "name": SUITE_NAME,
        "tests": str(summary.total),
        "failures": str(summary.failed),
        "errors": str(summary.errors),
        "time": _seconds(summary.duration_ms),
    }
    root = ET.Element("testsuites", counts)
    own = {"skipped": "0", "timestamp": summary.started_at}  # only here in the common schema
    suite = ET.SubElement(root, "testsuite", counts | own)
    for outcome in outcomes:
        _add(suite, outcome)
    ET.indent(root)
    document: bytes = ET.tostring(root, encoding="utf-8", xml_declaration=True)
    return document + b"\n"


def _add(suite: ET.Element, outcome: Outcome) -> None:
    result = outcome.result
    folder = PurePath(result.test_file).parent
    case = ET.SubElement(
        suite,
        "testcase",
        {
            "classname": to_xml_text(".".join(part for part in folder.parts if part not in ("/", "..")))
            or "tests",
            "name": to_xml_text(result.test_case_id or result.test_file),
            "file": to_xml_text(result.test_file),
            "time": _seconds(result.duration_ms),
        },
    )
    if result.error:
        message = f"{place(outcome)}: {result.error.message}"
        ET.SubElement(case, "error", {"message": to_xml_text(message), "type": "error"}).text = to_xml_text(
            message
        )
    elif result.status == "fail":
        failed = [found for found in result.assertions if _is_failure(found)]
        message = "; ".join(f"{found.id}: {found.message}" for found in failed)
        types = ", ".join(dict.fromkeys(found.type for found in failed))
        failure = ET.SubElement(
            case, "failure", {"message": to_xml_text(message), "type": to_xml_text(types)}
        )
        failure.text = to_xml_text("\n".join(line.text for line in evidence(outcome)))
    asides = [found for found in result.assertions if found.status != "pass" and not _is_failure(found)]
    notes = [f"{_kind(found)} {found.id}: {found.message}" for found in asides]
    notes += [
        f"warning line {warning.line}: {warning.json_path}: {warning.message}"
        for warning in result.warnings or ()
    ]
    if notes:
        ET.SubElement(case, "system-out").text = to_xml_text("\n".join(notes))


def _is_failure(found: AssertionResult) -> bool:
    return found.status == "fail" and found.severity == "critical"


def _kind(found: AssertionResult) -> str:
    return "skipped" if found.status == "skip" else "warning"


def to_xml_text(text: str) -> str:
    """*text* with a replacement for each character that XML cannot hold."""
    return _NOT_XML.sub("\ufffd", text)


def _seconds(milliseconds: float) -> str:
    return f"{milliseconds / 1000:.3f}"


def workflow_commands(outcomes: Iterable[Outcome]) -> Iterator[str]:
    """One command per failed assertion and per test that could not be run."""
    for outcome in outcomes:
        result = outcome.result
        name = result.test_case_id or result.test_file
        if result.error:
            file = result.error.file or result.test_file
            line = result.error.line if isinstance(result.error.line, int) else 1
            yield _command("error", str(file), line, f"{name} could not be run", result.error.message)
        for warning in result.warnings or ():
            message = f"{warning.json_path}: {warning.message}"
            yield _command("warning", result.test_file, warning.line, f"{name}: read in spite of it", message)
        for found in result.assertions:
            if found.status == "fail":
                title = f"{name}: {found.id} ({found.type})"
                line = outcome.lines.get(found.id, 1)
                yield _command(_annotation_level(found), result.test_file, line, title, found.message)


def _annotation_level(found: AssertionResult) -> str:
    return "error" if found.severity == "critical" else "warning"


def _command(level: str, file: str, line: int, title: str, message: str) -> str:
    properties = f"file={_property(file)},line={line},title={_property(title)}"
    return f"::{level} {properties}::{_data(message)}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")

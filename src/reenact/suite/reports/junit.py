"""For CI servers: JUnit's XML, as Jenkins, GitLab, GitHub and Azure read it.

A test is a ``testcase``; its failed assertions are one ``failure``; a test that could not be run is an
``error``. Warnings and skipped assertions are in ``system-out``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import PurePath
from typing import Final
from xml.etree import ElementTree as ET

from reenact.formats.result import AssertionResult, SuiteSummary
from reenact.suite.reports.text import evidence, place
from reenact.suite.runner import Outcome

SUITE_NAME: Final = "reenact"
_NOT_XML: Final = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def report(summary: SuiteSummary, outcomes: Sequence[Outcome]) -> bytes:
    """The XML document; characters that XML cannot hold are replaced."""
    counts = {
        "name": SUITE_NAME,
        "tests": str(summary.total),
        "failures": str(summary.failed),
        "errors": str(summary.errors),
        "skipped": "0",
        "time": _seconds(summary.duration_ms),
    }
    root = ET.Element("testsuites", counts)
    suite = ET.SubElement(root, "testsuite", {**counts, "timestamp": summary.started_at})
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
            "classname": _clean(".".join(part for part in folder.parts if part not in ("/", "..")))
            or "tests",
            "name": _clean(result.test_case_id or result.test_file),
            "file": _clean(result.test_file),
            "time": _seconds(result.duration_ms),
        },
    )
    if result.error:
        message = f"{place(outcome)}: {result.error.message}"
        ET.SubElement(case, "error", {"message": _clean(message), "type": "error"}).text = _clean(message)
    elif result.status == "fail":
        failed = [found for found in result.assertions if _fails(found)]
        message = "; ".join(f"{found.id}: {found.message}" for found in failed)
        types = ", ".join(dict.fromkeys(found.type for found in failed))
        failure = ET.SubElement(case, "failure", {"message": _clean(message), "type": _clean(types)})
        failure.text = _clean("\n".join(line.text for line in evidence(outcome)))
    asides = [found for found in result.assertions if found.status != "pass" and not _fails(found)]
    said = [f"{_kind(found)} {found.id}: {found.message}" for found in asides]
    said += [
        f"warning line {warning.line}: {warning.json_path}: {warning.message}"
        for warning in result.warnings or ()
    ]
    if said:
        ET.SubElement(case, "system-out").text = _clean("\n".join(said))


def _fails(found: AssertionResult) -> bool:
    return found.status == "fail" and found.severity == "critical"


def _kind(found: AssertionResult) -> str:
    return "skipped" if found.status == "skip" else "warning"


def _clean(text: str) -> str:
    return _NOT_XML.sub("\ufffd", text)


def _seconds(milliseconds: float) -> str:
    return f"{milliseconds / 1000:.3f}"

"""Reports: what people, CI servers and programs read."""

import json
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from reenact.formats.result import read_summary, summarize
from reenact.suite import reports
from reenact.suite.runner import Outcome, Plan, find_tests, run_tests
from tests.suite.test_runner import write_test

SUITES = Path(__file__).parents[2] / "examples" / "suites"


@pytest.fixture(scope="module")
def outcomes():
    """All example suites."""
    return list(run_tests(find_tests([SUITES]), Plan("run-1")))


def summary_of(outcomes):
    return summarize(
        [outcome.result for outcome in outcomes],
        test_run_id="run-1",
        started_at="2026-03-01T08:00:00.000Z",
        finished_at="2026-03-01T08:00:01.500Z",
        duration_ms=1500,
    )


def test_junit_counts_and_names(outcomes):
    """Failures, errors and passes are what CI servers count."""
    root = ET.fromstring(reports.junit_report(summary_of(outcomes), outcomes))
    suite = root.find("testsuite")
    cases = suite.findall("testcase")
    for element in (root, suite):
        assert int(element.get("tests")) == len(cases) == len(outcomes)
        assert int(element.get("failures")) == len(suite.findall("testcase/failure")) > 0
        assert int(element.get("errors")) == len(suite.findall("testcase/error")) > 0
        assert element.get("time") == "1.500"
    names = [(case.get("classname"), case.get("name")) for case in cases]
    assert len(set(names)) == len(names)
    assert all(float(case.get("time")) >= 0 for case in cases)


def test_junit_holds_the_evidence(outcomes):
    """The failure's text is what a person reads in the terminal; a skip is told beside it."""
    root = ET.fromstring(reports.junit_report(summary_of(outcomes), outcomes))
    failed = root.find(".//testcase[@name='memory.other-group']")
    assert "found office:groups/office/CLAUDE.md at evt-2" in failed.find("failure").get("message")
    assert "evt-2     memory_read" in failed.find("failure").text
    assert "skipped in-a-container: the run does not have" in failed.find("system-out").text


def test_junit_takes_any_text(tmp_path):
    """Control characters that XML has no way to write are replaced."""
    file = write_test(
        tmp_path, '{id: "x\\u0001<>&", type: output_contains, params: {all_of: ["\\u0000\\uFFFE]]>"]}}'
    )
    found = list(run_tests([file], Plan("r")))
    root = ET.fromstring(reports.junit_report(summary_of(found), found))
    assert "x\ufffd<>&" in root.find(".//failure").get("message")


def test_json_is_a_summary_with_all_results(outcomes):
    """Readers of summaries take it; the results are in full."""
    data = reports.json_report(summary_of(outcomes), [outcome.result for outcome in outcomes])
    summary = read_summary(data, "results.json")
    assert (summary.total, summary.passed, summary.failed, summary.errors) == (15, 5, 5, 5)
    results = json.loads(data)["results"]
    assert [entry["test_file"] for entry in results] == [entry.test_file for entry in summary.tests]
    assert all(found["message"] for entry in results for found in entry["assertions"])


def test_github_annotates_the_line(outcomes):
    """Each failed assertion at its place in the file; colons and commas are escaped."""
    commands = list(reports.workflow_commands(outcomes))
    stays_home = next(command for command in commands if "stays-home" in command)
    assert stays_home.startswith("::error file=")
    assert "failing/test.yaml,line=19,title=memory.other-group%3A stays-home (no_cross_group" in stays_home
    assert any("could not be run" in command and "line=17" in command for command in commands)
    assert all(command.count("::") >= 2 and "\n" not in command for command in commands)


def test_a_failed_warning_is_a_warning(tmp_path):
    """The test passes, and its line, evidence and annotation say so."""
    file = write_test(tmp_path, "{id: w, type: must_call_tool, severity: warning, params: {tool: fly}}")
    found: list[Outcome] = list(run_tests([file], Plan("r")))
    assert reports.test_line(found[0]).text.endswith("(1 assertion, 1 warning)")
    assert [line.tone for line in reports.evidence(found[0])][:2] == ["warning", "warning"]
    assert next(reports.workflow_commands(found)).startswith("::warning ")


def test_every_failure_is_told_with_its_evidence(outcomes):
    """Message, parameters, observation and events."""
    lines = [line.text for line in reports.all_evidence(outcomes)]
    for outcome in outcomes:
        for found in outcome.result.assertions:
            assert (f"    {found.message}" in lines) == (found.status == "fail")
    assert not any(line.startswith("FAIL") and "passing" in line for line in lines)


def test_the_last_line_counts():
    """And leaves out what did not happen."""
    assert reports.last_line(summary_of([])).text == "no tests:  in 1.50 s"

"""Test results and suite summaries: verdicts, readers and writers."""

import copy
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reenact.errors import FormatError, UnknownVersion
from reenact.formats import result as results
from reenact.formats.result import (
    read_result,
    read_summary,
    summarize,
    verdict,
    write_result,
    write_summary,
)
from tests.formats import UNREADABLE, examples, golden_files, json_values, law, record, texts

assertion_results = record(
    {
        "id": texts,
        "type": texts,
        "severity": st.sampled_from(["critical", "warning"]),
        "status": st.sampled_from(["pass", "fail", "skip"]),
        "message": texts,
        "params": st.dictionaries(texts, json_values, max_size=2),
        "observed": json_values,
        "evidence": record({"event_refs": st.lists(texts, max_size=2)}),
    }
)
base = record(
    {
        "schema_version": st.just("0.1"),
        "test_case_id": st.none() | texts,
        "assertions": st.lists(assertion_results, max_size=3),
        "duration_ms": st.integers(0, 2**53) | st.floats(0, 1e9),
        "artifacts": st.dictionaries(texts, texts, max_size=2),
        **dict.fromkeys(("test_file", "test_run_id", "started_at", "finished_at"), texts),
    }
)


@st.composite
def result_values(draw):
    """Results whose status follows from their assertions, or from an error."""
    value = draw(base)
    if draw(st.booleans()):
        return {
            **value,
            "status": "error",
            "error": draw(record({"message": texts}, {"line": st.integers(1, 9)})),
        }
    failed = any(
        found["status"] == "fail" and found["severity"] == "critical" for found in value["assertions"]
    )
    return {**value, "status": "fail" if failed else "pass"}


@law
@given(result_values())
def test_writing_and_reading_keep_every_field(value):
    """Known or unknown, at every level."""
    result = results.RESULT_CODEC.from_json(value)
    assert read_result(write_result(result), "result.json") == result
    assert json.loads(write_result(result)) == value


@law
@given(st.lists(result_values(), max_size=4))
def test_a_summary_counts_every_test_once(values):
    """Its counts add up, its order is the one given, and it reads back."""
    found = [results.RESULT_CODEC.from_json(value) for value in values]
    summary = summarize(found, test_run_id="r", started_at="a", finished_at="b", duration_ms=1)
    assert summary.total == summary.passed + summary.failed + summary.errors == len(values)
    assert [test.status for test in summary.tests] == [value["status"] for value in values]
    for test, result in zip(summary.tests, found, strict=True):
        assert test.failed_assertions == [entry.id for entry in result.assertions if entry.status == "fail"]
    assert read_summary(write_summary(summary), "summary.json") == summary


@law
@given(st.binary(max_size=80))
def test_arbitrary_bytes_raise_nothing_but_format_errors(data):
    """No result is that short, so every one is refused by both readers."""
    for read in (read_result, read_summary):
        with pytest.raises(FormatError):
            read(data, "result.json")


@pytest.mark.parametrize("read", [read_result, read_summary])
@pytest.mark.parametrize("name", UNREADABLE)
def test_unreadable_bytes_are_refused(name, read):
    """Nothing that is no result gets through, and the error names the file on one line."""
    with pytest.raises(FormatError, match=r"\Aresult\.json: [^\n]+\Z"):
        read(UNREADABLE[name], "result.json")


VERDICTS = {
    "nothing asserted": ([], "pass"),
    "all pass": ([("critical", "pass"), ("warning", "pass")], "pass"),
    "a warning fails": ([("critical", "pass"), ("warning", "fail")], "pass"),
    "a critical one is skipped": ([("critical", "skip")], "pass"),
    "a critical one fails": ([("critical", "pass"), ("critical", "fail")], "fail"),
}


@pytest.mark.parametrize("name", VERDICTS)
def test_a_test_fails_when_a_critical_assertion_fails(name):
    """Warnings and skips alone never fail it."""
    found, expected = VERDICTS[name]
    assert verdict([assertion(severity, status) for severity, status in found]) == expected


def assertion(severity, status):
    return results.AssertionResult(
        id="a",
        type="t",
        severity=severity,
        status=status,
        message="",
        params={},
        observed=None,
        evidence=results.Evidence(event_refs=[]),
    )


def golden(name):
    (path,) = golden_files("result", f"{name}.json")
    return json.loads(path.read_text(encoding="utf-8"))


BAD = {
    "pass although a critical one failed": ("failed", {"status": "pass"}, "$.status"),
    "fail although none failed": ("passed", {"status": "fail"}, "$.status"),
    "error without an error": ("passed", {"status": "error"}, "$.error"),
    "an error but no status error": ("passed", {"error": {"message": "x"}}, "$.error"),
    "unknown status": ("passed", {"status": "skip"}, "$.status"),
    "artifact not a path": ("passed", {"artifacts": {"trace": 5}}, "$.artifacts[...]"),
    "assertion without severity": (
        "passed",
        {"assertions": [{"id": "a", "type": "t"}]},
        "$.assertions[0].severity",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_a_result_that_contradicts_itself_is_refused(name):
    """A status follows from the assertions or from an error, and from nothing else."""
    source, change, path = BAD[name]
    with pytest.raises(FormatError) as caught:
        read_result(json.dumps({**golden(source), **change}).encode(), "result.json")
    assert caught.value.json_path == path


@pytest.mark.parametrize("name", ["total", "passed", "failed", "errors"])
def test_a_summary_that_miscounts_is_refused(name):
    """Every count follows from the tests listed."""
    value = copy.deepcopy(golden("summary"))
    value[name] += 1
    with pytest.raises(FormatError) as caught:
        read_summary(json.dumps(value).encode(), "summary.json")
    assert caught.value.json_path == f"$.{name}"


def test_a_later_major_version_is_refused():
    """By the reader of results and by that of summaries."""
    for read in (read_result, read_summary):
        with pytest.raises(UnknownVersion):
            read(b'{"schema_version": "1.0"}', "result.json")


@pytest.mark.parametrize("path", golden_files("result"), ids=lambda path: path.stem)
def test_golden_files_are_written_as_they_were_read(path):
    """The writers give the same bytes for ever."""
    read, write = (read_summary, write_summary) if path.stem == "summary" else (read_result, write_result)
    assert write(read(path.read_bytes(), path.name)) == path.read_bytes()


def test_the_page_shows_results_that_read():
    """Every example of the format's page goes through its reader."""
    found, summaries = examples("trace.md", "result"), examples("trace.md", "summary")
    assert found
    assert summaries
    for text in found:
        read_result(text, "trace.md")
    for text in summaries:
        read_summary(text, "trace.md")

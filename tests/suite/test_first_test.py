"""A first test for a capture."""

import pytest

import reenact
from reenact.formats.testcase import read_test_case
from reenact.store.reader import CaptureReader
from reenact.suite.first_test import first_test
from reenact.suite.runner import Plan, run_test
from reenact.trace.from_run import trace_of_run
from reenact.trace.sources.capture import read_capture


@pytest.fixture
def written(tmp_path):
    @reenact.tool
    def search(q, text=""):
        return ["https://a.example/1"]

    @reenact.tool
    def send(to):
        raise TimeoutError("slow")

    with reenact.capture(tmp_path / "runs" / "one") as run:
        search("tea")
        search("tea", text="x" * 1000)
        for _ in range(2):
            with pytest.raises(TimeoutError):
                send("ann")
        run.memory_write("notes.md", "x")
        run.final_output = "- see https://a.example/1"
    trace = trace_of_run(
        read_capture(CaptureReader(tmp_path / "runs" / "one")), trace_id="t", test_run_id="r"
    )
    file = tmp_path / "test.yaml"
    file.write_bytes(first_test(trace, test_id="one", capture="runs/one"))
    return file


def test_it_holds(written):
    """Every assertion passes; there is one of each kind that applies."""
    found = run_test(written, Plan("r")).result
    assert {assertion.status for assertion in found.assertions} == {"pass"}
    assert {assertion.type for assertion in found.assertions} == {
        "must_call_tool",
        "tool_sequence",
        "max_tool_calls",
        "retry_policy_respected",
        "no_secret_in_output",
        "output_matches_format",
        "no_fabricated_source_or_citation",
        "state_mutation_allowed",
    }


def test_it_is_a_good_test_file(written):
    """Read without a warning, ids told apart, long arguments left out."""
    case = read_test_case(written.read_bytes(), "test.yaml")
    assert len({assertion.id for assertion in case.assertions}) == len(case.assertions)
    steps = next(each for each in case.assertions if each.type == "tool_sequence").params["steps"]
    assert steps[:2] == [{"tool": "search", "args": {"q": "tea", "text": ""}}, {"tool": "search"}]
    assert written.read_text().startswith("# Written from the capture below.")

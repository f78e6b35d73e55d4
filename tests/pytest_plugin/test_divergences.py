"""A divergence is the test's failure, and a person can read it."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree

import pytest

from tests.pytest_plugin.conftest import Suite, printed

pytest_plugins = ["pytester"]

PLACE = "captures/test_it/test_one"
CHANGED = """
@pytest.mark.reenact
def test_one():
    search("a" + VARIANT)
    search("b")
"""


def diverge(suite: Suite, monkeypatch: pytest.MonkeyPatch, program: str, *arguments: str) -> pytest.RunResult:
    """Record *program*, then replay it in another variant."""
    suite.write(test_it=program)
    suite.run("--reenact=record").assert_outcomes(passed=1)
    monkeypatch.setenv("VARIANT", "x")
    result = suite.run(*arguments)
    assert printed(result, "live") == []
    return result


EXPLAINED = [
    'tool search differs at $.query: expected "a", observed "ax"',
    "  what         event 2, event_payload_mismatch",
    "  called from  *test_it.py:6 in test_one",
    '  differs      $.query: expected "a", observed "ax"',
    f"  capture      {PLACE}",
    "  record anew  pytest test_it.py::test_one --reenact=record",
]


@pytest.mark.parametrize("options", [(), ("-q",), ("--tb=short",), ("-v", "--tb=long")], ids=" ".join)
def test_the_failure_is_the_divergence_explained(
    suite: Suite, monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...]
) -> None:
    """The same words as everywhere, and no traceback through our own code."""
    result = diverge(suite, monkeypatch, CHANGED, *options)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(EXPLAINED)
    result.stdout.fnmatch_lines(
        ["reenact: 1 diverged", "FAILED test_it.py::test_one - *tool search differs at $.query*"]
    )
    for trace in ("Traceback", "replayer/engine.py", "reenact/pytest_plugin/", "During handling"):
        assert trace not in str(result.stdout)


def test_the_junit_report_has_the_explanation(suite: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    """As message and as text of the failure."""
    diverge(suite, monkeypatch, CHANGED, "--junitxml=report.xml")
    failure = ElementTree.parse(suite.path / "report.xml").find(".//testcase/failure")
    assert failure is not None
    assert failure.text is not None
    assert failure.text.splitlines()[0] == EXPLAINED[0]
    assert EXPLAINED[0] in failure.get("message", "")


def test_the_failure_is_placed_at_the_test(suite: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    """For tools that annotate the line which a report names."""
    result = diverge(suite, monkeypatch, CHANGED, "--tb=line")
    result.stdout.fnmatch_lines(["*test_it.py:4: Failed: tool search differs at *"])


def test_a_full_trace_can_be_had(suite: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    """For those who look for a defect of ours."""
    result = diverge(suite, monkeypatch, CHANGED, "--full-trace")
    result.stdout.fnmatch_lines(["*replayer/engine.py:*", "E *Diverged: event_payload_mismatch: *"])


FOUND_AT_THE_END = {
    "calls that never came": (
        "    if not VARIANT: search('a')\n",
        "tool search was recorded, but *",
    ),
    "a divergence that the agent swallowed": (
        "    try: search('a' + VARIANT)\n    except Exception: pass\n",
        "tool search differs at *",
    ),
    "a divergence that the agent wrapped": (
        "    try: search('a' + VARIANT)\n    except Exception: raise ValueError('no luck')\n",
        "tool search differs at *",
    ),
    "another final output": ("    reenact_run.final_output = 'a' + VARIANT\n    search('a')\n", "*output*"),
}


@pytest.mark.parametrize("case", FOUND_AT_THE_END)
def test_what_the_end_of_the_run_brings_up_fails_the_body(
    suite: Suite, monkeypatch: pytest.MonkeyPatch, case: str
) -> None:
    """It is the test that failed, not its teardown."""
    body, line = FOUND_AT_THE_END[case]
    result = diverge(suite, monkeypatch, f"def test_one(reenact_run):\n{body}")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines([line, f"  capture      {PLACE}"])
    result.stdout.no_fnmatch_line("*ValueError*")


OWN_FAILURES = {
    "a function": "@pytest.mark.reenact\ndef test_one():\n    assert not VARIANT\n    search('a')\n",
    "unittest": """
import unittest

class TestIt(unittest.TestCase):
    @pytest.mark.reenact
    def test_one(self):
        assert not VARIANT
        search('a')
""",
}


@pytest.mark.parametrize("case", OWN_FAILURES)
def test_a_test_that_fails_by_itself_fails_for_its_own_reason(
    suite: Suite, monkeypatch: pytest.MonkeyPatch, case: str
) -> None:
    """That it left recorded calls over is no news."""
    result = diverge(suite, monkeypatch, OWN_FAILURES[case])
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines([">*assert not VARIANT", "E * assert not 'x'*"])
    result.stdout.no_fnmatch_line("*event_missing*")


def test_a_body_that_broke_off_has_not_diverged(suite: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    """The summary counts it as replayed."""
    result = diverge(suite, monkeypatch, OWN_FAILURES["a function"])
    result.stdout.fnmatch_lines(["reenact: 1 replayed"])


def test_a_test_that_is_only_set_up_has_not_diverged(suite: Suite) -> None:
    """pytest can be asked for the fixtures alone."""
    suite.write(test_it=CHANGED)
    suite.run("--reenact=record").assert_outcomes(passed=1)
    result = suite.run("--setup-only")
    assert result.ret == 0
    result.stdout.fnmatch_lines(["reenact: 1 replayed"])


def test_unittest_shows_the_divergence_that_its_test_wrapped(
    suite: Suite, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Although unittest keeps the errors of its tests to itself."""
    program = """
import unittest

class TestIt(unittest.TestCase):
    @pytest.mark.reenact
    def test_one(self):
        try:
            search('a' + VARIANT)
        except Exception as error:
            self.fail('no luck')
"""
    result = diverge(suite, monkeypatch, program)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*differs*", "  what         event 2, event_payload_mismatch"])


@pytest.mark.parametrize("phase", ["setup", "teardown"])
def test_a_divergence_in_a_fixture_is_told_once(
    suite: Suite, monkeypatch: pytest.MonkeyPatch, phase: str
) -> None:
    """In the phase in which it happened."""
    program = f"""
@pytest.fixture
def assistant(reenact_run):
    search("create" + VARIANT * ({phase!r} == "setup"))
    yield
    search("delete" + VARIANT * ({phase!r} == "teardown"))

@pytest.mark.reenact
def test_one(assistant):
    search("a")
"""
    result = diverge(suite, monkeypatch, program)
    result.assert_outcomes(errors=1, passed=int(phase == "teardown"))
    result.stdout.fnmatch_lines([f"* ERROR at {phase} of test_one *", "tool * differs at *"])


def test_an_expected_divergence_is_an_expected_failure(suite: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    """The exception that pytest sees is ours."""
    program = f"@pytest.mark.xfail(raises=reenact.Diverged, strict=False){CHANGED}"
    suite.write(test_it=program)
    suite.run("--reenact=record").assert_outcomes(xpassed=1)
    monkeypatch.setenv("VARIANT", "x")
    suite.run().assert_outcomes(xfailed=1)


def test_an_interrupted_replay_stays_interrupted(suite: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the end of the run brings up does not swallow Ctrl-C."""
    program = """
@pytest.mark.reenact
def test_one():
    try: search("a" + VARIANT)
    except Exception: raise KeyboardInterrupt from None
"""
    result = diverge(suite, monkeypatch, program)
    assert result.ret == pytest.ExitCode.INTERRUPTED


def test_an_interrupted_recording_leaves_nothing(suite: Suite) -> None:
    """Not even beside the place of its capture."""
    suite.write(
        test_it="@pytest.mark.reenact\ndef test_one():\n    search('a')\n    raise KeyboardInterrupt\n"
    )
    assert suite.run("--reenact=record").ret == pytest.ExitCode.INTERRUPTED
    assert suite.captures() == []

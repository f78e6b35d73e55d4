"""One assertion: its type, its parameters, its capabilities, its severity."""

import inspect

import pytest

from reenact.errors import UsageError
from reenact.formats.result import RESULT_CODEC, verdict
from reenact.formats.testcase import Assertion
from reenact.suite import Params, Verdict
from reenact.suite.judge import BUILT_IN, OF_FILES, OUR_OWN, SPECIFIED, judge, params_type
from tests.suite.runs import call, judged, table, trace_of

TRACE = trace_of(call("search"), capabilities={"supports_memory_events": False})


def test_there_are_nineteen_specified_types_and_fifteen_of_our_own():
    """Sixteen that were built, three that were only promised, and ours, four of them on files."""
    assert (len(SPECIFIED), len(OUR_OWN), len(OF_FILES), len(BUILT_IN)) == (19, 11, 5, 35)


@pytest.mark.parametrize("kind", BUILT_IN)
def test_every_type_has_typed_parameters_and_a_sentence(kind):
    """What the documents and messages are made from."""
    assert issubclass(params_type(BUILT_IN[kind]), Params)
    assert inspect.getdoc(BUILT_IN[kind])


def test_a_result_has_every_part():
    """In the published shape."""
    found = judged("must_call_tool", {"tool": "search"}, TRACE)
    assert RESULT_CODEC is not None
    assert (found.id, found.type, found.severity, found.status) == ("a", "must_call_tool", "critical", "pass")
    assert (found.params, found.observed) == ({"tool": "search"}, {"calls": 1})
    assert found.evidence.event_refs == ["evt-1"]


def test_a_missing_capability_skips_and_is_named():
    """All that are missing; an unknown one is missing too."""
    names = ["supports_tool_trace", "supports_memory_events", "supports_flying"]
    found = judged("must_call_tool", {"tool": "nothing"}, TRACE, requires_capabilities=names)
    assert (found.status, found.message) == (
        "skip",
        "the run does not have supports_memory_events, supports_flying",
    )
    assert verdict([found]) == "pass"


def test_capabilities_that_are_there_do_not_skip():
    """Replay and tool traces are there unless a bundle denies them."""
    names = ["supports_tool_trace", "supports_replay"]
    assert judged("must_call_tool", {"tool": "search"}, TRACE, requires_capabilities=names).status == "pass"


@pytest.mark.parametrize(("severity", "outcome"), [("critical", "fail"), ("warning", "pass"), (None, "fail")])
def test_only_critical_failures_fail_a_test(severity, outcome):
    """Critical is what an assertion is when it does not say."""
    found = judged("must_call_tool", {"tool": "nothing"}, TRACE, severity=severity)
    assert found.status == "fail"
    assert found.severity == (severity or "critical")
    assert verdict([found]) == outcome


BROKEN = {
    "unknown type": ("must_call_tol", {}, "unknown assertion type; did you mean 'must_call_tool'?"),
    "far from any": ("zzz", {}, "unknown assertion type; known are must_call_tool, must_not_call_tool"),
    "missing": ("must_call_tool", {}, "params.tool: required, but missing"),
    "wrong type": ("must_call_tool", {"tool": []}, "params.tool: expected `str`, got `array`"),
    "wrong number": ("must_call_tool", {"tool": "x", "min_calls": -1}, "min_calls: expected `int` >= 0"),
    "nested": ("tool_args_match", {"tool": "x", "match": {"regex": {"q": []}}}, "params.match.regex[...]: "),
}


@pytest.mark.parametrize(("kind", "params", "said"), **table(BROKEN))
def test_what_is_broken_fails_with_the_reason(kind, params, said):
    """The assertion fails; the others of the test are still judged."""
    found = judged(kind, params, TRACE)
    assert found.status == "fail"
    assert said in found.message


def test_no_params_is_an_empty_object():
    """Absent and null alike."""
    for params in ({}, None):
        assert judged("no_errors", params, TRACE).status == "pass"


def test_defaults_fill_in_what_the_test_leaves_out():
    """By type; the test's own parameters go first, and the result shows those alone."""
    defaults = {"must_call_tool": {"tool": "search", "min_calls": 5}}
    assertion = Assertion(id="a", type="must_call_tool", params={"min_calls": 1})
    found = judge(assertion, TRACE, BUILT_IN, defaults)
    assert (found.status, found.params) == ("pass", {"min_calls": 1})


def boom(trace, params):
    raise ZeroDivisionError("oh")


def nothing(trace, params):
    return True


def usage(trace, params):
    raise UsageError("params.x: should be y")


USERS = {
    "raises": (boom, "own raised ZeroDivisionError: oh"),
    "returns something else": (nothing, "own returned a bool; it must return reenact.suite.Verdict"),
    "refuses its parameters": (usage, "params.x: should be y"),
}


@pytest.mark.parametrize(("function", "said"), **table(USERS))
def test_a_users_function_may_fail_in_its_own_way(function, said):
    """The run goes on."""
    found = judge(Assertion(id="a", type="own"), TRACE, {"own": function})
    assert (found.status, found.message) == ("fail", said)


def test_a_users_function_may_take_a_plain_dict():
    """Parameters need no type."""

    def own(trace, params):
        return Verdict(passed=params["x"] == 1, message="m")

    assert judge(Assertion(id="a", type="own", params={"x": 1}), TRACE, {"own": own}).status == "pass"

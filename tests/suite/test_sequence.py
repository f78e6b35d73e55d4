"""The whole path of a run."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.suite.runs import call, check, judged, result, table, trace_of

TRACE = trace_of(call("a", "c1", x=1), result("a", "c1"), call("b", "c2", x=2, y=3), call("a", "c3", x=3))
REFS = ["evt-1", "evt-3", "evt-4"]

SEQUENCE = {
    "strict": (["a", "b", "a"], {}, "pass", "exactly a, b, a in this order, found a, b, a"),
    "strict, one missing": (["a", "b", "a", "c"], {}, "fail", "missing c"),
    "strict, one too many": (["a", "b"], {}, "fail", "not expected at evt-4"),
    "strict, other order": (["b", "a", "a"], {}, "fail", "missing b, a, a"),
    "strict, arguments": ([{"tool": "a", "args": {"x": 1}}, "b", "a"], {}, "pass", ""),
    "strict, other arguments": ([{"tool": "a", "args": {"x": 9}}, "b", "a"], {}, "fail", 'a {"x":9}'),
    "exact arguments": (["a", {"tool": "b", "args": {"x": 2}}, "a"], {}, "fail", ""),
    "partial arguments": (["a", {"tool": "b", "args": {"x": 2}}, "a"], {"args_mode": "partial"}, "pass", ""),
    "unordered": (["b", "a", "a"], {"mode": "unordered"}, "pass", "in any order"),
    "unordered counts": (["b", "a"], {"mode": "unordered"}, "fail", "not expected at evt-4"),
    "unordered needs all": (["b", "a", "a", "a"], {"mode": "unordered"}, "fail", "missing a"),
    "unordered finds the assignment": (
        *(["a", {"tool": "a", "args": {"x": 1}}, "b"], {"mode": "unordered"}, "pass", ""),
    ),
    "subset": (["a", "a", "b", "c"], {"mode": "subset"}, "pass", "no calls but"),
    "subset forbids others": (["a", "a", "c"], {"mode": "subset"}, "fail", "not expected at evt-3"),
    "superset": (["b"], {"mode": "superset"}, "pass", "at least b"),
    "superset needs all": (["b", "c"], {"mode": "superset"}, "fail", "missing c"),
    "unknown mode": (["a"], {"mode": "loose"}, "fail", "params.mode: invalid enum value 'loose'"),
}


@pytest.mark.parametrize(("steps", "more", "status", "said"), **table(SEQUENCE))
def test_the_calls_are_the_expected_ones(steps, more, status, said):
    """Four modes; a step may say with what arguments."""
    refs = [] if "enum" in said else REFS
    check("tool_sequence", {"steps": steps, **more}, TRACE, status, refs, said)


tools = st.lists(st.sampled_from("abc"), max_size=5)


@given(tools, tools)
def test_the_modes_are_those_of_multisets(made, expected):
    """Without arguments each mode is a plain comparison."""
    trace = trace_of(*(call(tool, f"c{index}") for index, tool in enumerate(made)))
    counts = [(made.count(tool), expected.count(tool)) for tool in "abc"]
    law = {
        "strict": made == expected,
        "unordered": sorted(made) == sorted(expected),
        "subset": all(found <= wanted for found, wanted in counts),
        "superset": all(found >= wanted for found, wanted in counts),
    }
    for mode, holds in law.items():
        found = judged("tool_sequence", {"mode": mode, "steps": expected}, trace)
        assert (found.status == "pass") is holds, (mode, found.message)


COUNT = {
    "tool calls": ({"exact": 3}, "pass", REFS, "expected exactly 3, found 3"),
    "of one tool": (
        {"tool": "a", "max": 1},
        "fail",
        ["evt-1", "evt-4"],
        "tool_call events of a: expected at most 1",
    ),
    "of another type": ({"event_type": "tool_result", "min": 1}, "pass", ["evt-2"], ""),
    "of several": (
        {"event_type": ["tool_call", "tool_result"], "exact": 4},
        "pass",
        ["evt-1", "evt-2", *REFS[1:]],
        "",
    ),
    "no bounds": ({}, "fail", [], "give exact, min or max"),
}


@pytest.mark.parametrize(("params", "status", "refs", "said"), **table(COUNT))
def test_steps_are_counted(params, status, refs, said):
    """Tool calls unless another type is named."""
    check("step_count", params, TRACE, status, refs, said)


@pytest.mark.slow
def test_long_runs_are_compared():
    """A thousand calls of one tool, whatever the mode."""
    trace = trace_of(*(call("a", f"c{index}") for index in range(1200)))
    for mode in ("strict", "unordered", "subset", "superset"):
        found = judged("tool_sequence", {"mode": mode, "steps": ["a"] * 1200}, trace)
        assert found.status == "pass", found.message

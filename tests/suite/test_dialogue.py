"""An ambiguous request is answered with a question."""

import pytest

from tests.suite.runs import call, check, table, trace_of

ASK = {
    "asks": ("Which Alex do you mean?", [], {}, "pass", [], "'Which Alex do you mean?'"),
    "does not ask": ("I booked it.", [], {}, "fail", [], "no question in the output"),
    "asks about it": (
        "Sure. Which city?",
        [],
        {"about_any_of": ["city", "date"]},
        "pass",
        [],
        "'Which city?'",
    ),
    "asks about something else": (
        *("How are you?", [], {"about_any_of": ["city"]}, "fail", []),
        ("a question about city", "1 question, none of them about it"),
    ),
    "acts before it knows": (
        *("Which city?", [call("book")], {"forbidden_tools": ["book"]}, "fail", ["evt-1"]),
        "1 call made without knowing at evt-1",
    ),
    "looks things up": ("Which city?", [call("search")], {"forbidden_tools": ["book"]}, "pass", [], ""),
    "may do nothing": (
        "Which city?",
        [call("search")],
        {"forbidden_tools": "all"},
        "fail",
        ["evt-1"],
        "evt-1",
    ),
    "asks too much": ("City? Date? Class?", [], {"max_questions": 2}, "fail", [], "3 questions, more than 2"),
    "need not ask": ("Booked.", [], {"when": "^cancel"}, "pass", [], "nothing need be asked"),
    "has to ask": ("Booked.", [], {"when": "^book"}, "fail", [], "no question"),
}


@pytest.mark.parametrize(("output", "script", "params", "status", "refs", "said"), **table(ASK))
def test_a_question_is_asked(output, script, params, status, refs, said):
    """About the right thing, before anything is done, and only when it is needed."""
    trace = trace_of(*script, output=output, messages=["Book a flight"])
    check("ask_clarifying_when_ambiguous", params, trace, status, refs, said)

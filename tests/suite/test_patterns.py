"""Regular expressions: Ruby's anchors, and never for ever."""

from time import process_time

import pytest

from reenact.errors import UsageError
from reenact.suite.patterns import Searcher
from tests.suite.runs import call, judged, table, trace_of

HOSTILE = {
    "nested repetition": ("(x+x+)+y", "x" * 5000),
    "alternatives that overlap": ("(a|aa)+$", "a" * 100 + "b"),
    "fuzzy": ("(?:x+x+)+(?:y){e<=3}z", "x" * 3000),
}


@pytest.mark.parametrize(("pattern", "text"), **table(HOSTILE))
def test_a_hostile_pattern_is_given_up_within_a_second(pattern, text):
    """However it is made; the message says why."""
    start = process_time()
    with pytest.raises(UsageError, match=r"was given up after 0\.2 s on \d+ characters; it backtracks"):
        Searcher(budget_s=0.2).search(pattern, text)
    assert process_time() - start < 1


PLACES = {
    "output_contains": ("output_contains", {"regex": ["(x+x+)+y"]}),
    "output_omits": ("output_omits", {"patterns": ["(x+x+)+y"] * 20, "regex": True}),
    "tool_args_match": ("tool_args_match", {"tool": "t", "match": {"regex": {"q": "(x+x+)+y"}}}),
    "tool_args": ("tool_args", {"tool": "t", "matchers": {"q": {"regex": "(x+x+)+y"}}}),
    "ask_clarifying": ("ask_clarifying_when_ambiguous", {"when": "(x+x+)+y"}),
    "no_secret_in_output": ("no_secret_in_output", {"patterns": ["(x+x+)+y"]}),
    "memory_update": ("memory_update_on_correction", {"correction": "(x+x+)+y"}),
}


@pytest.mark.parametrize(("kind", "params"), **table(PLACES))
def test_every_assertion_with_a_pattern_is_bounded(kind, params):
    """However many patterns there are, one deadline holds for all."""
    trace = trace_of(call("t", q="x" * 5000), output="x" * 5000, messages=["x" * 5000])
    start = process_time()
    found = judged(kind, params, trace)
    assert found.status == "fail"
    assert "was given up" in found.message
    assert process_time() - start < 1


def test_anchors_match_at_every_line():
    """As in Ruby."""
    searcher = Searcher()
    assert searcher.search("^two$", "one\ntwo\nthree")
    assert not searcher.search(r"\Atwo", "one\ntwo")
    assert not searcher.search("one.two", "one\ntwo")


BAD = {
    "not closed": ("(a", "is not a regular expression: missing )"),
    "nothing to repeat": ("*a", "is not a regular expression: nothing to repeat"),
    "too long": ("a" * 5001, "is longer than 5000 characters"),
    "very deep": ("(" * 2000 + ")" * 2000, "is not a regular expression"),
}


@pytest.mark.parametrize(("pattern", "said"), **table(BAD))
def test_a_bad_pattern_is_named(pattern, said):
    """In one line, cut where it is long."""
    with pytest.raises(UsageError, match="the pattern '") as caught:
        Searcher().search(pattern, "text")
    assert said in str(caught.value)
    assert len(str(caught.value)) < 300

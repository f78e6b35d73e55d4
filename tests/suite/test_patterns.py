"""Regular expressions: read as Ruby reads them, and never for ever."""

import json
from pathlib import Path
from time import thread_time

import pytest

from reenact.errors import UsageError
from reenact.suite.patterns import Searcher
from tests.suite.runs import call, error, judged, memory, table, trace_of

pytestmark = pytest.mark.usefixtures("collector_off")

HOSTILE = {
    "nested repetition": ("(x+x+)+y", "x" * 5000),
    "alternatives that overlap": ("(a|aa)+$", "a" * 100 + "b"),
    "lookahead": ("(?=(x+x+)+y)", "x" * 3000),
}


@pytest.mark.parametrize(("pattern", "text"), **table(HOSTILE))
def test_a_hostile_pattern_is_given_up_within_a_second(pattern, text):
    """However it is made; the message says why."""
    start = thread_time()
    with pytest.raises(UsageError, match=r"was given up after 0\.2 s on \d+ characters; it backtracks"):
        Searcher(budget_s=0.2).search(pattern, text)
    assert thread_time() - start < 1


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
    start = thread_time()
    found = judged(kind, params, trace)
    assert found.status == "fail"
    assert "was given up" in found.message
    assert thread_time() - start < 1


RUBY = json.loads(Path(__file__).with_name("ruby_patterns.json").read_bytes())
"""What Ruby 3.1 finds in some texts, null where it refuses the pattern; taken from a run of it."""
NO_EQUAL = ("(?~a)", "[a-[bc]]")


@pytest.mark.parametrize("row", RUBY, ids=lambda row: row["pattern"])
def test_a_pattern_finds_what_ruby_finds(row):
    """The same text at the same place; what Ruby refuses, and what has no equal, is refused."""

    def search_all():
        searcher = Searcher()
        matches = (
            searcher.search(row["pattern"], text, ignore_case=row["ignore_case"]) for text in row["texts"]
        )
        return [match and match[0] for match in matches]

    if row["found"] is None or row["pattern"] in NO_EQUAL:
        with pytest.raises(UsageError, match=r"the pattern ['\"]"):
            search_all()
    else:
        assert search_all() == row["found"]


REFUSED = {
    "Python's named group": ("(?P<n>a)", "write a named group as (?<name>…)"),
    "dot matches all": ("(?s)a.b", "(?m) lets . match line breaks in Ruby"),
    "absence": ("(?~ab)", "use a negative lookahead"),
    "no such property": (r"\p{Foo}", "no property of characters is called 'Foo'"),
    "no such class": ("[[:foo:]]", "no class of characters is called 'foo'"),
    "no such group": (r"\k<x>", "no group is called 'x'"),
    "fuzzy matching": (r"(?:y){e<=3}", None),
}


@pytest.mark.parametrize(("pattern", "hint"), **table(REFUSED))
def test_what_cannot_be_translated_is_refused_with_a_hint(pattern, hint):
    """It is never read as something else: fuzzy matching is another library's, so its braces are text."""
    if hint is None:
        assert Searcher().search(pattern, "y{e<=3}")[0] == "y{e<=3}"
        return
    with pytest.raises(UsageError) as caught:
        Searcher().search(pattern, "text")
    assert hint in str(caught.value)


def test_anchors_match_at_every_line():
    """As in Ruby."""
    searcher = Searcher()
    assert searcher.search("^two$", "one\ntwo\nthree")
    assert not searcher.search(r"\Atwo", "one\ntwo")
    assert not searcher.search("one.two", "one\ntwo")


BAD = {
    "not closed": ("(a", "is not a regular expression of Ruby: a group is not closed"),
    "nothing to repeat": ("*a", "is not a regular expression of Ruby: there is nothing to repeat"),
    "too long": ("a" * 5001, "is longer than 5000 characters"),
    "very deep": ("(" * 2000 + ")" * 2000, "nested deeper than 100 groups"),
}


@pytest.mark.parametrize(("pattern", "said"), **table(BAD))
def test_a_bad_pattern_is_named(pattern, said):
    """In one line, cut where it is long."""
    with pytest.raises(UsageError, match="the pattern '") as caught:
        Searcher().search(pattern, "text")
    assert said in str(caught.value)
    assert len(str(caught.value)) < 300


WIDE = {
    "nested counts": "(?:(?:(?:a{100}){100}){100}){100}",
    "counts in a group": "(?:(?:ab){900}){900}",
    "an open count": "(?:(?:ab){900,}){900,}",
}


@pytest.mark.parametrize("pattern", WIDE.values(), ids=WIDE)
def test_repetitions_within_each_other_are_counted_before_anything_is_compiled(pattern):
    """The library writes them out, which no time limit bounds."""
    start = thread_time()
    with pytest.raises(UsageError, match="repetitions within each other of more than 200000 times"):
        Searcher().search(pattern, "a" * 1000)
    assert thread_time() - start < 0.5


def test_a_long_literal_is_searched_within_the_budget():
    """Also one that repeats itself, for which the library would build a table for minutes."""
    start = thread_time()
    searcher = Searcher()
    assert searcher.search("a" * 4999, "b" + "a" * 300_000)
    assert searcher.search("x" * 450 + "[0-9]{2}", "x" * 450 + "12")
    assert not searcher.search("ab" * 2400 + "c", "ab" * 5_000)
    assert thread_time() - start < 1


@pytest.mark.parametrize("params", [{"patterns": ["y"] * 9}, {"patterns": ["ß"] * 9, "case_sensitive": True}])
def test_the_budget_holds_for_many_literals(params):
    """They are found one by one in a long text."""
    params = params | {
        "patterns": [f"{part}{number}" for part in params["patterns"] for number in range(4000)]
    }
    start = thread_time()
    found = judged("output_omits", params, trace_of(output="x é" * 200_000))
    assert thread_time() - start < 2
    assert "was given up after 0.7 s" in found.message


WORDS = [f"é{number}" for number in range(36_000)]
LONG = "x é" * 200_000
LITERALS = {
    "graceful_failure_output": ("graceful_failure_output", {"allowed_failure_phrases": WORDS}),
    "forbidden phrases": (
        "graceful_failure_output",
        {"allowed_failure_phrases": ["x"], "forbidden_success_phrases": WORDS},
    ),
    "ask_clarifying": ("ask_clarifying_when_ambiguous", {"about_any_of": WORDS}),
    "memory_update": ("memory_update_on_correction", {"expected_memory_fact": "é1"}),
    "tool_args_match": (
        "tool_args_match",
        {"tool": "t", "match": {"args_contains": {"q[*]": "é1"}}},
    ),
    "tool_args": ("tool_args", {"tool": "t", "matchers": {"q[*]": {"contains": "é1"}}}),
    "citations": ("no_fabricated_source_or_citation", {}),
}


@pytest.mark.parametrize(("kind", "params"), **table(LITERALS))
def test_the_budget_holds_for_literals_of_every_assertion(kind, params):
    """Many literals in one text, and one literal in many texts."""
    script = [call("t", q=[LONG] * 6000), memory("write", "home", content=[LONG] * 6000)]
    cited = " ".join(f"http://x/{number}" for number in range(5000))
    output = cited if kind.startswith("no_fab") else LONG + "?"
    trace = trace_of(*script, error(), output=output, messages=[LONG])
    start = thread_time()
    found = judged(kind, params, trace)
    assert thread_time() - start < 3
    assert "was given up after 0.7 s" in found.message, found.message[:200]


FORMS = {
    "a text without an end": ("ask_clarifying_when_ambiguous", {}, "a" * 200_000),
    "white space behind a bullet": (
        "memory_recall_same_group",
        {"expected_memory_fact": "bullets"},
        f"- a{' ' * 200_000}b",
    ),
}


@pytest.mark.parametrize(("kind", "params", "output"), **table(FORMS))
def test_the_form_of_an_output_is_read_in_one_pass(kind, params, output):
    """However long its lines are."""
    start = thread_time()
    judged(kind, params, trace_of(output=output))
    assert thread_time() - start < 1

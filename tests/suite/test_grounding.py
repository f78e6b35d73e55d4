"""The output says nothing but what the tools returned."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reenact.suite.values import STOP_WORDS, bullets, content_units, paragraphs, sentence_count, stems, urls
from tests.suite.runs import call, check, result, table, trace_of

ITEM = {
    "title": "Model X released with new agent features",
    "url": "https://x.example/a",
    "n": [1, {"k": "deep text"}],
}
SCRIPT = (call("search"), result("search", result={"items": [ITEM]}, fixture_id="fx-1"))
FAILED = (call("search"), result("search", success=False, result={"items": [ITEM]}))


def test_stems_are_those_of_the_published_example():
    """Each rule once."""
    assert stems("Model X released with new agent features.") == ["model", "relea", "new", "agent", "feature"]
    assert stems("Stories using news, running boxes! THE the") == ["story", "news", "runn", "boxe"]
    assert stems("it is 12 at 2026") == ["2026"]


@given(st.text())
def test_stems_are_unique_and_carry_meaning(text):
    """Whatever the text."""
    found = stems(text)
    assert len(found) == len(set(found))
    assert all(len(stem) >= 3 and stem not in STOP_WORDS for stem in found)


def test_texts_are_taken_apart():
    """Bullets, paragraphs, sentences and addresses."""
    assert bullets("- a\n  * b \ntext\n-c\n*\td\r\n- ") == ["a", "b", "d"]
    assert bullets("---\n**bold**\n-5 degrees\n***\n-") == []
    assert paragraphs("a\nb\n\n\n c\r\n\r\nd") == ["a\nb", "c", "d"]
    assert [sentence_count(text) for text in ("", "One", "One. Two?", "v1.2")] == [1, 1, 2, 1]
    assert urls("See (https://a.example/x). And https://b.example/y?q=1 <https://a.example/x>!") == [
        "https://a.example/x",
        "https://b.example/y?q=1",
    ]
    assert urls("https://a.example/x. [it](https://b.example/y) https://c.example/z]w") == [
        "https://a.example/x.",
        "https://b.example/y",
        "https://c.example/z]w",
    ]
    mixed = "Whales:\nIntro:\n- one\n  goes on\n- two\nbeside\n\nAfter."
    assert content_units(mixed) == ["Whales:", "one\n  goes on", "two", "beside", "After."]


CLAIMS = {
    "supported": ("- Model X has agent features https://x.example/a", ["search"], "pass", ""),
    "by a nested string": ("Deep text.", ["search"], "pass", ""),
    "by the fixture's name": ("Model X has new features", ["fx-1"], "pass", ""),
    "by no source": ("Model X has new features", None, "fail", "params.allowed_sources"),
    "invented address": (
        "Model X features https://x.example/b",
        ["search"],
        "fail",
        "the address https://x.example/b",
    ),
    "part of an address": ("Model X features https://x.example", ["search"], "fail", "https://x.example"),
    "unsupported bullet": (
        *("- Model X has agent features\n- Whales sing near Iceland", ["search"], "fail"),
        "the claim 'Whales sing near Iceland'",
    ),
    "unsupported paragraph beside a bullet": (
        *("- Model X has agent features\n\nWhales sing near Iceland", ["search"], "fail"),
        "the claim 'Whales sing near Iceland'",
    ),
    "unsupported line right above a bullet": (
        *("Whales sing near Iceland.\n- Model X has agent features", ["search"], "fail", "Whales sing"),
    ),
    "a line that announces a list": ("Some finds:\n- Model X has agent features", ["search"], "pass", ""),
    "an address with more behind it": (
        *("Model X features https://x.example/a]b", ["search"], "fail", "the address https://x.example/a]b"),
    ),
    "one source": ("Model X has new features", "search", "pass", ""),
    "one word is too few of six": ("Whales love agent songs near Iceland", ["search"], "fail", "Whales"),
    "one word is enough of five": ("Whales love agent songs tonight", ["search"], "pass", ""),
    "nothing said": ("- It is so.", ["search"], "pass", ""),
    "another source": ("Model X has new features", ["fetch"], "fail", "fetch (no successful results)"),
    "no source allowed": ("Model X has new features", [], "fail", "no support"),
}


@pytest.mark.parametrize(("output", "sources", "status", "said"), **table(CLAIMS))
def test_claims_need_support(output, sources, status, said):
    """Addresses whole, claims by enough of their words; the results are the evidence."""
    params = {} if sources is None else {"allowed_sources": sources}
    named = [sources] if isinstance(sources, str) else sources
    refs = ["evt-2"] if named and {"search", "fx-1"} & set(named) else []
    check("claims_supported_by_fixtures", params, trace_of(*SCRIPT, output=output), status, refs, said)


def test_nothing_is_supported_where_no_tool_succeeded():
    """Not even an output that claims nothing."""
    trace = trace_of(*FAILED, output="- It is so.")
    params = {"allowed_sources": ["search"]}
    check("claims_supported_by_fixtures", params, trace, "fail", [], "no source answered")


def test_a_failed_result_supports_nothing():
    """Only success counts."""
    trace = trace_of(*FAILED, output="Model X has agent features")
    check("claims_supported_by_fixtures", {"allowed_sources": ["search"]}, trace, "fail", [], "Model X")


CITED = {
    "a returned address": ("See https://x.example/a.", {}, "pass", "found it so"),
    "an invented one": ("See https://x.example/zzz.", {}, "fail", "'https://x.example/zzz'"),
    "of the question": ("As in https://ask.example/q", {}, "pass", ""),
    "known beforehand": (
        "See https://docs.example/",
        {"known_sources": ["https://docs.example/"]},
        "pass",
        "",
    ),
    "a returned doi": ("doi 10.1234/sea.7", {}, "pass", ""),
    "an invented doi": ("doi 10.1234/sea.8", {}, "fail", "'10.1234/sea.8'"),
    "an invented paper": ("arXiv:2401.12345", {}, "fail", "'2401.12345'"),
    "a named source": ("According to Ocean Weekly, it rained.", {}, "pass", ""),
    "an invented name": ("According to the Daily Planet, it rained.", {}, "fail", "'Daily Planet'"),
    "a note that leads somewhere": ("It rains [1].\n\n[1] Ocean Weekly", {}, "pass", ""),
    "a note that leads nowhere": (
        "It rains [2].\n\n[1] Ocean Weekly",
        {},
        "fail",
        "the note [2], which leads nowhere",
    ),
    "a link is no note": ("It rains [1](https://x.example/a).", {}, "pass", ""),
    "no citation": ("It rains.", {}, "pass", ""),
    "another source": (
        "https://x.example/a",
        {"allowed_sources": ["fetch"]},
        "fail",
        "'https://x.example/a'",
    ),
}


@pytest.mark.parametrize(("output", "params", "status", "said"), **table(CITED))
def test_sources_are_not_made_up(output, params, status, said):
    """Addresses, identifiers, names and notes were there before the output."""
    found = {"items": [ITEM, "10.1234/sea.7", "Ocean Weekly reports rain"]}
    trace = trace_of(
        call("search"),
        result("search", result=found),
        output=output,
        messages=["What of https://ask.example/q?"],
    )
    refs = [] if params.get("allowed_sources") else ["evt-2"]
    check("no_fabricated_source_or_citation", params, trace, status, refs, said)

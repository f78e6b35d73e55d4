"""Volatile rules in their three forms: a line, a table of reenact.toml, and JSON."""

from __future__ import annotations

import re
import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reenact.errors import FormatError
from reenact.formats.record import ABSENT
from reenact.formats.volatile import VolatileRule, describe_call, read_rule, rule_codec, rules_in

LINES = {
    "a path": ("$.body.user", VolatileRule(path="$.body.user")),
    "a kind": ("llm $.body.user", VolatileRule(call="llm", path="$.body.user")),
    "a name": ("tool search $.when", VolatileRule(call="tool search", path="$.when")),
    "a mask": (
        r"$..text =~ on \d+, \$5",
        VolatileRule(path="$..text", mask=r"on \d+, \$5"),
    ),
    "the sign in a tool's name": ("tool ask$ $.a", VolatileRule(call="tool ask$", path="$.a")),
    "all, with white space": (
        "  tool  search\t$['a =~ b'] =~ x ",
        VolatileRule(call="tool search", path="$['a =~ b']", mask="x "),
    ),
}


@pytest.mark.parametrize(("line", "rule"), LINES.values(), ids=LINES)
def test_a_rule_is_read_from_a_line(line, rule) -> None:
    """As the command line and Python take it."""
    assert VolatileRule.parse(line) == rule
    assert VolatileRule.parse(str(rule)) == rule


BAD = {
    "no path": ("user", "'user' names no path"),
    "something behind the path": ("$.a b", "'b' is neither path nor mask; write PATH =~ MASK"),
    "an empty mask": ("$.a =~ ", "is neither path nor mask"),
    "no space before the mask": ("$.a =~x", "'=~x' is neither path nor mask; write PATH =~ MASK"),
    "no expression": ("$.a =~ (", "not a pattern of RE2's syntax"),
    "look-around": ("$.a =~ (?=x)", "not a pattern of RE2's syntax"),
    "a mask that finds nothing everywhere": ("$.a =~ x*", "the mask 'x*' finds nothing in every text"),
}


@pytest.mark.parametrize(("line", "message"), BAD.values(), ids=BAD)
def test_a_bad_line_is_refused(line, message) -> None:
    """With the reason."""
    with pytest.raises(FormatError, match=re.escape(message)):
        VolatileRule.parse(line)


PROJECTS = {
    "no array": ("volatile = 1", "reenact.toml: $.volatile: expected tables [[volatile]]"),
    "one table": ("[volatile]\npath = '$'", "reenact.toml: $.volatile: expected tables [[volatile]]"),
    "no path": ("[[volatile]]\nmask = 'x'", "reenact.toml: $.volatile[0].path: required, but missing"),
    "a bad path": (
        "[[volatile]]\npath = '$.a'\n[[volatile]]\npath = 'a'",
        "reenact.toml: $.volatile[1]: a path begins with $",
    ),
    "a wrong type": ("[[volatile]]\npath = 1", "reenact.toml: $.volatile[0].path: expected `str`"),
    "an unknown key": (
        "[[volatile]]\npath = '$.a'\nmaks = 'x'",
        "reenact.toml: $.volatile[0]: 'maks' is unknown",
    ),
}


@pytest.mark.parametrize(("text", "message"), PROJECTS.values(), ids=PROJECTS)
def test_a_bad_table_is_refused_with_its_place(text, message) -> None:
    """The file, the number of the table, the reason."""
    with pytest.raises(FormatError) as caught:
        rules_in(tomllib.loads(text), file="reenact.toml")
    assert str(caught.value).startswith(message)


texts = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20)


@given(
    st.sampled_from(["$.a", "$..id", '$["a\'b"]', "$['\"']"]),
    st.one_of(st.none(), texts.map(re.escape)),
    st.one_of(st.none(), texts),
)
def test_what_is_pasted_is_read_again(path, mask, call) -> None:
    """TOML's quoting holds for every text, and JSON's does anyway."""
    rule = VolatileRule(
        path=path, mask=mask if mask is not None else ABSENT, call=call if call is not None else ABSENT
    )
    [table] = tomllib.loads(rule.to_toml() + "\n" + "[test]\n")["volatile"]
    assert rule_codec.from_json(table) == rule
    if call is None and mask is not None:
        assert VolatileRule.parse(str(rule)) == rule
    assert read_rule(rule_codec.to_json(VolatileRule(path=path))) == VolatileRule(path=path)


def test_rules_have_words_for_all_calls() -> None:
    """The same words as show and record print."""
    assert describe_call("llm_request", "") == "llm"
    assert describe_call("tool_call", "search") == "tool search"
    assert describe_call("nondeterministic", "network/GET http://a/b") == "network GET http://a/b"
    assert describe_call("nondeterministic", "clock/time.time") == "clock time.time"
    assert describe_call("state_mutation", "") == "state"


@pytest.mark.parametrize(
    "rule",
    [
        *("$", "llm $", "$..*", "$[*]", "tool search $.*", "$ =~ (?s).+", "llm $.a =~ (?s).*x?.+"),
        *("$ =~ .+", r"$ =~ \w+", r"llm $..* =~ \S+", r"$.* =~ \b[a-z]+", "$[*] =~ [A-Za-z]"),
    ],
)
def test_a_rule_as_wide_as_everything_is_refused(rule):
    """A replay under it would prove nothing."""
    with pytest.raises(FormatError, match="name the part that may differ"):
        VolatileRule.parse(rule)


@pytest.mark.parametrize(
    "rule", [r"$ =~ \d+", r"$..* =~ [0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", r"$.user =~ \w+"]
)
def test_a_mask_of_numbers_may_stand_everywhere(rule):
    """The words around them are compared."""
    assert str(VolatileRule.parse(rule)) == rule

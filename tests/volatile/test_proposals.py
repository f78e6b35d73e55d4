"""Rules made from differences."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reenact.comparing.differences import differences
from reenact.volatile.masking import Masking
from reenact.volatile.shapes import any_item, list_covering_rules

COVERED: dict[str, tuple[Any, Any, list[str]]] = {
    "a number": ({"a": [1]}, {"a": [2]}, ["tool x $.a[*]"]),
    "a word, only there": ({"a": [{"b": "x"}]}, {"a": [{"b": "y"}]}, ["tool x $.a[0].b"]),
    "an identifier": (
        {"a": [{"id": "msg_a1b2c3d4"}]},
        {"a": [{"id": "msg_e5f6a7b8"}]},
        ["tool x $.a[*].id"],
    ),
    "a member more": ({}, {"a": 1}, ["tool x $.a"]),
    "another type": ({"a": None}, {"a": {"b": 1}}, ["tool x $.a"]),
    "a line": ({"a": "b\nMood: d e"}, {"a": "b\nMood: f"}, ["tool x $.a =~ (?m)^Mood: .*$"]),
}


@pytest.mark.parametrize(("one", "other", "rules"), COVERED.values(), ids=COVERED)
def test_a_volatile_place_gets_the_narrowest_rule(one, other, rules) -> None:
    """A mask where a shape is known, any index where the value says what it is, else this place alone."""
    [place] = differences(one, other)
    assert [str(rule) for rule in list_covering_rules("tool x", place)] == rules


def test_an_item_more_or_less_has_no_rule() -> None:
    """Leaving it out would leave a hole that the other does not have."""
    [place] = differences([1], [1, 2])
    assert list_covering_rules("llm", place) == ()


def test_a_network_call_is_named_without_its_address() -> None:
    """Which may differ as well."""
    [place] = differences({"url": "http://a/1794729709"}, {"url": "http://a/1794729710"})
    assert [str(rule) for rule in list_covering_rules("network GET http://a/1794729709", place)] == [
        r"network $.url =~ http://a/\d{10,}(?:\.\d+)?"
    ]


def test_any_item() -> None:
    """Indexes become wildcards, names stay."""
    assert any_item('$.a[0]["b c"][12].d') == '$.a[*]["b c"][*].d'


values = st.recursive(
    st.one_of(
        st.none(), st.integers(0, 3), st.sampled_from(["x", "y", "at 9:00", "at 9:01", "a\nb: 1", "a\nb: c"])
    ),
    lambda inner: st.one_of(
        st.lists(inner, min_size=2, max_size=2),
        st.dictionaries(st.sampled_from(["a", "b c"]), inner, max_size=2),
    ),
    max_leaves=6,
)


@given(values, values)
def test_covering_rules_cover(one, other) -> None:
    """Under the rules for all its differences a request is equal to the other."""
    rules = [rule for place in differences(one, other) for rule in list_covering_rules("tool x", place)]
    masking = Masking(rules)
    assert masking.mask("tool_call", "x", one) == masking.mask("tool_call", "x", other)
    assert masking.differences("tool_call", "x", one, other) == ()

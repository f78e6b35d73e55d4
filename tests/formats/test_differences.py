"""Two JSON values differ at exactly the places named."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from reenact.comparing.differences import MAX_DIFFERENCES, differences

CASES: dict[str, tuple[Any, Any, list[str]]] = {
    "equal": ({"a": [1, 2]}, {"a": [1, 2]}, []),
    "order of members": ({"a": 1, "b": 2}, {"b": 2, "a": 1}, []),
    "scalar": (1, 2, ["$: expected 1, observed 2"]),
    "member": ({"a": {"b": 1}}, {"a": {"b": 2}}, ["$.a.b: expected 1, observed 2"]),
    "odd name": ({"a b": 1}, {"a b": 2}, ['$["a b"]: expected 1, observed 2']),
    "item": ([1, 2, 3], [1, 5, 3], ["$[1]: expected 2, observed 5"]),
    "longer": ([1], [1, 2], ["$[1]: observed 2, expected nothing"]),
    "shorter": ([1, 2], [1], ["$[1]: expected 2, observed nothing"]),
    "member more": ({}, {"a": None}, ["$.a: observed null, expected nothing"]),
    "member less": ({"a": None}, {}, ["$.a: expected null, observed nothing"]),
    "every further place": (
        {"a": 1, "b": 2, "c": 3},
        {"a": 1, "b": 3, "c": 4},
        ["$.b: expected 2, observed 3", "$.c: expected 3, observed 4"],
    ),
    "one is not true": ([1], [True], ["$[0]: expected 1, observed true"]),
    "one is not one point zero": ([1], [1.0], ["$[0]: expected 1, observed 1.0"]),
    "other kinds": ({"a": [1]}, {"a": {"0": 1}}, ['$.a: expected [1], observed {"0":1}']),
    "line breaks stay on the line": ("a\nb", "a\u2028b", [r'$: expected "a\nb", observed "a\u2028b"']),
}


@pytest.mark.parametrize("name", CASES)
def test_each_place_is_named(name: str) -> None:
    """Path, expected and observed of every difference, one line each."""
    expected, observed, described = CASES[name]
    assert [place.describe() for place in differences(expected, observed)] == described


def test_long_values_are_cut() -> None:
    """A line stays readable whatever the values are."""
    (place,) = differences("a" * 10_000, "b" * 10_000)
    assert len(place.describe()) < 300
    assert place.observed == "b" * 10_000


def test_the_difference_in_a_long_text_is_shown() -> None:
    """Two long texts that differ late are shown where they differ, not where they agree."""
    (place,) = differences("a" * 5_000 + "left" + "b" * 50, "a" * 5_000 + "right" + "b" * 50)
    assert "left" in place.describe()
    assert "right" in place.describe()
    assert len(place.describe()) < 300


def test_there_is_a_limit() -> None:
    """Two values with nothing in common are not told in full."""
    assert len(differences(list(range(1000)), list(range(1000, 2000)))) == MAX_DIFFERENCES


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.text("ab", max_size=2),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("xy", max_size=1), inner, max_size=3),
    max_leaves=10,
)


@given(json_values)
def test_a_value_does_not_differ_from_itself(value: Any) -> None:
    """None means equal."""
    assert differences(value, copy.deepcopy(value)) == ()


@given(json_values, json_values)
def test_different_values_differ_somewhere(left: Any, right: Any) -> None:
    """Equal means none; and both directions name the same places."""
    assume(left != right)
    places = [place.path for place in differences(left, right)]
    assert places
    assert places == [place.path for place in differences(right, left)]

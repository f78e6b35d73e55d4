"""Patterns of JSON paths: what is one, what it means, and how it is written."""

from __future__ import annotations

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from reenact.canonical import child_path
from reenact.errors import FormatError
from reenact.formats.json_paths import PathPattern, Wildcard

MEANT = {
    "the whole": ("$", [()], [("a",), (0,)]),
    "a member": ("$.a", [("a",)], [(), ("b",), ("a", "a"), (0,)]),
    "an item": ("$[1]", [(1,)], [(0,), ("1",), (1, 1)]),
    "a quoted member": ('$["a b"]["c\\"d"]', [("a b", 'c"d')], [("a b",)]),
    "a member in single quotes": ("$['a.b']", [("a.b",)], [("a", "b")]),
    "a number as a name": ("$.1", [("1",)], [(1,)]),
    "every item": ("$.a[*].b", [("a", 0, "b"), ("a", 7, "b"), ("a", "x", "b")], [("a", "b")]),
    "every member": ("$.*.id", [("a", "id"), (3, "id")], [("id",), ("a", "b", "id")]),
    "any depth": ("$..id", [("id",), ("a", "id"), ("a", 0, "id")], [(), ("id", "a")]),
    "any depth in the middle": ("$.a..[0]", [("a", 0), ("a", "b", "c", 0)], [(0,), ("a", "b", 1)]),
    "everything below": ("$..*", [("a",), ("a", 0)], [()]),
    "twice any depth": ("$..a..b", [("a", "b"), ("x", "a", "y", "b")], [("b",), ("b", "a")]),
    "a dash in a name": ("$.x-id", [("x-id",)], [("x",)]),
}  # fmt: skip


@pytest.mark.parametrize(("text", "meant", "others"), MEANT.values(), ids=MEANT)
def test_a_pattern_means_these_places_and_no_others(text, meant, others) -> None:
    """Each form of the grammar."""
    pattern = PathPattern.parse(text)
    assert all(pattern.matches(place) for place in meant)
    assert not any(pattern.matches(place) for place in others)


BAD = {
    "nothing": ("", "a path begins with $, not with ''"),
    "no beginning": ("a.b", "a path begins with $, not with 'a'"),
    "no name": ("$.", "not a path at '.'"),
    "an end in any depth": ("$.a..", "not a path at '..'"),
    "three dots": ("$...a", "not a path at '...a'"),
    "an open bracket": ("$.a[", "not a path at '['"),
    "an index below zero": ("$[-1]", "not a path at '[-1]'"),
    "a filter": ("$.a[?(@.b)]", "not a path at '[?(@.b)]'"),
    "white space": ("$.a b", "not a path at ' b'"),
    "a bad escape": ('$["\\q"]', "not a quoted name"),
}


@pytest.mark.parametrize(("text", "message"), BAD.values(), ids=BAD)
def test_what_is_no_pattern_is_refused(text, message) -> None:
    """With the part that is none."""
    with pytest.raises(FormatError, match=re.escape(message)):
        PathPattern.parse(text)


names = st.one_of(st.sampled_from(["a", "b", "id", "x-y", "7"]), st.text(max_size=4))
keys = st.one_of(names, st.integers(0, 3))
places = st.lists(keys, max_size=5).map(tuple)
steps = st.lists(st.one_of(keys, st.just(Wildcard.ANY)), max_size=4)


@st.composite
def patterns(draw):
    """Any pattern; ``..`` stands before a step, as the grammar has it."""
    found = []
    for step in draw(steps):
        found += [Wildcard.DEPTH] if draw(st.booleans()) else []
        found.append(step)
    return PathPattern(found)


def spelled(step):
    """One step as a regular expression over places written one key per line."""
    return "[si][^\n]*\n" if step is Wildcard.ANY else re.escape(line(step))


def line(key):
    return f"{'i' if isinstance(key, int) else 's'}{str(key).encode().hex()}\n"


@given(patterns(), places)
def test_matching_is_that_of_regular_expressions(pattern, place) -> None:
    """An independent reading of the same pattern gives the same answer."""
    depth = "(?:[si][^\n]*\n)*"
    expression = "".join(depth if step is Wildcard.DEPTH else spelled(step) for step in pattern.steps)
    assert pattern.matches(place) == bool(re.fullmatch(expression, "".join(map(line, place))))


@given(patterns())
def test_a_pattern_survives_its_text(pattern) -> None:
    """What is written is read as the same."""
    assert PathPattern.parse(str(pattern)).steps == pattern.steps


@given(places)
@example(("A·",))  # Python lets a name go on with that dot
def test_the_path_of_a_place_is_a_pattern_that_means_it(place) -> None:
    """What divergences print can be pasted."""
    path = "$"
    for key in place:
        path = child_path(path, key)
    assert PathPattern.parse(path).matches(place)


@given(st.text(alphabet="$.[]*'\"ab0 ", max_size=12))
def test_any_text_is_a_pattern_or_refused(text) -> None:
    """With our own error and no other."""
    try:
        pattern = PathPattern.parse(text)
    except FormatError:
        return
    assert PathPattern.parse(str(pattern)).steps == pattern.steps

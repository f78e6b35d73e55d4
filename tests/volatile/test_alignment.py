"""Which call of one run is which of another."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reenact.volatile.alignment import AlignedCall, Alignment, align_calls


def calls(*told: tuple[str, str, Any]) -> list[AlignedCall]:
    """A run: lane, tool and request of each call."""
    return [
        AlignedCall(number, lane, "tool_call", name, what)
        for number, (lane, name, what) in enumerate(told, 2)
    ]


def nested(*told: tuple[str, str, Any]) -> list[AlignedCall]:
    """A run in which every second call was made inside the one before it."""
    made = calls(*told)
    return [call._replace(parent_seq=call.seq - 1 if call.seq % 2 else None) for call in made]


def said(found: Alignment) -> list[tuple[Any, Any]]:
    return [(one.request, other.request) for one, other in found.pairs]


def test_a_lane_is_aligned_in_order() -> None:
    """By kind and name, whatever was asked."""
    one = calls(("0", "a", 1), ("0", "b", 2), ("0", "a", 3))
    other = calls(("0", "a", 10), ("0", "b", 20), ("0", "a", 30))
    assert said(align_calls(one, other)) == [(1, 10), (2, 20), (3, 30)]


def test_a_call_too_many_is_named_and_the_rest_stays_aligned() -> None:
    """One inserted call does not shift the others."""
    one = calls(("0", "a", 1), ("0", "c", 3))
    other = calls(("0", "a", 1), ("0", "b", 2), ("0", "c", 3))
    found = align_calls(one, other)
    assert said(found) == [(1, 1), (3, 3)]
    assert [call.request for call in found.only_in_other] == [2]
    assert [call.request for call in align_calls(other, one).only_in_one] == [2]


@pytest.mark.slow
def test_a_long_lane_is_aligned_in_time() -> None:
    """One call too many among many alike ones."""
    one = calls(*[("0", "a", number) for number in range(20_000)])
    other = calls(*[("0", "a", 0)], *[("0", "b", 0)], *[("0", "a", number) for number in range(1, 20_000)])
    found = align_calls(one, other)
    assert [call.name for call in found.only_in_other] == ["b"]
    assert all(a == b for a, b in said(found))


def test_siblings_that_changed_places_are_recognised() -> None:
    """Tasks may be started in another order; what they do inside follows them."""
    one = nested(("0.0", "a", "x"), ("0.0/1", "b", 1), ("0.1", "a", "y"), ("0.1/1", "b", 2))
    other = nested(("0.0", "a", "y"), ("0.0/1", "b", 20), ("0.1", "a", "x"), ("0.1/1", "b", 10))
    assert sorted(said(align_calls(one, other)), key=str) == [("x", "x"), ("y", "y"), (1, 10), (2, 20)]


def test_a_lane_in_no_order_is_aligned_by_likeness() -> None:
    """Equal ones first, then the likest."""
    one = calls(("0~", "a", "red 1"), ("0~", "a", "blue 1"), ("0~", "a", "same"))
    other = calls(("0~", "a", "same"), ("0~", "a", "blue 2"), ("0~", "a", "red 2"))
    assert said(align_calls(one, other)) == [("same", "same"), ("blue 1", "blue 2"), ("red 1", "red 2")]


lanes = st.sampled_from(["0", "0.0", "0.1", "0.1.0", "0/1", "0~", "0.0~"])
runs = st.lists(st.tuples(lanes, st.sampled_from("ab"), st.integers(0, 2)), max_size=12).map(
    lambda told: calls(*told)
)


@given(runs, runs)
def test_every_call_is_accounted_for_once(one, other) -> None:
    """In a pair of its kind, or as one that only its run made."""
    found = align_calls(one, other)
    assert sorted([a.seq for a, _ in found.pairs] + [call.seq for call in found.only_in_one]) == [
        call.seq for call in one
    ]
    assert sorted([b.seq for _, b in found.pairs] + [call.seq for call in found.only_in_other]) == [
        call.seq for call in other
    ]
    assert all(a.kind == b.kind for a, b in found.pairs)


@given(runs)
def test_a_run_is_aligned_with_itself(run) -> None:
    """Call by call, with nothing left."""
    found = align_calls(run, run)
    assert (found.only_in_one, found.only_in_other) == ([], [])
    assert all(a.request == b.request for a, b in found.pairs)

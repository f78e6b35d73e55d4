"""Masks for the parts of texts that differ from run to run."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reenact.formats.pattern import Pattern
from reenact.volatile.shapes import Masks, line_masks_for, masks_for

STRONG = {
    "a date": ("It is 2026-11-15.", "It is 2026-11-16.", (r"It is \d{4}-\d\d-\d\d",)),
    "a time": ("at 2026-11-15T10:00:00Z", "at 2026-11-15T10:00:01.25+01:00", None),
    "a written time": (
        "now: Saturday, November 15, 2026 at 9:03:04 AM",
        "now: Sunday, November 16, 2026 at 10:15:00 PM",
        None,
    ),
    "the time as date says it": ("Sun Nov 15 11:54:33 UTC 2026 ok", "Mon Nov 16 01:02:03 UTC 2026 ok", None),
    "a day and a month": ("on 3 May 2026", "on 14 May 2026", None),
    "a clock": ("started 9:00", "started 10:30 PM", None),
    "a uuid": (
        "id 0e98a0e4-32d2-4e4a-a0a1-0b5f0f4d8f11!",
        "id 5b1f7a10-9a52-4a3a-8d0c-4d1c9a6d2e55!",
        (r"id [0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}",),
    ),
    "a uuid behind a prefix": (
        "msg_01a1dfe4-c70c-7be0-97c6-2510fa00ef5b",
        "msg_01a1dfe4-d435-72d2-b121-23eb51302b00",
        (),
    ),
    "a uuid behind a prefix, in a text": (
        "call at_01a1dfe4-c70c-7be0-97c6-2510fa00ef5b again",
        "call at_01a1dfe4-d435-72d2-b121-23eb51302b00 again",
        (r"call [\w-]{6,}",),
    ),
    "a duration": ("Wall time: 0.0292 seconds", "Wall time: 12 seconds", None),
    "a temporary path": ("in /tmp/tmpab12/x.txt (1 file)", "in /tmp/tmpzz99/x.txt (1 file)", None),
    "a moment": ("t=1794729709.25;", "t=1794729710;", (r"t=\d{10,}(?:\.\d+)?",)),
    "an identifier": ("call_a1b2c3d4e5 done", "call_ffff0000aa done", (r"(?m)^[\w-]{6,} done$",)),
    "an identifier among digits": ("id 12345678 x", "id 1a2b3c4d x", (r"id [\w-]{6,}",)),
    "two of them": (
        "2026-11-15, took 3 ms",
        "2026-11-16, took 4 ms",
        (r"(?m)^\d{4}-\d\d-\d\d", r", took \d+(?:\.\d+)? ?(?:ns|µs|us|ms|s|seconds?)"),
    ),
    "on one of many lines": ("a\nb 9:00\nc", "a\nb 9:01\nc", None),
    "nothing else": ("2026-11-15", "2026-11-16", ()),
}  # fmt: skip


@pytest.mark.parametrize(("one", "other", "patterns"), STRONG.values(), ids=STRONG)
def test_a_known_shape_is_masked_in_its_context(one, other, patterns) -> None:
    """What is left is equal; what was not different is still compared."""
    found = masks_for(one, other)
    assert found is not None
    assert found.is_strong
    if patterns is not None:
        assert found.patterns == patterns


def test_only_what_differs_is_masked() -> None:
    """Another date in the same text, in another context, counts."""
    found = masks_for("due 2026-01-01, today 2026-11-15", "due 2026-01-01, today 2026-11-16")
    assert found == Masks((r", today \d{4}-\d\d-\d\d",), is_strong=True)


WEAK = {
    "a number behind words": ("page 1 of it", "page 22 of it", (r"page -?\d+(?:[.,]\d+)*",)),
    "a number before words": ("3 files", "4 files", (r"(?m)^-?\d+(?:[.,]\d+)* files$",)),
}


@pytest.mark.parametrize(("one", "other", "patterns"), WEAK.values(), ids=WEAK)
def test_a_plain_number_may_be_anything(one, other, patterns) -> None:
    """It is masked, in its context, where it is known to be volatile."""
    assert masks_for(one, other) == Masks(patterns, is_strong=False)


OTHERS = {
    "another file": ("/home/ada/a.txt", "/home/ada/b.txt"),
    "a word": ("lamp", "desk"),
    "a word beside a date": ("Oslo 2026-11-15", "Bergen 2026-11-15"),
    "one more": ("9:00", "9:00 9:01"),
    "a model": ("gpt-4o-mini", "gpt-5-mini"),
    "a date and a word": ("2026-11-15", "tomorrow"),
}


@pytest.mark.parametrize(("one", "other"), OTHERS.values(), ids=OTHERS)
def test_other_differences_have_no_strong_mask(one, other) -> None:
    """They may be the question itself."""
    found = masks_for(one, other)
    assert found is None or not found.is_strong


def test_the_rest_of_a_line() -> None:
    """Where no shape is known, what lines begin with together stays."""
    found = line_masks_for("You help.\nMood: cheerful today\nBe kind.", "You help.\nMood: gloomy\nBe kind.")
    assert found == Masks(("(?m)^Mood: .*$",), is_strong=False)
    assert line_masks_for("Mood: a", "Mood: b") is None
    assert line_masks_for("x\nab", "x\ncd") is None
    assert line_masks_for("x\nab: c", "x\nab: c\ny") is None


@pytest.mark.parametrize(
    "piece", ["a-", "a_", "1,", "1.", "/a", "a1", "12:30:", "2026-11-", "Nov 1 ", "aaaaaaaa"]
)
def test_any_text_is_looked_through_in_time(piece) -> None:
    """Nothing is tried again and again, however long the text."""
    one = piece * 30_000
    assert masks_for(f"{one} x", f"{one} y") is None


pieces = st.lists(
    st.one_of(
        st.sampled_from(["at ", "in ", ", ", "\n", " ", "ok", "(", ".*"]),
        st.datetimes().map(str),
        st.uuids().map(str),
        st.integers(0, 10**12).map(str),
        st.from_regex(r"\A/tmp/[a-z]{3}/[a-z]{3}\Z"),
        st.from_regex(r"\A[0-9]{1,3}\.[0-9]{2} ms\Z"),
    ),
    max_size=6,
).map("".join)


@given(pieces, pieces)
def test_masks_keep_their_promise(one, other) -> None:
    """Whatever is proposed is RE2, finds something, and makes the two texts equal."""
    for found in (masks_for(one, other), line_masks_for(one, other)):
        if found is None or one == other:
            continue
        left, right = one, other
        for pattern in map(Pattern, found.patterns):
            assert pattern.search([""]) == [False]
            left, right = pattern.replace(left, "#"), pattern.replace(right, "#")
        assert left == right or found.patterns == ()

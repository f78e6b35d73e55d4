"""Edits of a text and positions in it."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from reenact.redaction.edits import Edit, apply, move_cuts, move_spans, narrow_edit, sort_edits

TEXT = "one two three four"


def test_edits_are_made_from_left_to_right() -> None:
    """Each is meant for the text as it was."""
    assert apply(TEXT, [Edit(0, 3, "1"), Edit(8, 13, "drei")]) == "1 two drei four"


def test_of_edits_that_overlap_the_first_and_longest_is_made() -> None:
    """A token found by two rules goes whole."""
    edits = [Edit(4, 7, "a"), Edit(4, 13, "b"), Edit(9, 18, "c")]
    assert sort_edits(edits) == [Edit(4, 13, "b")]


def test_kept_spans_stop_edits() -> None:
    """What touches one is left out, what ends beside it is not."""
    edits = [Edit(0, 4, "a"), Edit(3, 5, "b"), Edit(5, 6, "c"), Edit(7, 8, "d")]
    assert sort_edits(edits, kept=[(4, 7)]) == [Edit(0, 4, "a"), Edit(7, 8, "d")]


def test_positions_move_with_the_text_around_them() -> None:
    """One inside an edit moves behind what replaced it."""
    edits = [Edit(4, 7, "2"), Edit(8, 13, "a longer one")]
    assert move_cuts([0, 4, 5, 7, 8, 10, 13, 18], edits) == [0, 4, 5, 5, 6, 18, 18, 23]
    assert move_spans([(0, 3), (14, 18)], edits) == [(0, 3), (19, 23)]


@settings(deadline=None)
@given(old=st.text("ab", max_size=8), new=st.text("ab", max_size=8), before=st.text("ab", max_size=3))
def test_a_narrowed_edit_does_the_same(old: str, new: str, before: str) -> None:
    """Its ends are the first and the last difference."""
    edit = narrow_edit(len(before), old, new)
    assert apply(before + old, [edit]) == before + new
    assert old != new or edit.start == edit.end

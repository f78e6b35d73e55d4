"""The values a script is made of."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reenact.errors import UsageError
from reenact.testing import Reply
from reenact.testing.turns import cut


@given(text=st.text(), pieces=st.none() | st.integers(1, 50))
def test_pieces_join_to_the_text(text: str, pieces: int | None) -> None:
    """However a text is cut, nothing is lost and no piece is empty."""
    result = cut(text, pieces)
    assert "".join(result) == text
    assert all(result)


@given(text=st.text(min_size=1), pieces=st.integers(1, 50))
def test_a_number_of_pieces_is_kept_to(text: str, pieces: int) -> None:
    """A text long enough comes in exactly that many pieces, of lengths that differ by one at most."""
    result = cut(text, pieces)
    assert len(result) == min(pieces, len(text))
    assert max(map(len, result)) - min(map(len, result)) <= 1


def test_a_text_is_cut_into_words_by_default() -> None:
    """White space goes with the word behind it."""
    assert Reply("One  two\nthree ").text_pieces == ("One", "  two", "\nthree", " ")


def test_explicit_pieces_are_the_text() -> None:
    """Pieces given one by one need no text beside them."""
    reply = Reply(chunks=["sk-", "", "live"])
    assert reply.text == "sk-live"
    assert reply.text_pieces == ("sk-", "", "live")


def test_pieces_that_spell_something_else_are_refused() -> None:
    """A text and pieces that contradict it are a mistake in the script."""
    with pytest.raises(UsageError, match="give one of the two"):
        Reply("yes", chunks=["n", "o"])

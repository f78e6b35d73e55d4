"""Words of what was removed are taken out of what stays, however many there are."""

import time

from hypothesis import given
from hypothesis import strategies as st

from reenact.check import publishing

texts = st.text("ab ", max_size=60)
words = st.sets(st.text("ab ", min_size=publishing.MIN_WORD_CHARS, max_size=12), max_size=12)


@given(words, texts)
def test_both_ways_to_find_words_find_the_same(words, text):
    """The first word, and of several that begin there the longest."""
    if words:
        assert [*publishing._finder_by_prefix(words)(text)] == [*publishing._finder_by_automaton(words)(text)]


def test_capitals_hide_no_word():
    """A summary begins its sentences with capitals; the letters around a word keep their places."""
    masked = publishing.masker(["marmalade", "ÖRTLICHES", "SearchTool"], ["searchtool"])
    assert masked("İ: Marmalade, MARMALADE of örtliches; SearchTool") == "İ: …, … of …; SearchTool"


def test_a_million_words_are_masked_in_bounded_time():
    """An automaton of so many takes minutes."""
    began = time.process_time()
    masked = publishing.masker((f"$.params.key{number}" for number in range(1_000_000)), ["$.params.key7"])
    assert masked("is $.params.key999999 or $.params.key7 x") == "is … or $.params.key7 x"
    assert time.process_time() - began < 20

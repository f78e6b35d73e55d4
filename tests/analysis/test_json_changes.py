"""Where two JSON values differ, lists aligned."""

import json

from hypothesis import given
from hypothesis import strategies as st

from reenact.comparing.json_changes import JsonChange, _word_changes, json_changes

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=2), inner, max_size=3),
    max_leaves=12,
)


@given(JSON)
def test_a_value_does_not_differ_from_itself(value):
    """Nowhere."""
    assert json_changes(value, value) == []


@given(JSON, JSON)
def test_only_equal_values_do_not_differ(left, right):
    """Equal is what is written alike, but for the order of members: true is not 1."""
    texts = [json.dumps(value, sort_keys=True) for value in (left, right)]
    assert (json_changes(left, right) == []) == (texts[0] == texts[1])


@given(st.lists(JSON, max_size=6), JSON, st.data())
def test_one_item_more_is_one_change(items, more, data):
    """Wherever it is put."""
    place = data.draw(st.integers(0, len(items)))
    [change] = json_changes(items, [*items[:place], more, *items[place:]])
    assert change.right == more


def test_paths_lead_to_the_place():
    """Members that one side lacks are left out there."""
    changes = json_changes({"a": [1, {"b": 2}], "c": 1}, {"a": [1, {"b": 3}], "d e": 1})
    assert changes == [
        JsonChange("$.a[1].b", 2, 3),
        JsonChange("$.c", left=1),
        JsonChange('$["d e"]', right=1),
    ]


def test_texts_of_several_lines_have_a_text_diff():
    """As diff -u would mark them."""
    [change] = json_changes("one\ntwo\nthree", "one\n2\nthree")
    assert change.text_diff() == ["@@ -1,3 +1,3 @@", " one", "-two", "+2", " three"]
    assert JsonChange("$", "one", "two").text_diff() == []
    assert JsonChange("$", 1, "a\nb").text_diff() == []


def test_long_text_diffs_are_cut():
    """A screen is enough."""
    change = JsonChange("$", "\n".join("a" * 99), "\n".join("b" * 99))
    assert len(change.text_diff()) == 25
    assert change.text_diff()[-1] == "…"


PROMPT = "You are a helpful assistant. " * 20


def test_words_that_differ_stand_in_a_window():
    """However long the texts are, and wherever they differ; what is equal between two changes is cut."""
    change = JsonChange(
        "$", f"{PROMPT}Be brief. {PROMPT}Answer in English.", f"{PROMPT}Be kind. {PROMPT}Answer in French."
    )
    assert change.word_diff() == [
        (" ", "…u are a helpful assistant. Be "),
        ("-", "brief"),
        ("+", "kind"),
        (" ", ". You are a helpful assistant.… helpful assistant. Answer in "),
        ("-", "English"),
        ("+", "French"),
        (" ", "."),
    ]


@given(st.text("ab .\n", max_size=80), st.text("ab .\n", max_size=80))
def test_a_word_diff_is_both_texts(left, right):
    """What the pieces of one side and of both say, put together, is that side."""
    pieces = list(_word_changes(left, right))
    assert "".join(text for mark, text in pieces if mark != "+") == left
    assert "".join(text for mark, text in pieces if mark != "-") == right


def test_only_texts_have_a_word_diff():
    """Numbers have no words."""
    assert JsonChange("$", 1, 2).word_diff() == []
    assert JsonChange("$", "a").word_diff() == []

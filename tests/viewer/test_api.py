"""The answers behind the page, asked directly."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import reenact
from reenact.analysis.artifact import open_artifact
from reenact.analysis.compare import Comparison
from reenact.viewer.api import LIST_ITEMS, TEXT_CHARACTERS, Api, Bounded, StepFilter, StepSearch
from reenact.viewer.conversation import read_turns
from reenact.viewer.shelf import Shelf
from reenact.viewer.static import static_files
from tests.formats import GOLDEN, ROOT
from tests.viewer import recordings


def test_the_how_to_lists_the_keys():
    """As the viewer's own help does."""
    keys = re.findall(r'^  \["(.*?)", "', static_files()["keys.js"].decode(), re.MULTILINE)
    page = (ROOT / "docs" / "howto" / "web-viewer.md").read_text()
    cells = re.findall(r"^\| (`.*?) \|", page, re.MULTILINE)
    listed = [" ".join(re.findall(r"`(.*?)`", cell)) for cell in cells]
    assert listed == [" ".join(key.split()) for key in keys]


# Comparing


def test_words_that_differ_are_marked_in_short_texts_too(tmp_path):
    """Where there are several words to find them among."""

    @reenact.tool
    def say(text):
        return text

    for name, text in (("a", "the quick fox"), ("b", "the slow fox")):
        with reenact.capture(tmp_path / name):
            say(text)
    with open_artifact(tmp_path / "a") as left, open_artifact(tmp_path / "b") as right:
        answer = Api(Shelf([tmp_path])).diff_change(Comparison(left, right), {"place": "0"})
    assert [tuple(piece) for piece in answer["words"]["$.asked.arguments.text"]] == [
        (" ", "the "), ("-", "quick"), ("+", "slow"), (" ", " fox"),
    ]  # fmt: skip


# The shelf


def test_a_shelf_names_runs_by_their_place(runs):
    """In a folder by what is below it; receipts are not runs."""
    assert sorted(Shelf([runs]).ids) == ["hostile", "research", "support", "support-changed"]


def test_a_single_run_is_named_by_itself(runs):
    """As its folder is called."""
    assert Shelf([runs / "support"]).ids == ["support"]


def test_runs_of_the_same_name_are_told_apart(tmp_path):
    """By the folders they are in."""
    for folder in ("monday", "tuesday"):
        recordings.long_run(tmp_path / folder / "run", 1)
    shelf = Shelf([tmp_path / "monday" / "run", tmp_path / "tuesday"])
    assert sorted(shelf.ids) == ["monday/run", "tuesday/run"]


def test_links_are_not_followed(runs, tmp_path):
    """A folder shows what is in it, and nothing it points to."""
    (tmp_path / "inside").mkdir()
    (tmp_path / "inside" / "elsewhere").symlink_to(runs)
    (tmp_path / "inside" / "run").symlink_to(runs / "support")
    (tmp_path / "inside" / "trace.json").symlink_to(GOLDEN / "trace")
    assert Shelf([tmp_path / "inside"]).ids == []


def test_an_unreadable_run_is_listed_with_its_problem(tmp_path):
    """The others are not lost with it."""
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "manifest.json").write_text("{")
    shelf = Shelf([tmp_path])
    line = shelf.line("broken")
    assert line.status == "unreadable"
    assert "broken" in line.problem


def test_a_run_recorded_again_is_another(tmp_path):
    """What stands in the place now is shown."""
    recordings.long_run(tmp_path / "run", 1)
    shelf = Shelf([tmp_path])
    with shelf.open("run") as artifact:
        assert len(artifact.steps(0, 10)) == 1
    (tmp_path / "run").rename(tmp_path / "old")
    recordings.long_run(tmp_path / "run", 3)
    with shelf.open("run") as artifact:
        assert len(artifact.steps(0, 10)) == 3
    shelf.close()


# Conversation


def roles(path):
    with open_artifact(path) as artifact:
        return [turn.role for turn in read_turns(artifact, 0, 100).rows]


def test_a_conversation_is_read_in_pages(runs):
    """Page by page the same turns as at once."""
    with open_artifact(runs / "support") as artifact:
        whole = read_turns(artifact, 0, 100)
        pages, place = [], 0
        while place is not None:
            page = read_turns(artifact, place, 1)
            pages += page.rows
            place = page.next
    assert pages == whole.rows
    assert whole.next is None


def test_a_log_without_model_traffic_is_told_by_its_tools():
    """Calls and results are all that was said."""
    assert roles(GOLDEN / "replay_log" / "current.jsonl")[:2] == ["assistant", "tool"]


# Search

FOUND = {
    "all": (StepFilter(), 15),
    "a kind": (StepFilter(kind="state"), 3),
    "an outcome": (StepFilter(state="error"), 2),
    "words": (StepFilter(words="coffee"), 1),
    "words of a result": (StepFilter(words="short answers"), 2),
    "terms": (StepFilter(words="tool:fetch !page=4"), 10),
    "a quotation being typed": (StepFilter(words='"short'), 0),
    "what looks like a term": (StepFilter(words="topic:tea"), 0),
    "nothing": (StepFilter(words="tea", kind="state"), 0),
}


@pytest.mark.parametrize(("wanted", "count"), FOUND.values(), ids=FOUND.keys())
def test_steps_are_searched(runs, wanted, count):
    """By fields, words and the terms of ``reenact show --filter``."""
    with open_artifact(runs / "research") as artifact:
        search = StepSearch(artifact, wanted)
        while not search.is_complete:
            search.advance(0.01)
        assert len(search.places) == count


def test_the_nearest_failure_is_found(runs):
    """Behind an event, before an event, or not at all."""
    with open_artifact(runs / "research") as artifact:
        search = StepSearch(artifact, StepFilter(state="error"))
        first = search.seq_near(0, is_back=False)
        second = search.seq_near(first, is_back=False)
        assert first < second
        assert search.seq_near(second, is_back=False) is None
        assert search.seq_near(second, is_back=True) == first
        assert search.seq_near(first, is_back=True) is None


# Bounds

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=50)
@given(json_values)
def test_small_values_are_left_as_they_are(value):
    """Only what is too large is shortened."""
    bounded = Bounded()
    assert bounded(value) == value
    assert not bounded.is_short


LARGE = {
    "a text": "x" * (TEXT_CHARACTERS + 1),
    "a list": [1] * (LIST_ITEMS + 1),
    "many texts": ["x" * 1000] * 4999,
    "many large texts": {"a": ["y" * 150_000] * 99},
}


@pytest.mark.parametrize("value", LARGE.values(), ids=LARGE.keys())
def test_large_values_are_shortened_and_say_so(value):
    """Whatever makes them large."""
    bounded = Bounded(characters=1_000_000)
    assert len(str(bounded(value))) < 1_500_000
    assert bounded.is_short

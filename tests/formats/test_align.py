"""Aligning two runs: content and causality decide, not position."""

import difflib
import re
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from reenact.comparing import alignment
from reenact.comparing.alignment import Item, align, common_subsequence, unified_diff, words_in_common

KEYS = st.lists(st.sampled_from("abcd"), max_size=14)


@st.composite
def runs(draw):
    """Calls of a few tasks, some made inside earlier ones."""
    items = []
    for key in draw(st.lists(st.sampled_from("abc"), max_size=12)):
        parent = draw(st.integers(-1, len(items) - 1))
        ends = ["", ".1", ".2", "~"]
        before = "0" if parent < 0 else f"{items[parent].lane}/1"
        lane = before + draw(st.sampled_from(ends))
        items.append(Item(key, key, lane, parent))
    return items


def length_by_table(left, right):
    """The textbook way, quadratic and plain."""
    table = [[0] * (len(right) + 1) for _ in range(len(left) + 1)]
    for x in range(len(left) - 1, -1, -1):
        for y in range(len(right) - 1, -1, -1):
            longer = table[x + 1][y + 1] + 1
            table[x][y] = longer if left[x] == right[y] else max(table[x + 1][y], table[x][y + 1])
    return table[0][0]


def inserted(items, place, key):
    """*items* with one call more that has nothing inside it."""
    moved = [item._replace(parent=item.parent + (item.parent >= place)) for item in items]
    lane = items[place].lane if place < len(items) else "0"
    parent = moved[place].parent if place < len(items) else -1
    return [*moved[:place], Item(key, key, lane, parent), *moved[place:]]


@given(KEYS, KEYS)
def test_the_longest_common_subsequence_is_found(left, right):
    """In order, of equal items, and as long as can be."""
    pairs = common_subsequence(left, right)
    assert all(left[x] == right[y] for x, y in pairs)
    assert all(a < c and b < d for (a, b), (c, d) in pairwise(pairs))
    assert len(pairs) == length_by_table(left, right)


@given(KEYS, KEYS)
def test_far_apart_sequences_are_matched_at_what_both_have_once(left, right):
    """Then the list need not be the longest, but it is a common subsequence."""
    limit, alignment._MAX_EDITS = alignment._MAX_EDITS, 1
    try:
        pairs = common_subsequence(left, right)
    finally:
        alignment._MAX_EDITS = limit
    assert all(left[x] == right[y] for x, y in pairs)
    assert all(a < c and b < d for (a, b), (c, d) in pairwise(pairs))


@given(runs())
def test_a_run_is_aligned_with_itself(run):
    """Every call with itself, in order."""
    assert align(run, run) == [(place, place) for place in range(len(run))]


@given(runs(), st.data())
def test_one_inserted_call_is_one_difference(run, data):
    """Wherever it stands, and also where an equal call is next to it."""
    place = data.draw(st.integers(0, len(run)))
    longer = inserted(run, place, data.draw(st.sampled_from("abcx")))
    pairs = align(run, longer)
    assert [pair for pair in pairs if None in pair] == [pair for pair in pairs if pair[0] is None]
    assert len(pairs) == len(longer)
    assert all(run[one].key == longer[other].key for one, other in pairs if one is not None)


@given(runs(), runs())
def test_every_call_has_one_place(left, right):
    """Beside another or alone; nothing is lost and nothing is there twice."""
    pairs = align(left, right)
    assert sorted(one for one, _ in pairs if one is not None) == list(range(len(left)))
    assert [other for _, other in pairs if other is not None] == list(range(len(right)))


@given(runs(), runs())
def test_the_other_way_round_is_the_same(left, right):
    """What was added is removed then, and nothing else changes."""
    assert {(one, other) for other, one in align(right, left)} == set(align(left, right))


def test_one_more_task_makes_no_strangers_of_the_others():
    """Tasks are recognised by what they do."""
    left = [Item("a", "a", "0.1"), Item("b", "b", "0.2")]
    right = [Item("x", "x", "0.1"), Item("a", "a", "0.2"), Item("b", "b", "0.3")]
    assert align(left, right) == [(None, 0), (0, 1), (1, 2)]


def test_tasks_may_interleave_in_any_way():
    """Only the order within a task means something."""
    left = [Item("a", "a", "0.1"), Item("b", "b", "0.2"), Item("c", "c", "0.1")]
    right = [left[1], left[0], left[2]]
    assert {pair for pair in align(left, right) if None not in pair} == {(0, 1), (1, 0), (2, 2)}


def test_a_lane_without_order_is_a_set():
    """What stands in it is matched wherever it stands."""
    left = [Item(key, key, "0~") for key in "abc"]
    right = [Item(key, key, "0~") for key in "cab"]
    assert all(left[one].key == right[other].key for one, other in align(left, right))


def test_what_is_most_alike_is_paired_as_changed():
    """Not what comes first."""
    left = [Item("lamp", "search")]
    right = [Item("desk", "search"), Item("lamps", "search")]
    likeness = {(0, 0): 0.3, (0, 1): 0.9}
    assert align(left, right, lambda *pair: likeness[pair]) == [(None, 0), (0, 1)]


def test_calls_of_different_kinds_are_never_paired():
    """One was removed and one was added."""
    assert align([Item("a", "search")], [Item("b", "order")]) == [(0, None), (None, 0)]


def test_what_changed_in_a_lane_without_order_is_paired_by_likeness():
    """Also where the likest one stands elsewhere."""
    left = [Item("red 1", "paint", "0~"), Item("blue 1", "paint", "0~")]
    right = [Item("blue 2", "paint", "0~"), Item("red 2", "paint", "0~")]
    pairs = align(left, right, lambda x, y: words_in_common({*left[x].key.split()}, {*right[y].key.split()}))
    assert pairs == [(1, 0), (0, 1)]


def test_a_task_is_recognised_by_its_calls_though_all_inside_them_changed():
    """Not by its name, when another task of that name did something else."""
    left = [Item("x", "a", "0.0"), Item(1, "b", "0.0/1", 0), Item("y", "a", "0.1"), Item(2, "b", "0.1/1", 2)]
    right = [Item("y", "a", "0.0"), Item(3, "b", "0.0/1", 0), Item("x", "a", "0.1"), Item(4, "b", "0.1/1", 2)]
    assert align(left, right) == [(2, 0), (3, 1), (0, 2), (1, 3)]


LINES = st.lists(st.sampled_from("abc"), max_size=12)


def apply_diff(left: list[str], diff: list[str]) -> list[str]:
    """What ``patch`` makes of it, which also looks whether the lines to leave are there."""
    result: list[str] = []
    at = 0
    for line in diff:
        if header := re.fullmatch(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@", line):
            start = int(header[1]) - (header[2] != "0")
            result += left[at:start]
            at = start
            assert len(result) == int(header[3]) - (header[4] != "0")
            continue
        if line[0] in " -":
            assert left[at] == line[1:]
            at += 1
        if line[0] in " +":
            result.append(line[1:])
    return result + left[at:]


@given(LINES, LINES, st.integers(0, 3))
def test_a_unified_diff_can_be_applied(left, right, context):
    """It makes the one of the other, and says nothing where both are equal."""
    diff = [*unified_diff(left, right, context)]
    assert apply_diff(left, diff) == right
    assert (diff == []) == (left == right)


@given(st.integers(1, 12), st.data(), st.integers(1, 3))
def test_a_changed_line_is_told_as_difflib_tells_it(count, data, context):
    """The same lines, and the same numbers."""
    left = [str(number) for number in range(count)]
    place = data.draw(st.integers(0, count - 1))
    right = [*left[:place], "x", *left[place + 1 :]]
    names, _, *told = difflib.unified_diff(left, right, lineterm="", n=context)
    assert names == "--- "
    assert [*unified_diff(left, right, context)] == told


class CountedLine(str):
    """Counts how often it is looked at."""

    __slots__ = ()
    looks = 0

    def __eq__(self, other):
        CountedLine.looks += 1
        return super().__eq__(other)

    def __hash__(self):
        CountedLine.looks += 1
        return super().__hash__()


def test_many_lines_that_are_alike_are_compared_soon(monkeypatch):
    """Where difflib compares each with each."""
    monkeypatch.setattr(CountedLine, "looks", 0)
    left = [CountedLine(number % 7) for number in range(20_000)]
    right = [*left[:9_000], "x", *left[9_001:11_000], "y", *left[11_000:]]
    assert [line for line in unified_diff(left, right) if line[0] in "+-"] == ["-5", "+x", "+y"]
    assert CountedLine.looks < 20 * len(left)

"""The longest common subsequence: exactly where two sequences are alike, nearly where they are not."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Hashable, Sequence
from typing import Final, TypeAlias

Pairs: TypeAlias = list[tuple[int, int]]
"""Places in the one sequence and in the other, both rising."""

_MAX_EDITS: Final = 512
"""Sequences further apart than this are cut at what both have once, and matched in between."""


def common_subsequence(left: Sequence[Hashable], right: Sequence[Hashable]) -> Pairs:
    """Places of equal items; the longest such list unless the sequences differ in hundreds of places."""
    start, ends = _common_ends(left, right)
    middle = _matched(left, right, range(start, len(left) - ends), range(start, len(right) - ends))
    tail = [(len(left) - each, len(right) - each) for each in range(ends, 0, -1)]
    return [(each, each) for each in range(start)] + middle + tail


def _common_ends(left: Sequence[Hashable], right: Sequence[Hashable]) -> tuple[int, int]:
    """How many items both have in common from the start, and then from the end."""
    shorter = min(len(left), len(right))
    start = next((each for each in range(shorter) if left[each] != right[each]), shorter)
    rest = range(1, shorter - start + 1)
    return start, next((each - 1 for each in rest if left[-each] != right[-each]), shorter - start)


def _matched(left: Sequence[Hashable], right: Sequence[Hashable], ours: range, theirs: range) -> Pairs:
    # What the other side does not have can be no part of the answer.
    known = {left[each] for each in ours} & {right[each] for each in theirs}
    lefts = [each for each in ours if left[each] in known]
    rights = [each for each in theirs if right[each] in known]
    if not lefts or not rights:
        return []
    left_keys, right_keys = [left[each] for each in lefts], [right[each] for each in rights]
    found = _shortest_edit(left_keys, right_keys)
    if found is None:
        found = _between_anchors(left_keys, right_keys)
    return [(lefts[one], rights[other]) for one, other in found]


def _shortest_edit(left: Sequence[Hashable], right: Sequence[Hashable]) -> Pairs | None:
    """Myers' greedy algorithm; ``None`` where more than ``_MAX_EDITS`` items would be left over."""
    reached = {1: 0}
    history: list[dict[int, int]] = []
    for edits in range(min(_MAX_EDITS, len(left) + len(right)) + 1):
        history.append(dict(reached))
        for diagonal in range(-edits, edits + 1, 2):
            goes_down = diagonal == -edits or (
                diagonal != edits and reached[diagonal - 1] < reached[diagonal + 1]
            )
            x = reached[diagonal + 1] if goes_down else reached[diagonal - 1] + 1
            while x < len(left) and x - diagonal < len(right) and left[x] == right[x - diagonal]:
                x += 1
            reached[diagonal] = x
            if x >= len(left) and x - diagonal >= len(right):
                return _traced(history, len(left), len(right))
    return None


def _traced(history: list[dict[int, int]], x: int, y: int) -> Pairs:
    """The way back from the end of both sequences to their start."""
    found: Pairs = []
    for edits in range(len(history) - 1, -1, -1):
        reached, diagonal = history[edits], x - y
        goes_down = diagonal == -edits or (
            diagonal != edits and reached[diagonal - 1] < reached[diagonal + 1]
        )
        before = diagonal + 1 if goes_down else diagonal - 1
        from_x = reached[before] if edits else 0
        from_y = from_x - before if edits else 0
        while x > from_x and y > from_y:
            x, y = x - 1, y - 1
            found.append((x, y))
        x, y = from_x, from_y
    return found[::-1]


def _between_anchors(left: Sequence[Hashable], right: Sequence[Hashable]) -> Pairs:
    """Items that both have once, as many as are in the same order, and what matches between two of them."""
    anchors = _anchors(left, right)
    found: Pairs = []
    one = other = 0
    for x, y in [*anchors, (len(left), len(right))] if anchors else []:
        found += _near(left, right, range(one, x), range(other, y))
        found.append((x, y))
        one, other = x + 1, y + 1
    return found[:-1]


def _near(left: Sequence[Hashable], right: Sequence[Hashable], ours: range, theirs: range) -> Pairs:
    inner = _shortest_edit([left[each] for each in ours], [right[each] for each in theirs])
    return [(ours[one], theirs[other]) for one, other in inner or []]


def _anchors(left: Sequence[Hashable], right: Sequence[Hashable]) -> Pairs:
    once = {key for key, count in Counter(left).items() if count == 1}
    once &= {key for key, count in Counter(right).items() if count == 1}
    places = {key: y for y, key in enumerate(right) if key in once}
    return _longest_rising([(x, places[key]) for x, key in enumerate(left) if key in once])


def _longest_rising(pairs: Pairs) -> Pairs:
    """As many of *pairs* as possible whose second places rise; their first places do."""
    ends: list[int] = []
    last: list[int] = []
    before: list[int] = []
    for number, (_, y) in enumerate(pairs):
        length = bisect_left(ends, y)
        before.append(last[length - 1] if length else -1)
        ends[length : length + 1] = [y]
        last[length : length + 1] = [number]
    found: Pairs = []
    number = last[-1] if last else -1
    while number >= 0:
        found.append(pairs[number])
        number = before[number]
    return found[::-1]

"""Aligns two runs: finds for each call of one run its counterpart in the other.

Calls are aligned by content within their logical task, and calls inside a call only with calls inside its
counterpart. So one added call is one difference, wherever it is and however many tasks run in parallel. Tasks
are matched by their calls first and then by name, so that an added task does not change the matching of later
ones. The longest common subsequence is exact for similar sequences, and approximate for others.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence, Set
from itertools import chain
from typing import Final, NamedTuple, TypeAlias

from reenact.lane_name import LaneName, is_loose

Pairs: TypeAlias = list[tuple[int, int]]
"""Indexes into the two sequences, both increasing."""

_MAX_EDITS: Final = 512
"""Sequences with more differences are split at items that both have once, and matched in between."""


def common_subsequence(left: Sequence[Hashable], right: Sequence[Hashable]) -> Pairs:
    """Pairs of equal items; the longest such list unless the sequences differ in hundreds of places."""
    start, ends = _common_ends(left, right)
    middle = _match(left, right, range(start, len(left) - ends), range(start, len(right) - ends))
    tail = [(len(left) - each, len(right) - each) for each in range(ends, 0, -1)]
    return [(each, each) for each in range(start)] + middle + tail


def _common_ends(left: Sequence[Hashable], right: Sequence[Hashable]) -> tuple[int, int]:
    """The lengths of the common prefix and of the common suffix."""
    shorter = min(len(left), len(right))
    start = next((each for each in range(shorter) if left[each] != right[each]), shorter)
    rest = range(1, shorter - start + 1)
    return start, next((each - 1 for each in rest if left[-each] != right[-each]), shorter - start)


class _Change(NamedTuple):
    """A range of lines on each side that differ; either may be empty."""

    ours: range
    theirs: range

    def lines(self, left: Sequence[str], right: Sequence[str]) -> list[str]:
        return [f"-{left[each]}" for each in self.ours] + [f"+{right[each]}" for each in self.theirs]


def unified_diff(left: Sequence[str], right: Sequence[str], context: int = 3) -> Iterator[str]:
    """Like the function of :mod:`difflib`, without file names, and fast for many equal lines.

    *context* is the number of equal lines around a change.
    """
    hunk: list[_Change] = []
    for change in _changes(left, right):
        if hunk and change.ours.start - hunk[-1].ours.stop > 2 * context:
            yield from _hunk_lines(hunk, left, right, context)
            hunk = []
        hunk.append(change)
    if hunk:
        yield from _hunk_lines(hunk, left, right, context)


def _changes(left: Sequence[str], right: Sequence[str]) -> Iterator[_Change]:
    start, ends = _common_ends(left, right)
    x = y = start
    last = len(left) - ends, len(right) - ends
    for one, other in [*_match(left, right, range(start, last[0]), range(start, last[1])), last]:
        if x < one or y < other:
            yield _Change(range(x, one), range(y, other))
        x, y = one + 1, other + 1


def _hunk_lines(
    changes: Sequence[_Change], left: Sequence[str], right: Sequence[str], context: int
) -> Iterator[str]:
    first, last = changes[0], changes[-1]
    before = min(context, first.ours.start)
    behind = min(context, len(left) - last.ours.stop)
    ours = range(first.ours.start - before, last.ours.stop + behind)
    theirs = range(first.theirs.start - before, last.theirs.stop + behind)
    yield f"@@ -{_line_range(ours)} +{_line_range(theirs)} @@"
    x = ours.start
    for change in changes:
        yield from (f" {left[each]}" for each in range(x, change.ours.start))
        yield from change.lines(left, right)
        x = change.ours.stop
    yield from (f" {left[each]}" for each in range(x, ours.stop))


def _line_range(lines: range) -> str:
    """A range in the notation of ``diff -u``, which has the line before an empty range."""
    if len(lines) == 1:
        return str(lines.start + 1)
    return f"{lines.start + 1 if lines else lines.start},{len(lines)}"


def _match(left: Sequence[Hashable], right: Sequence[Hashable], ours: range, theirs: range) -> Pairs:
    # Items that the other side does not have cannot match.
    known = {left[each] for each in ours} & {right[each] for each in theirs}
    lefts = [each for each in ours if left[each] in known]
    rights = [each for each in theirs if right[each] in known]
    if not lefts or not rights:
        return []
    left_keys, right_keys = [left[each] for each in lefts], [right[each] for each in rights]
    found = _shortest_edit(left_keys, right_keys)
    if found is None:
        found = _match_between_anchors(left_keys, right_keys)
    return [(lefts[one], rights[other]) for one, other in found]


def _shortest_edit(left: Sequence[Hashable], right: Sequence[Hashable]) -> Pairs | None:
    """Myers' greedy algorithm; ``None`` if more than ``_MAX_EDITS`` items have no counterpart."""
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
                return _trace_back(history, len(left), len(right))
    return None


def _trace_back(history: list[dict[int, int]], x: int, y: int) -> Pairs:
    """The matched pairs on the path from the end of both sequences back to their start."""
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


def _match_between_anchors(left: Sequence[Hashable], right: Sequence[Hashable]) -> Pairs:
    """Match items that both have once and in the same order, and items between two of these."""
    anchors = _anchors(left, right)
    found: Pairs = []
    one = other = 0
    for x, y in [*anchors, (len(left), len(right))] if anchors else []:
        found += _pair_nearby(left, right, range(one, x), range(other, y))
        found.append((x, y))
        one, other = x + 1, y + 1
    return found[:-1]


def _pair_nearby(left: Sequence[Hashable], right: Sequence[Hashable], ours: range, theirs: range) -> Pairs:
    inner = _shortest_edit([left[each] for each in ours], [right[each] for each in theirs])
    return [(ours[one], theirs[other]) for one, other in inner or []]


def _anchors(left: Sequence[Hashable], right: Sequence[Hashable]) -> Pairs:
    once = {key for key, count in Counter(left).items() if count == 1}
    once &= {key for key, count in Counter(right).items() if count == 1}
    places = {key: y for y, key in enumerate(right) if key in once}
    return _find_longest_rising([(x, places[key]) for x, key in enumerate(left) if key in once])


def _find_longest_rising(pairs: Pairs) -> Pairs:
    """The longest part of *pairs* whose second indexes increase; the first indexes do already."""
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


Bound: TypeAlias = tuple[str | None, str | None]
"""The names of two matching tasks, or of one that only one run has."""


class TaskCalls(NamedTuple):
    whole: tuple[Hashable, ...]
    """Each call with all calls inside it, in order."""
    own: tuple[Hashable, ...]
    """The calls by themselves; sometimes only the calls inside them differ."""

    @property
    def traits(self) -> set[Hashable]:
        return {*self.whole, *self.own}


def bind_tasks(ours: Mapping[str, TaskCalls], theirs: Mapping[str, TaskCalls]) -> list[Bound]:
    """Match every task once: those with equal calls, then the most similar ones; the rest stay unmatched."""
    bound = {lane: lane for lane in ours if lane in theirs and ours[lane].whole == theirs[lane].whole}
    free, open_ = _without(ours, bound), _without(theirs, bound)
    same = common_subsequence([ours[lane].whole for lane in free], [theirs[lane].whole for lane in open_])
    bound |= {free[one]: open_[other] for one, other in same}
    alike = _most_alike(
        {lane: ours[lane].traits for lane in _without(ours, bound)},
        {lane: theirs[lane].traits for lane in _without(theirs, bound.values())},
    )
    bound |= alike
    unmatched: list[Bound] = [(lane, None) for lane in _without(ours, bound)]
    return [*bound.items(), *unmatched, *((None, lane) for lane in _without(theirs, bound.values()))]


def _without(lanes: Iterable[str], taken: Iterable[str]) -> list[str]:
    known = set(taken)
    return [lane for lane in lanes if lane not in known]


def _most_alike(
    ours: Mapping[str, set[Hashable]], theirs: Mapping[str, set[Hashable]]
) -> Iterator[tuple[str, str]]:
    """Match each task with the most similar one, or else with the one of the same name."""
    shared = sorted(
        (-len(ours[one] & theirs[other]), one != other, x, y, one, other)
        for x, one in enumerate(ours)
        for y, other in enumerate(theirs)
    )
    taken: tuple[set[str], set[str]] = (set(), set())
    for overlap, is_renamed, _, _, one, other in shared:
        if one not in taken[0] and other not in taken[1] and (overlap or not is_renamed):
            taken[0].add(one)
            taken[1].add(other)
            yield one, other


_MAX_CELLS: Final = 2500
"""Larger gaps are paired by kind and order only; comparing each call with each would take too long."""
_MIN_SIMILARITY: Final = 0.2
"""Calls of the same kind and name that are less similar are different calls."""

_LIKE: Final = 0.3
"""The least similarity of calls of the same kind and name, if their words are compared."""

Pair: TypeAlias = tuple[int | None, int | None]
Similarity: TypeAlias = Callable[[int, int], float]
"""The similarity of two calls of the same kind and name, 0 to 1."""
Paired: TypeAlias = Callable[[list[int], list[int]], Pairs]
"""Pairs the calls of two lists, by indexes into the lists."""


class Item(NamedTuple):
    """The facts about one call that aligning needs."""

    key: Hashable
    """The whole request: calls with equal keys match."""
    like: Hashable
    """Kind and name: if these are equal, one call may be a changed form of the other."""
    lane: str = "0"
    parent: int = -1
    """The index of the call inside which it was made."""


def align(left: Sequence[Item], right: Sequence[Item], similarity: Similarity | None = None) -> list[Pair]:
    """Pair every item of both with its counterpart, or with ``None``.

    In the order of *right*; items that only *left* has are inserted at their position.
    """
    if [*left] == [*right]:  # a fast path with the same result: 2 instead of 160 ms for 10,000 calls
        return [(place, place) for place in range(len(left))]
    similarity = similarity or _rate_equal
    if _rank(left) <= _rank(right):
        pairs = list(_Alignment(left, right, similarity).siblings(-1, -1))
    else:  # exchanging the sides must give the same pairs
        turned = _Alignment(right, left, lambda one, other: similarity(other, one)).siblings(-1, -1)
        pairs = [(one, other) for other, one in turned]
    return _sort_pairs(pairs)


def words_in_common(left: Set[Hashable], right: Set[Hashable]) -> float:
    """The similarity of two calls by their words; never below the least similarity of a match."""
    union = len(left | right)
    return _LIKE + (1 - _LIKE) * (len(left & right) / union if union else 1)


class _Alignment:
    """Aligns the two runs as trees; siblings are the calls made directly inside one call, or inside none."""

    def __init__(self, left: Sequence[Item], right: Sequence[Item], similarity: Similarity) -> None:
        self._left, self._right = left, right
        self._similarity = similarity
        self._left_tasks, self._right_tasks = _tasks(left), _tasks(right)
        self._left_trees, self._right_trees = _trees(left), _trees(right)

    def siblings(self, left_parent: int, right_parent: int) -> Iterator[Pair]:
        """Pair the calls inside two counterparts, and all calls inside those."""
        waiting: list[tuple[int | None, int | None]] = [(left_parent, right_parent)]
        while waiting:
            one, other = waiting.pop()
            lefts = {} if one is None else self._left_tasks.get(one, {})
            rights = {} if other is None else self._right_tasks.get(other, {})
            ours = _tasks_by_lane(self._left, self._left_trees, lefts)
            theirs = _tasks_by_lane(self._right, self._right_trees, rights)
            for left_lane, right_lane in bind_tasks(ours, theirs):
                is_set = left_lane is not None and is_loose(left_lane)
                side_by_side = self._set if is_set else self._sequence
                here = [] if left_lane is None else lefts[left_lane]
                there = [] if right_lane is None else rights[right_lane]
                for pair in side_by_side(here, there):
                    yield pair
                    waiting.append(pair)

    def _sequence(self, lefts: list[int], rights: list[int]) -> Iterator[Pair]:
        """Pair the calls of two tasks in order: equal calls first, then changed calls between them."""
        equal = common_subsequence(
            [self._left_trees[each] for each in lefts], [self._right_trees[each] for each in rights]
        )
        one = other = 0
        for x, y in [*equal, (len(lefts), len(rights))]:
            yield from self._pair_gap(lefts[one:x], rights[other:y], self._pair_in_order)
            if x < len(lefts) and y < len(rights):
                yield lefts[x], rights[y]
            one, other = x + 1, y + 1

    def _set(self, lefts: list[int], rights: list[int]) -> Iterator[Pair]:
        """Pair the calls of two tasks without order: equal calls first, then changed ones."""
        equal: dict[int, list[int]] = defaultdict(list)
        for each in reversed(rights):
            equal[self._right_trees[each]].append(each)
        changed: list[int] = []
        for each in lefts:
            if equal[self._left_trees[each]]:
                yield each, equal[self._left_trees[each]].pop()
            else:
                changed.append(each)
        yield from self._pair_gap(changed, sorted(chain(*equal.values())), self._pair_most_alike)

    def _pair_gap(self, lefts: list[int], rights: list[int], paired: Paired) -> Iterator[Pair]:
        if len(lefts) * len(rights) > _MAX_CELLS:
            paired = self._pair_by_kind
        pairs = {lefts[one]: rights[other] for one, other in paired(lefts, rights)}
        taken = set(pairs.values())
        yield from ((each, pairs.get(each)) for each in lefts)
        yield from ((None, each) for each in rights if each not in taken)

    def _pair_by_kind(self, lefts: list[int], rights: list[int]) -> Pairs:
        return common_subsequence(
            [self._left[each].like for each in lefts], [self._right[each].like for each in rights]
        )

    def _pair_most_alike(self, lefts: list[int], rights: list[int]) -> Pairs:
        """Pair in any order, the most similar ones first."""
        scored = sorted(
            (-score, x, y)
            for x, one in enumerate(lefts)
            for y, other in enumerate(rights)
            if (score := self._score(one, other))
        )
        found: dict[int, int] = {}
        taken: set[int] = set()
        for _, x, y in scored:
            if x not in found and y not in taken:
                found[x] = y
                taken.add(y)
        return list(found.items())

    def _pair_in_order(self, lefts: list[int], rights: list[int]) -> Pairs:
        """Pair in order with the highest total similarity."""
        scores = [[0.0] * (len(rights) + 1) for _ in range(len(lefts) + 1)]
        for x in range(len(lefts) - 1, -1, -1):
            for y in range(len(rights) - 1, -1, -1):
                paired = self._score(lefts[x], rights[y]) + scores[x + 1][y + 1]
                scores[x][y] = max(paired, scores[x + 1][y], scores[x][y + 1])
        found: Pairs = []
        x = y = 0
        while x < len(lefts) and y < len(rights) and scores[x][y]:
            score = self._score(lefts[x], rights[y])
            if score and score + scores[x + 1][y + 1] == scores[x][y]:
                found.append((x, y))
                x, y = x + 1, y + 1
            elif scores[x][y] == scores[x + 1][y]:
                x += 1
            else:
                y += 1
        return found

    def _score(self, one: int, other: int) -> float:
        if self._left[one].key == self._right[other].key:
            return 2.0  # only the calls inside it differ
        if self._left[one].like != self._right[other].like:
            return 0.0
        found = self._similarity(one, other)
        return found if found >= _MIN_SIMILARITY else 0.0


def _rate_equal(_one: int, _other: int) -> float:
    return 1.0


def _rank(items: Sequence[Item]) -> list[str]:
    return list(map(repr, items))


def _trees(items: Sequence[Item]) -> list[int]:
    """A number for each call with all calls inside it; equal trees have equal numbers."""
    inside: dict[int, list[int]] = defaultdict(list)
    trees = [0] * len(items)
    for place in range(len(items) - 1, -1, -1):
        item = items[place]
        trees[place] = hash((item.key, *inside.pop(place, ())))
        inside[item.parent].append(trees[place])
    return trees


def _tasks(items: Sequence[Item]) -> dict[int, dict[str, list[int]]]:
    """The indexes of the calls directly inside each call, by task, in order."""
    tasks: dict[int, dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
    for place, item in enumerate(items):
        tasks[item.parent][_inner_lane(item, items)].append(place)
    return tasks


def _inner_lane(item: Item, items: Sequence[Item]) -> str:
    """The lane relative to the call around it, whose number may differ."""
    if item.parent < 0:
        return item.lane
    place = LaneName(item.lane).inside_of(items[item.parent].lane)
    return item.lane if place is None else place[1]


def _tasks_by_lane(
    items: Sequence[Item], trees: list[int], tasks: dict[str, list[int]]
) -> dict[str, TaskCalls]:
    return {
        lane: TaskCalls(tuple(trees[each] for each in places), tuple(items[each].key for each in places))
        for lane, places in tasks.items()
    }


def _sort_pairs(pairs: list[Pair]) -> list[Pair]:
    """Sort by the right run; a call that it does not have follows its predecessor in the left run."""
    counterpart = {one: other for one, other in pairs if one is not None}
    position = -1
    places: dict[int, int] = {}
    for one in sorted(counterpart):
        other = counterpart[one]
        position = other if other is not None else position
        places[one] = position

    def order(pair: Pair) -> tuple[int, int, int]:
        one, other = pair
        if other is not None:
            return other, 0, 0
        assert one is not None
        return places[one], 1, one

    return sorted(pairs, key=order)

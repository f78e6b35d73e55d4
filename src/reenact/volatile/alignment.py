"""Which call of one run is which of another: by lane, then in order or, where there is none, by likeness.

A lane is the other run's lane of the same place, unless a sibling begins with an equal request.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from difflib import SequenceMatcher
from typing import Any, Final, NamedTuple

from reenact.formats.differences import differences
from reenact.volatile.likeness import distance, family

_LOOKED_AT: Final = 40


class Asked(NamedTuple):
    """A call, as far as it must be equal in a replay."""

    seq: int
    lane: str
    type: str
    name: str
    request: Any

    @property
    def kind(self) -> tuple[str, str]:
        return self.type, family(self.name)


class Alignment(NamedTuple):
    """The calls of two runs, side by side."""

    pairs: list[tuple[Asked, Asked]]
    only_in_one: list[Asked]
    only_in_other: list[Asked]


def aligned(one: Iterable[Asked], other: Iterable[Asked]) -> Alignment:
    """Each call of *one* beside its counterpart in *other*; every call stands in the result once."""
    lanes, others = _lanes(one), _lanes(other)
    found = Alignment([], [], [])
    counterparts: dict[str, str] = {}
    for lane in sorted(lanes, key=lambda name: (len(name), name)):
        place = _counterpart(lane, lanes, others, counterparts)
        if place is not None:
            counterparts[lane] = place
        _align_lane(lanes[lane], others.pop(place, []) if place is not None else [], found)
    found.only_in_other.extend(call for calls in others.values() for call in calls)
    return found


def _lanes(calls: Iterable[Asked]) -> dict[str, list[Asked]]:
    lanes: dict[str, list[Asked]] = {}
    for call in calls:
        lanes.setdefault(call.lane, []).append(call)
    return lanes


def _counterpart(
    lane: str, lanes: dict[str, list[Asked]], others: dict[str, list[Asked]], counterparts: dict[str, str]
) -> str | None:
    """The lane of the other run that *lane* is; those found already are no longer in *others*."""
    parent = next((name for name in _parents(lane) if name in counterparts), "")
    place = counterparts.get(parent, "") + lane.removeprefix(parent)
    first = lanes[lane][0]
    if place in others and _is_equal(first, others[place][0]):
        return place
    siblings = (name for name in others if _shape(name) == _shape(place))
    return next(
        (name for name in siblings if _is_equal(first, others[name][0])), place if place in others else None
    )


def _parents(lane: str) -> Iterator[str]:
    """``0.1/2~`` → ``0.1/2``, ``0.1``, ``0``."""
    while lane := lane[: max(lane.rfind("."), lane.rfind("/"), lane.rfind("~"), 0)]:
        yield lane


def _shape(lane: str) -> tuple[str, str]:
    """The parent of a lane, and whether it was started there, is inside a call, or has no order."""
    parent = next(_parents(lane), "")
    return parent, lane.removeprefix(parent).strip("0123456789")


def _is_equal(one: Asked, other: Asked) -> bool:
    return one.kind == other.kind and one.request == other.request


def _align_lane(one: list[Asked], other: list[Asked], found: Alignment) -> None:
    is_loose = bool(one) and one[0].lane.endswith("~")
    for left, right in _by_likeness(one, other) if is_loose else _in_order(one, other):
        if left is not None and right is not None:
            found.pairs.append((left, right))
        elif left is not None:
            found.only_in_one.append(left)
        elif right is not None:
            found.only_in_other.append(right)


def _in_order(one: list[Asked], other: list[Asked]) -> Iterator[tuple[Asked | None, Asked | None]]:
    kinds, other_kinds = [call.kind for call in one], [call.kind for call in other]
    # Most lanes differ in one place if at all; comparing all with all is for what is left then.
    before = _shared(kinds, other_kinds)
    behind = _shared(kinds[before:][::-1], other_kinds[before:][::-1])
    end, other_end = len(one) - behind, len(other) - behind
    yield from zip(one[:before], other[:before], strict=True)
    yield from _by_sequence(one[before:end], other[before:other_end])
    yield from zip(one[end:], other[other_end:], strict=True)


def _shared(kinds: list[Any], other_kinds: list[Any]) -> int:
    pairs = enumerate(zip(kinds, other_kinds, strict=False))
    return next((index for index, (a, b) in pairs if a != b), min(len(kinds), len(other_kinds)))


def _by_sequence(one: list[Asked], other: list[Asked]) -> Iterator[tuple[Asked | None, Asked | None]]:
    matcher = SequenceMatcher(
        None, [call.kind for call in one], [call.kind for call in other], autojunk=False
    )
    at, other_at = 0, 0
    for start, other_start, size in matcher.get_matching_blocks():
        yield from ((call, None) for call in one[at:start])
        yield from ((None, call) for call in other[other_at:other_start])
        yield from zip(one[start : start + size], other[other_start : other_start + size], strict=True)
        at, other_at = start + size, other_start + size


def _by_likeness(one: list[Asked], other: list[Asked]) -> Iterator[tuple[Asked | None, Asked | None]]:
    rest = list(other)
    unlike: list[Asked] = []
    for call in one:
        equal = next((counterpart for counterpart in rest if _is_equal(call, counterpart)), None)
        if equal is None:
            unlike.append(call)
        else:
            rest.remove(equal)
            yield call, equal
    for call in unlike:
        likes = [counterpart for counterpart in rest if counterpart.kind == call.kind][:_LOOKED_AT]
        nearest = min(likes, key=lambda like: distance(differences(call.request, like.request)), default=None)
        if nearest is not None:
            rest.remove(nearest)
        yield call, nearest
    yield from ((None, call) for call in rest)

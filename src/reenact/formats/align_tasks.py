"""Which task of one run is which of another: told by what they did, and only then by their names."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from typing import NamedTuple, TypeAlias

from reenact.formats.subsequence import common_subsequence

Bound: TypeAlias = tuple[str | None, str | None]
"""The names of two tasks that are the same, or of one that only one run has."""


class Did(NamedTuple):
    """What a task did."""

    whole: tuple[Hashable, ...]
    """Each call with all that happened inside it, in order."""
    alone: tuple[Hashable, ...]
    """The calls by themselves, for what happened inside may be all that differs."""

    @property
    def traits(self) -> set[Hashable]:
        return {*self.whole, *self.alone}


def bind_tasks(ours: Mapping[str, Did], theirs: Mapping[str, Did]) -> list[Bound]:
    """Every task of both once: those that did the same, then those most alike, then the rest alone."""
    bound = {lane: lane for lane in ours if lane in theirs and ours[lane].whole == theirs[lane].whole}
    free, open_ = _but(ours, bound), _but(theirs, bound)
    same = common_subsequence([ours[lane].whole for lane in free], [theirs[lane].whole for lane in open_])
    bound |= {free[one]: open_[other] for one, other in same}
    alike = _most_alike(
        {lane: ours[lane].traits for lane in _but(ours, bound)},
        {lane: theirs[lane].traits for lane in _but(theirs, bound.values())},
    )
    bound |= alike
    alone: list[Bound] = [(lane, None) for lane in _but(ours, bound)]
    return [*bound.items(), *alone, *((None, lane) for lane in _but(theirs, bound.values()))]


def _but(lanes: Iterable[str], taken: Iterable[str]) -> list[str]:
    known = set(taken)
    return [lane for lane in lanes if lane not in known]


def _most_alike(
    ours: Mapping[str, set[Hashable]], theirs: Mapping[str, set[Hashable]]
) -> Iterator[tuple[str, str]]:
    """Each with the one it shares most with, else the one of its name."""
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

"""Finds the recorded call with which lenient replay answers a call that does not match.

An equal call elsewhere in the lane comes first: the agent skipped or swapped something. Otherwise the most
similar call of the same kind and name is *lent*: its answer is used, but it may still come itself. A call
that was recorded after outcomes which are still to come gets a penalty of half a difference. Each call is
lent only once, so that an agent that repeats a request until it likes the answer comes to an end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import Final, TypeAlias

from reenact.boundary import Lane
from reenact.comparing.differences import Difference, common_prefix_length
from reenact.replayer.lanes import Key, Lanes, RecordedLane
from reenact.replayer.source import RecordedCall, ReplaySource
from reenact.volatile.alignment import family

Compare: TypeAlias = Callable[[RecordedCall, object], tuple[Difference, ...]]
"""The differences between a request and that of a recorded call, without volatile parts."""

_LOOKED_AT: Final = 40
"""How many recorded calls to compare at most."""
_NOT_YET: Final = 0.5


class Nearest:
    """Finds the recorded call that answers one that was not recorded."""

    def __init__(self, source: ReplaySource, lanes: Lanes, compare: Compare) -> None:
        self._source = source
        self._lanes = lanes
        self._compare = compare
        self._positions: dict[str | tuple[str, str], int] = {}
        """By lane, or by type and family: how many calls from the start are all taken or lent."""

    def find(self, lane: Lane, keys: Sequence[Key], request: object) -> RecordedCall | None:
        """The call with which to answer *request*, which has *keys*; ``None`` if none is left."""
        recorded = self._lanes.expected(lane)
        found = self.take_equal(recorded, keys) if recorded is not None else None
        if found is None:
            found = self.find_most_similar(lane, keys[0], request)
            if found is None:
                return None
            found.lent = True
        if recorded is not None and found.lane == recorded.name and not recorded.is_loose:
            recorded.pass_by(found)
        return found

    def find_most_similar(self, lane: Lane, key: Key, request: object) -> RecordedCall | None:
        """The most similar call of the same kind and name that is neither taken nor lent."""
        recorded = self._lanes.expected(lane)
        kind = key.type, family(key.name)
        in_lane = self._find_open_in(recorded) if recorded is not None else []
        anywhere = self._find_open(kind, self._by_kind.get(kind, []))
        return self._find_likest(in_lane, kind, request) or self._find_likest(anywhere, kind, request)

    def take_equal(self, lane: RecordedLane, keys: Sequence[Key]) -> RecordedCall | None:
        """Take the first call of *lane* that was not made yet and has one of *keys*."""
        found = (self._lanes.take_equal(lane, key) for key in keys)
        return next(filter(None, found), None)

    def _find_open_in(self, lane: RecordedLane) -> list[RecordedCall]:
        return self._find_open(lane.name, lane.calls, at_least=0 if lane.is_loose else lane.position)

    def _find_open(
        self, place: str | tuple[str, str], calls: list[RecordedCall], *, at_least: int = 0
    ) -> list[RecordedCall]:
        """The next of *calls*, from position *at_least* on, that are neither taken nor lent."""
        position = max(self._positions.get(place, 0), at_least)
        while position < len(calls) and not _is_open(calls[position]):
            position += 1
        self._positions[place] = position
        return list(filter(_is_open, calls[position : position + _LOOKED_AT]))

    def _find_likest(
        self, calls: list[RecordedCall], kind: tuple[str, str], request: object
    ) -> RecordedCall | None:
        if not calls:
            return None
        # A call made before the first outcome that is still to come cannot depend on a missing outcome.
        until = calls[0].outcome_seq

        def distance_to(call: RecordedCall) -> float:
            return distance(self._compare(call, request)) + (_NOT_YET if call.seq > until else 0)

        likes = [call for call in calls if (call.type, family(call.name)) == kind]
        return min(likes, key=distance_to, default=None)

    @cached_property
    def _by_kind(self) -> dict[tuple[str, str], list[RecordedCall]]:
        found: dict[tuple[str, str], list[RecordedCall]] = {}
        for call in self._source.calls:
            found.setdefault((call.type, family(call.name)), []).append(call)
        return found


def _is_open(call: RecordedCall) -> bool:
    return not call.taken and not call.lent


def distance(places: Iterable[Difference]) -> float:
    """How much two requests differ: the number of *places*, where similar texts count less than one."""
    return sum(map(_distance, places))


def _distance(place: Difference) -> float:
    one, other = place.expected, place.observed
    if not isinstance(one, str) or not isinstance(other, str):
        return 1.0
    before = common_prefix_length(one, other)
    behind = common_prefix_length(one[before:][::-1], other[before:][::-1])
    return 1 - (before + behind) / max(len(one), len(other))

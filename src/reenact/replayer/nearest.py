"""What lenient replay answers a call with that the recording does not have in its place.

An equal call elsewhere in the lane comes first: the agent skipped or swapped something. Otherwise the likest
call of its kind and name is *lent*: its answer is given, but it may still come itself. A call that was made
only after outcomes which are still to come has to be liker by half a place. Each call is lent once, so that
an agent which asks until it likes the answer comes to an end.
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
"""Where a request differs from that of a recorded call, as far as it matters."""

_LOOKED_AT: Final = 40
"""How many recorded calls are compared at most."""
_NOT_YET: Final = 0.5


class Nearest:
    """Finds the recorded call that stands in for one that was not recorded."""

    def __init__(self, source: ReplaySource, lanes: Lanes, compare: Compare) -> None:
        self._source = source
        self._lanes = lanes
        self._compare = compare
        self._positions: dict[str | tuple[str, str], int] = {}
        """By lane, or by type and family: how many of the calls have been taken or lent for sure."""

    def to(self, lane: Lane, keys: Sequence[Key], request: object) -> RecordedCall | None:
        """The call to answer *request* with, whose *keys* these are; ``None`` when there is none left."""
        recorded = self._lanes.expected(lane)
        found = self.equal(recorded, keys) if recorded is not None else None
        if found is None:
            found = self.likest(lane, keys[0], request)
            if found is None:
                return None
            found.lent = True
        if recorded is not None and found.lane == recorded.name and not recorded.is_loose:
            recorded.pass_by(found)
        return found

    def likest(self, lane: Lane, key: Key, request: object) -> RecordedCall | None:
        """The call of its kind and name, not yet answered, that *request* comes nearest to."""
        recorded = self._lanes.expected(lane)
        kind = key.type, family(key.name)
        in_lane = self._open_in(recorded) if recorded is not None else []
        anywhere = self._open(kind, self._by_kind.get(kind, []))
        return self._likest(in_lane, kind, request) or self._likest(anywhere, kind, request)

    def equal(self, lane: RecordedLane, keys: Sequence[Key]) -> RecordedCall | None:
        """The first call of *lane* that has not come and is one of *keys*; it is taken now."""
        found = (self._lanes.take_equal(lane, key) for key in keys)
        return next(filter(None, found), None)

    def _open_in(self, lane: RecordedLane) -> list[RecordedCall]:
        return self._open(lane.name, lane.calls, at_least=0 if lane.is_loose else lane.position)

    def _open(
        self, place: str | tuple[str, str], calls: list[RecordedCall], *, at_least: int = 0
    ) -> list[RecordedCall]:
        """The next of *calls*, from that position on, that are neither taken nor lent."""
        position = max(self._positions.get(place, 0), at_least)
        while position < len(calls) and not _is_open(calls[position]):
            position += 1
        self._positions[place] = position
        return list(filter(_is_open, calls[position : position + _LOOKED_AT]))

    def _likest(
        self, calls: list[RecordedCall], kind: tuple[str, str], request: object
    ) -> RecordedCall | None:
        if not calls:
            return None
        # What was made before the first outcome that is still to come depends on none that is.
        until = calls[0].outcome_seq

        def apart(call: RecordedCall) -> float:
            return distance(self._compare(call, request)) + (_NOT_YET if call.seq > until else 0)

        likes = [call for call in calls if (call.type, family(call.name)) == kind]
        return min(likes, key=apart, default=None)

    @cached_property
    def _by_kind(self) -> dict[tuple[str, str], list[RecordedCall]]:
        found: dict[tuple[str, str], list[RecordedCall]] = {}
        for call in self._source.calls:
            found.setdefault((call.type, family(call.name)), []).append(call)
        return found


def _is_open(call: RecordedCall) -> bool:
    return not call.taken and not call.lent


def distance(places: Iterable[Difference]) -> float:
    """How far two requests are apart: the number of places, those of similar texts counting for less."""
    return sum(map(_apart, places))


def _apart(place: Difference) -> float:
    one, other = place.expected, place.observed
    if not isinstance(one, str) or not isinstance(other, str):
        return 1.0
    before = common_prefix_length(one, other)
    behind = common_prefix_length(one[before:][::-1], other[before:][::-1])
    return 1 - (before + behind) / max(len(one), len(other))

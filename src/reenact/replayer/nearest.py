"""What lenient replay answers a call with that the recording does not have in its place.

An equal call elsewhere in the lane comes first: the agent skipped or swapped something. Otherwise the call
in its place, or the next of the same name, is *lent*: its answer is given, but it may still come itself.
Each call is lent once, so that an agent which asks until it likes the answer comes to an end.
"""

from __future__ import annotations

from reenact.boundary import Lane
from reenact.replayer.lanes import Key, Lanes
from reenact.replayer.source import RecordedCall, ReplaySource


class Nearest:
    """Finds the recorded call that stands in for one that was not recorded."""

    def __init__(self, source: ReplaySource, lanes: Lanes) -> None:
        self._source = source
        self._lanes = lanes
        self._positions: dict[tuple[str, str], int] = {}
        """By type and name: how many of the recorded calls have been taken or lent for sure."""

    def to(self, lane: Lane, key: Key, expected: RecordedCall | None) -> RecordedCall | None:
        """The call to answer *key* with, where *lane* has *expected*; ``None`` when there is none left."""
        recorded = self._lanes.expected(lane)
        if recorded is not None:
            equal = self._lanes.take_equal(recorded, key)
            if equal is not None:
                recorded.pass_by(equal)
                return equal
        found = expected if expected is not None and _can_be_lent(expected, key) else self._next_of_name(key)
        if found is not None:
            found.lent = True
            if recorded is not None and found.lane == recorded.name:
                recorded.pass_by(found)
        return found

    def _next_of_name(self, key: Key) -> RecordedCall | None:
        calls = self._source.named(key.type, key.name)
        position = self._positions.get((key.type, key.name), 0)
        while position < len(calls) and not _can_be_lent(calls[position], key):
            position += 1
        self._positions[key.type, key.name] = position
        return calls[position] if position < len(calls) else None


def _can_be_lent(call: RecordedCall, key: Key) -> bool:
    return not call.taken and not call.lent and (call.type, call.name) == (key.type, key.name)

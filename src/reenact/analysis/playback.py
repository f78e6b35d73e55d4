"""A run as it happened: each step when it began and when it ended, in the order of its events."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from reenact.analysis.artifact import Artifact
from reenact.analysis.step import Step


class Moment(NamedTuple):
    """A step beginning, ending, or both in one event."""

    seq: int
    at_ms: float
    """Since the first event."""
    step: Step
    begins: bool
    ends: bool


class Playback:
    """Hands out what has been read of *artifact* since it was last asked."""

    def __init__(self, artifact: Artifact) -> None:
        self._artifact = artifact
        self._next_place = 0
        self._open: set[int] = set()

    def moments(self) -> Iterator[Moment]:
        """The new moments, in order."""
        rows = self._artifact.rows
        begun = range(self._next_place, len(rows))
        ended = [place for place in (*sorted(self._open), *begun) if rows.outcome_seq[place]]
        self._next_place = begun.stop
        self._open = self._open.union(begun).difference(ended)
        seqs = {(rows.seq[place], place) for place in begun}
        seqs |= {(rows.outcome_seq[place], place) for place in ended}
        for seq, place in sorted(seqs):
            yield self._moment(seq, place)

    def _moment(self, seq: int, place: int) -> Moment:
        step = self._artifact.at(place)
        begins, ends = seq == step.seq, seq == step.outcome_seq
        at_ms = step.at_ms if begins else step.at_ms + (step.took_ms or 0)
        return Moment(seq, at_ms, step, begins, ends)

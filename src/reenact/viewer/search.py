"""The steps of a run that somebody wants to see, found a little at a time."""

from __future__ import annotations

import shlex
import time
from array import array
from bisect import bisect_left
from threading import Lock
from typing import Final

import msgspec

from reenact.analysis.artifact import Artifact
from reenact.analysis.index import Term, parse_terms
from reenact.errors import UsageError

_SLICE_SECONDS: Final = 0.2
_STRETCH: Final = 64
"""So many steps are looked at between two looks at the clock."""


class Wanted(msgspec.Struct, frozen=True):
    """What is looked for; empty texts admit all."""

    kind: str = ""
    state: str = ""
    words: str = ""
    """Terms as ``reenact show --filter`` takes them; what is none is looked for as it stands."""

    @property
    def is_all(self) -> bool:
        return not (self.kind or self.state or self.words)

    def terms(self) -> tuple[Term, ...]:
        chosen = [Term(key, (value,)) for key, value in (("kind", self.kind), ("state", self.state)) if value]
        return (*chosen, *(term for word in _words(self.words) for term in _term(word)))


class StepSearch:
    """The places of the steps of *artifact* that are *wanted*, as far as it was searched."""

    def __init__(self, artifact: Artifact, wanted: Wanted) -> None:
        self._artifact = artifact
        self._terms = wanted.terms()
        self._next = 0
        self._lock = Lock()
        self.places = array("I")

    @property
    def is_complete(self) -> bool:
        return self._artifact.index(0) and self._next >= len(self._artifact)

    def advance(self, seconds: float) -> None:
        """Search on, for about so long."""
        deadline = time.monotonic() + seconds
        with self._lock:
            while time.monotonic() < deadline and not self.is_complete:
                self._stretch()

    def row_of(self, place: int) -> int | None:
        """At which row the step at *place* stands; ``None`` where it is not wanted."""
        while self._next <= place and not self.is_complete:
            self.advance(_SLICE_SECONDS)
        row = bisect_left(self.places, place)
        return row if row < len(self.places) and self.places[row] == place else None

    def seq_near(self, seq: int, *, is_back: bool) -> int | None:
        """The event of the next wanted step behind event *seq*, or of the last one before it."""
        seqs = self._artifact.rows.seq
        while not self.is_complete and (is_back or not self.places or seqs[self.places[-1]] <= seq):
            self.advance(_SLICE_SECONDS)
        row = bisect_left(self.places, seq, key=seqs.__getitem__)
        if is_back:
            return seqs[self.places[row - 1]] if row else None
        found = next((place for place in self.places[row : row + 2] if seqs[place] > seq), None)
        return None if found is None else seqs[found]

    def _stretch(self) -> None:
        end = min(self._next + _STRETCH, len(self._artifact))
        fits = self._artifact.fits
        self.places.extend(place for place in range(self._next, end) if fits(place, self._terms))
        self._next = end


def _words(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError:  # a quotation that is still being typed
        return text.split()


def _term(word: str) -> tuple[Term, ...]:
    try:
        return parse_terms([word])
    except UsageError:
        return (Term("text", (word,)),)

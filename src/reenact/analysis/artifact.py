"""A readable artifact, opened: what it says of itself, its steps page by page, any step in full.

    artifact = open_artifact("runs/triage")  # capture, events.jsonl, REPLAY.jsonl, replay.json, trace.json
    artifact.header()                # Header: kind, state, status, model, times, final output
    artifact.steps(0, 100)           # list[Step]: the first hundred, in a moment, however large it is
    artifact.find(parse_terms(["tool:search", "error"]))  # Found: steps that fit, and where to look on
    artifact.index(seconds=0.2)      # reads on; True when everything has been read
    artifact.counts()                # Counts: steps, kinds, states, tokens, cost, as far as read
    artifact.detail(17)              # Detail: the step of event 17 in full
    artifact.event(17)               # that event, payloads in their place
    artifact.close()                 # or: with open_artifact(path) as artifact

Opening reads nothing but the edges of the file. A page reads on as far as it needs, and a bounded stretch
further for outcomes; a step whose outcome is not reached yet is ``open`` until it is. Every answer is data:
``msgspec.to_builtins`` makes it JSON. All methods may be called from several threads.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from threading import RLock
from typing import Any, Final, Self

import msgspec

from reenact.analysis.brief import neat
from reenact.analysis.content import Content, content_of
from reenact.analysis.costs import total_cost
from reenact.analysis.detail import detail_of
from reenact.analysis.filters import Term
from reenact.analysis.index import STATES, StepIndex, Tokens
from reenact.analysis.sources.source import Header, Source
from reenact.analysis.step import Detail, Step
from reenact.analysis.step_reader import StepReader
from reenact.errors import FormatError, UsageError
from reenact.suite.prices import Price

_AHEAD_BYTES: Final = 16 * 1024 * 1024
"""How far a page looks ahead for the outcomes of its calls."""


class Counts(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, kw_only=True):
    """What there is, as far as the artifact has been read."""

    events: int
    steps: int
    kinds: dict[str, int]
    """Steps by kind, the most frequent first."""
    states: dict[str, int]
    models: dict[str, int]
    tokens: Tokens | None
    cost: float | None = None
    duration_ms: float
    """From the first event to the last."""
    columns: int
    """How many columns the steps take."""
    torn_bytes: int
    is_complete: bool
    """Whether everything has been read; of a run being recorded, everything there is so far."""
    problem: str | None = None
    """Where reading ended early, and why."""


class Found(msgspec.Struct, frozen=True, rename="camel"):
    """Steps that were looked for."""

    steps: list[Step]
    next_place: int | None
    """Where to look on; ``None`` where everything has been looked at."""


class Artifact:
    """One run to look at; *prices* turns tokens into money."""

    def __init__(self, source: Source, prices: Mapping[str, Price] | None = None) -> None:
        self._source = source
        self._prices = dict(prices or {})
        self._index = StepIndex()
        self._reader = StepReader(source, self._index, self._prices)
        self._lock = RLock()
        self._is_complete = False
        self.problem: FormatError | None = None
        """The first damage that reading came upon; the steps before it can be looked at."""

    @property
    def path(self) -> str:
        return self._source.path

    @property
    def size_bytes(self) -> int:
        return self._source.size_bytes

    @property
    def read_bytes(self) -> int:
        """How far the artifact has been read, for a progress bar."""
        return self._source.read_bytes

    def header(self) -> Header:
        """What the artifact says of itself now: a run being recorded may have ended since."""
        return self._source.header()

    def index(self, seconds: float | None = None) -> bool:
        """Read on, for about so long or to the end; whether everything has been read.

        A complete index of a growing file is asked for more by calling this again.
        """
        deadline = math.inf if seconds is None else time.monotonic() + seconds
        with self._lock:
            while self._read_on() and time.monotonic() < deadline:
                pass
            return self._is_complete

    def __len__(self) -> int:
        """How many steps have been found so far."""
        return len(self._index)

    def steps(self, start: int = 0, count: int = 100) -> list[Step]:
        """The steps from place *start*; fewer than *count* only at the end of what there is."""
        with self._lock:
            self._reach(start, start + count)
            places = range(max(0, start), min(start + count, len(self._index)))
        return [self.at(place) for place in places]

    def at(self, place: int) -> Step:
        """The step at *place*, which has been read."""
        return self._reader.at(place)

    def iter_steps(self) -> Iterator[Step]:
        """All steps, with their outcomes."""
        self.index()
        return (self.at(place) for place in range(len(self._index)))

    def find(self, terms: Sequence[Term], start: int = 0, count: int = 100, seconds: float = 1.0) -> Found:
        """Steps from place *start* on that fit all *terms*, as many as are found in about so long."""
        deadline = time.monotonic() + seconds
        places: list[int] = []
        place = start
        while len(places) < count and time.monotonic() < deadline:
            with self._lock:
                self._reach(place, place + 1)
                if place >= len(self._index):
                    break
                if self.fits(place, terms):
                    places.append(place)
            place += 1
        is_end = self._is_complete and place >= len(self._index)
        return Found(steps=[self.at(each) for each in places], next_place=None if is_end else place)

    def fits(self, place: int, terms: Sequence[Term]) -> bool:
        """Whether a step that has been read fits all *terms*."""
        return all(term.fits(self._source, self._index, place) for term in terms)

    def place_of(self, seq: int) -> int:
        """Which step the event *seq* began or ended; :class:`UsageError` where it did neither."""
        self._reach_event(seq)
        place = self._index.place_of(seq)
        if place is None:
            raise UsageError(f"{self._source.file}: event {seq} is no step; see it with --at {seq}")
        return place

    def detail(self, seq: int) -> Detail:
        """The step that the event *seq* began or ended, in full."""
        place = self.place_of(seq)
        with self._lock:
            self._reach(place, place + 1)
            return detail_of(self._source, self.at(place))

    def content(self, place: int) -> Content:
        """What the step at *place* says, in the form in which runs are compared."""
        with self._lock:
            return content_of(self._source, self.at(place))

    def borrow_blobs(self, other: Artifact) -> None:
        """Look for payloads in *other* where this artifact came without its own."""
        self._source.borrow_blobs(other._source)

    def event(self, seq: int) -> Any:
        """The event *seq* as it stands in the artifact, payloads in their place."""
        with self._lock:
            raw = self._source.find_alone(seq)
            if raw is None:
                self._reach_event(seq)
                raw = self._source.raw(seq)
            elif raw.get("seq") != seq:
                reason = f"expected {seq}, found {raw.get('seq')}"
                raise FormatError(reason, file=self._source.file, line=seq, json_path="$.seq")
            return raw | {"data": self._source.resolved(raw["data"])} if "data" in raw else raw

    def counts(self) -> Counts:
        """What there is, as far as it has been read."""
        index = self._index
        with self._lock:
            return Counts(
                events=self._source.count,
                steps=len(index),
                kinds=dict(index.kind_counts.most_common()),
                states={state: index.state_counts[state] for state in STATES if index.state_counts[state]},
                models=dict(index.models.most_common()),
                tokens=sum(index.tokens.values(), Tokens()) if index.tokens else None,
                cost=total_cost(index.tokens, self._prices),
                duration_ms=neat(index.end_ms),
                columns=index.columns,
                torn_bytes=self._source.torn_bytes if self._is_complete else 0,
                is_complete=self._is_complete,
                problem=None if self.problem is None else str(self.problem),
            )

    def close(self) -> None:
        """Let go of the file; nothing can be asked any more."""
        self._source.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def verify(self) -> None:
        """Hold the whole artifact against the digests it carries; raises where they do not fit."""
        self._source.verify()

    @property
    def rows(self) -> StepIndex:
        """The index itself, for those who count over all steps."""
        return self._index

    def _read_on(self) -> bool:
        """Take up the next block; whether there was one."""
        if self.problem is not None:
            self._is_complete = True
            return False
        before = self._source.read_bytes
        try:
            for head in self._source.read_on():
                self._index.add(head)
        except FormatError as error:
            self.problem = error
        self._is_complete = self.problem is not None or self._source.read_bytes == before
        return not self._is_complete

    def _reach(self, start: int, stop: int) -> None:
        """Read until the steps from *start* to *stop* are there, and on for those that have no outcome."""
        while len(self._index) < stop and self._read_on():
            pass
        limit = self._source.read_bytes + _AHEAD_BYTES
        while self._index.is_open(start, stop) and self._source.read_bytes < limit and self._read_on():
            pass

    def _reach_event(self, seq: int) -> None:
        with self._lock:
            while not 1 <= seq <= self._source.count and self._read_on():
                pass
            last = self._source.count
            if not 1 <= seq <= last:
                raise UsageError(f"{self._source.file}: there is no event {seq}; choose 1 to {last}")

"""An open run of any kind of artifact: its header, its steps page by page, any step in full.

    artifact = open_artifact("runs/triage")  # capture, events.jsonl, REPLAY.jsonl, replay.json, trace.json
    artifact.header()                # Header: kind, state, status, model, times, final output
    artifact.steps(0, 100)           # list[RunStep]: the first hundred, fast for a run of any size
    artifact.find(parse_terms(["tool:search", "error"]))  # Found: matching steps, and where to continue
    artifact.index(seconds=0.2)      # reads on; True when everything has been read
    artifact.counts()                # Counts: steps, kinds, states, tokens, cost of the part read so far
    artifact.detail(17)              # Detail: the step of event 17 in full
    artifact.event(17)               # that event with its references resolved
    artifact.close()                 # or: with open_artifact(path) as artifact

Opening reads only the first and the last event. A page reads as far as it needs, and up to a limit further
for outcomes; a step is ``open`` until its outcome is read. All results are plain data, which
``msgspec.to_builtins`` converts to JSON. All methods are thread-safe.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from functools import partial
from pathlib import Path
from threading import RLock
from typing import Any, Final, NamedTuple

import msgspec

from reenact.analysis.brief import drop_noise
from reenact.analysis.content import Content, content_of, detail_of
from reenact.analysis.index import STATES, StepIndex, Term, Tokens, cost_of, total_cost
from reenact.analysis.steps import Detail, RunStep, describe_outcome, describe_request, event_with_blobs
from reenact.check.kinds import MANIFESTS, RUN_FILES, find_kind
from reenact.errors import FormatError, StoreError, UsageError, relabel_errors
from reenact.formats.workspace import WORKSPACE
from reenact.progress import ProgressBar, no_progress_bar
from reenact.store.remote import find_local, local_run, remote_name
from reenact.store.rundir import refuse_index
from reenact.suite.settings import Price
from reenact.trace.sources.capture import CaptureSource, EventsSource
from reenact.trace.sources.replay_log import ReplayLogSource
from reenact.trace.sources.source import Header, RunSource
from reenact.trace.sources.trace import TraceSource

_AHEAD_BYTES: Final = 16 * 1024 * 1024
"""How far a page looks ahead for the outcomes of its calls."""


class Counts(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, kw_only=True):
    """Counts over the part of the run that has been read."""

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
    """The number of columns that parallel steps need."""
    torn_bytes: int
    is_complete: bool
    """Whether everything has been read; for a run that is being recorded, everything so far."""
    problem: str | None = None
    """Where reading ended early, and why."""


class Found(msgspec.Struct, frozen=True, rename="camel"):
    """Steps that match a search."""

    steps: list[RunStep]
    next_place: int | None
    """Where to continue the search; ``None`` at the end."""


class RunCopy(NamedTuple):
    """The temporary local copy of a run at an address or in a pack."""

    folder: Path
    label: str
    """The name of the run for users."""
    stack: ExitStack
    """Removes the copy."""


class Artifact(AbstractContextManager["Artifact"]):
    """One open run; *prices* are for computing costs."""

    def __init__(
        self, source: RunSource, prices: Mapping[str, Price] | None = None, copy: RunCopy | None = None
    ) -> None:
        """*copy* is the local copy of a run that is elsewhere; closing the artifact removes it."""
        self.source = source
        """The reader of the events."""
        self._copy = copy
        self._relabel_errors: Callable[[], AbstractContextManager[None]] = (
            nullcontext if copy is None else partial(relabel_errors, str(copy.folder), copy.label)
        )
        """Errors in its block name the run as users do."""
        self._prices = dict(prices or {})
        self.rows = StepIndex()
        """The index of the steps read so far."""
        self._lock = RLock()
        self._is_complete = False
        self.problem: FormatError | None = None
        """The first damage found; the steps before it are available."""

    @property
    def path(self) -> str:
        return self.source.path if self._copy is None else self._copy.label

    @property
    def size_bytes(self) -> int:
        return self.source.size_bytes

    @property
    def read_bytes(self) -> int:
        """The number of bytes read so far, for a progress bar."""
        return self.source.read_bytes

    def header(self) -> Header:
        """The facts about the run; they may change while it is being recorded."""
        with self._relabel_errors():
            header = self.source.header()
        return header if self._copy is None else msgspec.structs.replace(header, path=self._copy.label)

    def index(self, seconds: float | None = None) -> bool:
        """Read on for about *seconds*, or to the end; returns whether everything has been read.

        Call it again to read what was added to a growing file.
        """
        deadline = math.inf if seconds is None else time.monotonic() + seconds
        with self._lock:
            while self._read_on() and time.monotonic() < deadline:
                pass
            return self._is_complete

    def __len__(self) -> int:
        """The number of steps read so far."""
        return len(self.rows)

    def steps(self, start: int = 0, count: int = 100) -> list[RunStep]:
        """The steps from place *start*; fewer than *count* only at the end of the run."""
        with self._lock:
            self._reach(start, start + count)
            places = range(max(0, start), min(start + count, len(self.rows)))
        return [self.at(place) for place in places]

    def at(self, place: int) -> RunStep:
        """The step at *place*, which has been read."""
        index = self.rows
        seq, outcome_seq = index.seq[place], index.outcome_seq[place]
        parent, mask = index.parent[place], index.beside[place]
        name = index.names[index.name[place]]
        tokens = Tokens(index.input_tokens[place], index.output_tokens[place], index.cached_tokens[place])
        has_tokens = tokens.input + tokens.output > 0
        took_ms, utility = index.took_ms[place], index.utility[place]
        began = event_with_blobs(self.source, seq)
        return RunStep(
            seq=seq,
            place=place,
            outcome_seq=outcome_seq or None,
            kind=index.kinds[index.kind[place]],
            name=name,
            derived=began.data.get("derived") is True,
            lane=index.lanes[index.lane[place]],
            depth=index.depth[place],
            parent_seq=index.seq[parent] if parent >= 0 else None,
            column=index.column[place],
            beside=tuple(bit for bit in range(mask.bit_length()) if mask >> bit & 1) if mask else (),
            at_ms=drop_noise(index.at_ms[place]),
            took_ms=None if math.isnan(took_ms) else drop_noise(took_ms),
            state=STATES[index.state[place]],
            tokens=tokens if has_tokens else None,
            cost=cost_of(name, tokens, self._prices) if has_tokens and self._prices else None,
            utility=None if math.isnan(utility) else drop_noise(utility),
            asked=describe_request(began),
            came=describe_outcome(event_with_blobs(self.source, outcome_seq)) if outcome_seq else "",
        )

    def find(self, terms: Sequence[Term], start: int = 0, count: int = 100, seconds: float = 1.0) -> Found:
        """Steps from place *start* on that match all *terms*, as many as are found in about *seconds*."""
        deadline = time.monotonic() + seconds
        places: list[int] = []
        place = start
        while len(places) < count and time.monotonic() < deadline:
            with self._lock:
                self._reach(place, place + 1)
                if place >= len(self.rows):
                    break
                if self.fits(place, terms):
                    places.append(place)
            place += 1
        is_end = self._is_complete and place >= len(self.rows)
        return Found(steps=[self.at(each) for each in places], next_place=None if is_end else place)

    def fits(self, place: int, terms: Sequence[Term]) -> bool:
        """Whether a step that has been read matches all *terms*."""
        return not terms or all(term.fits(self.source, self.rows, place) for term in terms)

    def place_of(self, seq: int) -> int:
        """The place of the step that event *seq* began or ended; :class:`UsageError` if it did neither."""
        self._reach_event(seq)
        place = self.rows.place_of(seq)
        if place is None:
            raise UsageError(f"{self.source.file}: event {seq} is not a step; see it with --at {seq}")
        return place

    def detail(self, seq: int) -> Detail:
        """The step that the event *seq* began or ended, in full."""
        place = self.place_of(seq)
        with self._lock, self._relabel_errors():
            self._reach(place, place + 1)
            return detail_of(self.source, self.at(place))

    def content(self, place: int) -> Content:
        """The content of the step at *place*, in the form in which runs are compared."""
        with self._lock, self._relabel_errors():
            return content_of(self.source, self.rows, place)

    def event(self, seq: int) -> Any:
        """The event *seq* as in the artifact, with its references resolved."""
        with self._lock, self._relabel_errors():
            found = self.source.find_directly(seq)
            if found is not None:
                return found
            self._reach_event(seq)
            raw = self.source.raw(seq)
            return raw | {"data": self.source.resolve(raw["data"])} if "data" in raw else raw

    def changed_files(self, seq: int) -> list[str]:
        """The lines of a diff, if the event *seq* is a change of the run's files."""
        with self._lock, self._relabel_errors():
            self._reach_event(seq)
            event = self.source.event(seq)
            lines = event.data.get("details") if event is not None else None
            return lines if isinstance(lines, list) else []

    def event_with_files(self, seq: int) -> Any:
        """The event *seq*; if it is a change of the run's files, with the lines of their diff."""
        event = self.event(seq)
        is_change = event.get("type") == "state_mutation" and event.get("data", {}).get("type") == WORKSPACE
        return event | {"files": self.changed_files(seq)} if is_change else event

    def counts(self) -> Counts:
        """Counts over the part of the run that has been read."""
        index = self.rows
        states: dict[str, int] = {}
        with self._lock:
            for state in STATES:
                if index.state_counts[state]:
                    states[state] = index.state_counts[state]
            return Counts(
                events=self.source.count,
                steps=len(index),
                kinds=dict(index.kind_counts.most_common()),
                states=states,
                models=dict(index.models.most_common()),
                tokens=sum(index.tokens.values(), Tokens()) if index.tokens else None,
                cost=total_cost(index.tokens, self._prices),
                duration_ms=drop_noise(index.end_ms),
                columns=index.columns,
                torn_bytes=self.source.torn_bytes if self._is_complete else 0,
                is_complete=self._is_complete,
                problem=None if self.problem is None else str(self.problem),
            )

    def close(self) -> None:
        """Close the file, and remove the local copy if there is one."""
        self.source.close()
        if self._copy is not None:
            self._copy.stack.close()

    def __exit__(self, *_: object) -> None:
        self.close()

    def verify(self) -> None:
        """Compare the whole artifact with the digests in it; raises if they differ."""
        with self._relabel_errors():
            self.source.verify()

    def find_problem(self) -> FormatError | None:
        """Compare the artifact with its digests; returns what is wrong, or where reading it stopped."""
        try:
            self.verify()
        except FormatError as error:
            return error
        return self.problem

    def _read_on(self) -> bool:
        """Add the next block of events to the index; returns whether there was one."""
        if self.problem is not None:
            self._is_complete = True
            return False
        before = self.source.read_bytes
        try:
            with self._relabel_errors():
                for head in self.source.read_on():
                    self.rows.add(head)
        except FormatError as error:
            self.problem = error
        self._is_complete = self.problem is not None or self.source.read_bytes == before
        return not self._is_complete

    def _reach(self, start: int, stop: int) -> None:
        """Read until the steps from *start* to *stop* are known, and further for missing outcomes."""
        while len(self.rows) < stop and self._read_on():
            pass
        limit = self.source.read_bytes + _AHEAD_BYTES
        while self.rows.is_open(start, stop) and self.source.read_bytes < limit and self._read_on():
            pass

    def _reach_event(self, seq: int) -> None:
        with self._lock:
            while not 1 <= seq <= self.source.count and self._read_on():
                pass
            last = self.source.count
            if self.problem is not None and seq > last:
                raise self.problem
            if not 1 <= seq <= last:
                raise UsageError(f"{self.source.file}: there is no event {seq}; choose 1 to {last}")


_READABLE: Final = "name a capture directory, an events.jsonl, a REPLAY.jsonl, a replay.json or a trace.json"


def open_artifact(path: str | Path, prices: Mapping[str, Price] | None = None) -> Artifact:
    """Open the run in *path*, at an address or in a pack (:mod:`reenact.store.remote`).

    Raises :class:`FormatError` or :class:`StoreError` if there is no readable run.
    """
    local = find_local(path)
    if local is not None:
        return Artifact(_open_source(local), prices)
    with ExitStack() as stack:
        folder = stack.enter_context(local_run(path))
        return Artifact(_open_source(folder), prices, RunCopy(folder, remote_name(path), stack.pop_all()))


def read_whole(artifact: Artifact, progress_bar: ProgressBar = no_progress_bar) -> None:
    """Read *artifact* to its end, with a progress bar."""
    source = artifact.source
    with progress_bar(source.size_bytes, "reading") as progress:
        done_bytes = 0
        while not artifact.index(seconds=0.1):
            progress(source.read_bytes - done_bytes)
            done_bytes = source.read_bytes


def _open_source(path: Path) -> RunSource:
    is_inside = path.name in ("events.jsonl", *MANIFESTS) and not path.is_dir()
    directory = path.parent if is_inside else path
    for manifest in MANIFESTS:
        if (directory / manifest).exists():
            return CaptureSource(directory)
    file = path
    if path.is_dir():
        found = [path / name for name in RUN_FILES if (path / name).is_file()]
        if not found:
            refuse_index(path)
            raise StoreError(f"{path}: holds no run; {_READABLE}")
        file = found[0]
    # git passes /dev/null for the missing side of a new or deleted file.
    kind = "events" if str(file) == os.devnull else find_kind(file)
    if kind == "events":
        return EventsSource(file)
    if kind == "replay log":
        return ReplayLogSource(file)
    if kind == "bundle" or kind == "trace":
        return TraceSource(file, kind)
    raise FormatError(f"not a run; {_READABLE}", file=str(file))


class StepMoment(NamedTuple):
    """The beginning of a step, its end, or both in one event."""

    seq: int
    at_ms: float
    """Since the first event."""
    step: RunStep
    begins: bool
    ends: bool


class Playback:
    """Returns the moments that *artifact* has read since the last call."""

    def __init__(self, artifact: Artifact) -> None:
        self._artifact = artifact
        self._next_place = 0
        self._open: set[int] = set()

    def moments(self) -> Iterator[StepMoment]:
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

    def _moment(self, seq: int, place: int) -> StepMoment:
        step = self._artifact.at(place)
        begins, ends = seq == step.seq, seq == step.outcome_seq
        at_ms = step.at_ms if begins else step.at_ms + (step.took_ms or 0)
        return StepMoment(seq, at_ms, step, begins, ends)

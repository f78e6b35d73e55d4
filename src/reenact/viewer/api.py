"""The requests of the page: every answer is JSON of limited size, read from the run on demand."""

from __future__ import annotations

import shlex
import time
from array import array
from bisect import bisect_left
from collections.abc import Callable, Mapping
from pathlib import Path
from threading import Lock
from typing import Any, Final, TypeAlias

import msgspec

from reenact.analysis.artifact import Artifact
from reenact.analysis.compare import Comparison
from reenact.analysis.fork_tree import fork_links
from reenact.analysis.index import Term, parse_terms
from reenact.comparing.json_changes import JsonChange
from reenact.errors import UsageError
from reenact.viewer.conversation import read_turns
from reenact.viewer.jobs import Comparisons, VerificationJobs, can_verify
from reenact.viewer.shelf import Shelf
from reenact.viewer.what_if import fork_choices, tree_of
from reenact.workspace.files import list_moments, read_moment

_SEARCH_SECONDS: Final = 0.2
_BATCH: Final = 64
"""Steps that are checked between two readings of the clock."""


class StepFilter(msgspec.Struct, frozen=True):
    """A search; empty fields match everything."""

    kind: str = ""
    state: str = ""
    words: str = ""
    """Terms of ``reenact show --filter``; other words are searched as text."""

    @property
    def is_all(self) -> bool:
        return not (self.kind or self.state or self.words)

    def terms(self) -> tuple[Term, ...]:
        chosen = [Term(key, (value,)) for key, value in (("kind", self.kind), ("state", self.state)) if value]
        return (*chosen, *(term for word in _words(self.words) for term in _term(word)))


class StepSearch:
    """The steps of *artifact* that match *wanted*, found so far."""

    def __init__(self, artifact: Artifact, wanted: StepFilter) -> None:
        self._artifact = artifact
        self._terms = wanted.terms()
        self._next = 0
        self._lock = Lock()
        self.places = array("I")

    @property
    def is_complete(self) -> bool:
        return self._artifact.index(0) and self._next >= len(self._artifact)

    def advance(self, seconds: float) -> None:
        """Continue the search for about *seconds*."""
        deadline = time.monotonic() + seconds
        with self._lock:
            while time.monotonic() < deadline and not self.is_complete:
                self._search_batch()

    def row_of(self, place: int) -> int | None:
        """The row of the step at *place*; ``None`` if it does not match."""
        while self._next <= place and not self.is_complete:
            self.advance(_SEARCH_SECONDS)
        row = bisect_left(self.places, place)
        return row if row < len(self.places) and self.places[row] == place else None

    def seq_near(self, seq: int, *, is_back: bool) -> int | None:
        """The event of the next matching step after event *seq*, or of the last one before it."""
        seqs = self._artifact.rows.seq
        while not self.is_complete and (is_back or not self.places or seqs[self.places[-1]] <= seq):
            self.advance(_SEARCH_SECONDS)
        row = bisect_left(self.places, seq, key=seqs.__getitem__)
        if is_back:
            return seqs[self.places[row - 1]] if row else None
        found = next((place for place in self.places[row : row + 2] if seqs[place] > seq), None)
        return None if found is None else seqs[found]

    def _search_batch(self) -> None:
        end = min(self._next + _BATCH, len(self._artifact))
        fits = self._artifact.fits
        self.places.extend(place for place in range(self._next, end) if fits(place, self._terms))
        self._next = end


def _words(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError:  # an open quotation that is still being typed
        return text.split()


def _term(word: str) -> tuple[Term, ...]:
    try:
        return parse_terms([word])
    except UsageError:
        return (Term("text", (word,)),)


TEXT_CHARACTERS: Final = 200_000
LIST_ITEMS: Final = 5_000
WHOLE_CHARACTERS: Final = 2_000_000


class Bounded:
    """Shortens values; ``is_short`` then says whether anything was left out."""

    def __init__(self, characters: int = WHOLE_CHARACTERS) -> None:
        self._left = characters
        self.is_short = False

    def __call__(self, value: object) -> Any:
        if isinstance(value, str):
            return self._text(value)
        if isinstance(value, list | tuple):
            return [self(child) for child in self._items(value)]
        if isinstance(value, dict):
            return {self._text(key): self(child) for key, child in self._items(list(value.items()))}
        self._left -= 8
        return value

    def _items(self, items: Any) -> Any:
        kept = items[: LIST_ITEMS if self._left > 0 else 0]
        self.is_short = self.is_short or len(kept) < len(items)
        return kept

    def _text(self, text: str) -> str:
        length = max(0, min(TEXT_CHARACTERS, self._left))
        self._left -= min(len(text), length) + 8
        if len(text) <= length:
            return text
        self.is_short = True
        return f"{text[:length]}… ({len(text) - length:,} more characters)"


Query: TypeAlias = Mapping[str, str]
ApiAnswer: TypeAlias = dict[str, Any]

_PAGE: Final = 500
_SLICE_SECONDS: Final = 0.2
"""How long one request may read in a run that is not completely read."""
_SEARCHES: Final = 16
_LONG_TEXT: Final = 40


class Api:
    """The requests by name; each takes the parameters of the query."""

    def __init__(self, shelf: Shelf) -> None:
        self._shelf = shelf
        self._verification = VerificationJobs()
        self._comparisons = Comparisons()
        self._searches: dict[tuple[Artifact, StepFilter], StepSearch] = {}
        self._of_a_run: dict[str, Callable[[Artifact, Query], ApiAnswer]] = {
            "run": self.run,
            "steps": self.steps,
            "place": self.place,
            "failure": self.failure,
            "detail": self.detail,
            "conversation": self.conversation,
            "divergences": self.divergences,
            "check": self.check,
            "forks": self.forks,
            "files": self.files,
            "files-at": self.files_at,
        }
        self._of_two_runs: dict[str, Callable[[Comparison, Query], ApiAnswer]] = {
            "diff": self.diff,
            "diff-rows": self.diff_rows,
            "diff-change": self.diff_change,
        }

    def ask(self, question: str, query: Query) -> ApiAnswer:
        """The answer; :class:`UsageError` for an unknown request or run."""
        if question == "runs":
            return self.runs(query)
        if question == "shadow":
            return self.shadow(query)
        if question in self._of_two_runs:
            return self._answer_on_two_runs(question, query)
        if question not in self._of_a_run:
            raise UsageError(f"{question!r} is not a question")
        with self._shelf.open(query.get("run", "")) as artifact:
            return self._of_a_run[question](artifact, query)

    def runs(self, query: Query) -> ApiAnswer:
        """A page of the list of runs; the first page is read from disk again."""
        start, count = _page(query)
        if start == 0:
            self._shelf.refresh()
        ids = self._shelf.ids
        rows = [msgspec.to_builtins(self._shelf.line(run)) for run in ids[start : start + count]]
        reports = self._shelf.shadow_reports.lines() if start == 0 else []
        return {"total": len(ids), "rows": rows, "shadowReports": reports}

    def shadow(self, query: Query) -> ApiAnswer:
        """A shadow report, by the name of its file."""
        report = self._shelf.shadow_reports.report(query.get("name", ""), self._shelf.paths)
        answer: ApiAnswer = Bounded()(report)
        return answer

    def run(self, artifact: Artifact, query: Query) -> ApiAnswer:
        """The header of a run and the counts so far; with ``more`` it reads on."""
        artifact.index(_SLICE_SECONDS if "more" in query else 0)
        header = artifact.header()
        return {
            "line": msgspec.to_builtins(self._shelf.line(query["run"])),
            "header": Bounded()(msgspec.to_builtins(header)),
            "counts": msgspec.to_builtins(artifact.counts()),
            "share": artifact.read_bytes / max(1, artifact.size_bytes),
            "divergences": self._shelf.receipts.count(header.capture_id),
            "diverged": self._shelf.receipts.diverged_events(header.capture_id),
            "canVerify": can_verify(header.kind),
            "hasFiles": _has_files(artifact),
            "canFork": header.kind == "capture" and header.state in ("complete", "recovered"),
        }

    def steps(self, artifact: Artifact, query: Query) -> ApiAnswer:
        """A page of the matching steps, and their known number."""
        start, count = _page(query)
        wanted = _read_filter(query)
        if wanted.is_all:
            rows = artifact.steps(start, count)
            # A request for rows is answered at once; one without rows waits for the end.
            is_complete = artifact.index(0 if count else _SLICE_SECONDS)
            total = len(artifact)
        else:
            search = self._search(artifact, wanted)
            search.advance(_SLICE_SECONDS)
            rows = [artifact.at(place) for place in search.places[start : start + count]]
            total, is_complete = len(search.places), search.is_complete
        return {"total": total, "isComplete": is_complete, "rows": msgspec.to_builtins(rows)}

    def place(self, artifact: Artifact, query: Query) -> ApiAnswer:
        """The row of an event among the matching steps; null if it is not one of them."""
        wanted = _read_filter(query)
        try:
            place = artifact.place_of(_number(query, "seq", 1))
        except UsageError:
            return {"row": None}
        if wanted.is_all:
            return {"row": place}
        return {"row": self._search(artifact, wanted).row_of(place)}

    def failure(self, artifact: Artifact, query: Query) -> ApiAnswer:
        """The event of the nearest failed matching step after an event, or with ``back`` before it."""
        wanted = msgspec.structs.replace(_read_filter(query), state="error")
        seq, is_back = _number(query, "seq", 0), "back" in query
        return {"seq": self._search(artifact, wanted).seq_near(seq, is_back=is_back)}

    def detail(self, artifact: Artifact, query: Query) -> ApiAnswer:
        """The step of an event in full, or the event alone if it belongs to no step."""
        seq = _number(query, "seq", 1)
        bounded = Bounded()
        try:
            artifact.place_of(seq)
        except UsageError:
            answer = {"events": [bounded(artifact.event(seq))]}
        else:
            detail = artifact.detail(seq)
            answer = bounded(msgspec.to_builtins(detail)) | {"fork": fork_choices(artifact.header(), detail)}
        return answer | {"isShort": bounded.is_short}

    def conversation(self, artifact: Artifact, query: Query) -> ApiAnswer:
        """Turns, from the step at a place on."""
        start, count = _page(query)
        answer: ApiAnswer = Bounded()(msgspec.to_builtins(read_turns(artifact, start, count)))
        return answer

    def divergences(self, artifact: Artifact, _: Query) -> ApiAnswer:
        """The replay receipts of the run."""
        return {"receipts": Bounded()(self._shelf.receipts.of(artifact.header().capture_id))}

    def forks(self, artifact: Artifact, _: Query) -> ApiAnswer:
        """The tree of forks that the run belongs to."""
        return {"nodes": Bounded()(tree_of(artifact, self._shelf.paths))}

    def files(self, artifact: Artifact, _: Query) -> ApiAnswer:
        """The moments with known files, with the number of changes before each."""
        return {"moments": [msgspec.to_builtins(moment) for moment in list_moments(artifact.path)]}

    def files_at(self, artifact: Artifact, query: Query) -> ApiAnswer:
        """The files at one moment, and the changes since the one before."""
        bounded = Bounded()
        found = bounded(msgspec.to_builtins(read_moment(artifact.path, _number(query, "number", 0))))
        return {"files": found.get("files", []), "changes": found["changes"], "isShort": bounded.is_short}

    def check(self, artifact: Artifact, _: Query) -> ApiAnswer:
        """The progress of the check of the run; the first request starts it."""
        return self._verification.ask(Path(artifact.path), artifact.size_bytes).to_json()

    def diff(self, comparison: Comparison, _: Query) -> ApiAnswer:
        """The counts of equal and different steps of two runs."""
        return {
            "total": len(comparison),
            "counts": comparison.counts,
            "first": comparison.first,
            "totals": msgspec.to_builtins(comparison.totals()),
            "outcome": Bounded()(msgspec.to_builtins(comparison.outcome())),
            "forks": self._fork_links(comparison),
        }

    def _fork_links(self, comparison: Comparison) -> list[str]:
        """How the two runs are related as forks, by their names here."""
        names = {str(path.resolve()): name for name, path in self._shelf.paths.items()}
        found = fork_links(comparison.left.path, comparison.right.path)
        named = ((link, Path(link.path).resolve(), Path(link.parent).resolve()) for link in found)
        return [
            str(
                msgspec.structs.replace(
                    link, path=names.get(str(path), path.name), parent=names.get(str(parent), parent.name)
                )
            )
            for link, path, parent in named
        ]

    def diff_rows(self, comparison: Comparison, query: Query) -> ApiAnswer:
        """A page of steps beside their counterparts."""
        rows = comparison.rows(*_page(query))
        return {"total": len(comparison), "isComplete": True, "rows": msgspec.to_builtins(rows)}

    def diff_change(self, comparison: Comparison, query: Query) -> ApiAnswer:
        """One row in full."""
        place = _number(query, "place", 0)
        if place >= len(comparison):
            raise UsageError(f"there is no row {place}")
        change = comparison.change(place)
        texts = {one.path: one.text_diff() for one in change.changes if one.text_diff()}
        words = {one.path: one.word_diff() for one in change.changes if _needs_marks(one)}
        answer: ApiAnswer = Bounded()(msgspec.to_builtins(change) | {"texts": texts, "words": words})
        return answer

    def _answer_on_two_runs(self, question: str, query: Query) -> ApiAnswer:
        paths = self._shelf.path(query.get("a", "")), self._shelf.path(query.get("b", ""))
        with self._comparisons.open(*paths) as asked:
            if asked.comparison is None:
                return {"share": asked.share}
            return self._of_two_runs[question](asked.comparison, query)

    def _search(self, artifact: Artifact, wanted: StepFilter) -> StepSearch:
        search = self._searches.pop((artifact, wanted), None) or StepSearch(artifact, wanted)
        self._searches[artifact, wanted] = search
        while len(self._searches) > _SEARCHES:
            del self._searches[next(iter(self._searches))]
        return search


def _has_files(artifact: Artifact) -> bool:
    """Whether the run has recorded files."""
    if artifact.header().kind != "capture":
        return False
    data = artifact.event(1).get("data")
    return isinstance(data, dict) and "workspace" in data


def _page(query: Query) -> tuple[int, int]:
    return _number(query, "from", 0), min(_number(query, "count", _PAGE), _PAGE)


def _read_filter(query: Query) -> StepFilter:
    return StepFilter(query.get("kind", ""), query.get("state", ""), query.get("q", "")[:1000])


def _number(query: Query, name: str, otherwise: int) -> int:
    text = query.get(name, str(otherwise))
    if not (text.isascii() and text.isdigit() and len(text) < 16):
        raise UsageError(f"{name}={text!r} is not a number")
    return int(text)


def _needs_marks(change: JsonChange) -> bool:
    """Whether to mark the words that differ: in texts of several words, and in long texts."""
    left, right = change.left, change.right
    if not (isinstance(left, str) and isinstance(right, str)):
        return False
    return max(len(left), len(right)) > _LONG_TEXT or min(len(left.split()), len(right.split())) > 1

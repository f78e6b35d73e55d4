"""Compares two runs: aligns their steps and finds the differences of each pair.

    comparison = Comparison(open_artifact("runs/a"), open_artifact("runs/b"))
    comparison.first                             # the place of the first difference, or None
    comparison.counts                            # {"same": 40, "changed": 2, "added": 1, "removed": 0}
    comparison.rows(0, 100)                      # list[DiffRow]: mark, left and right RunStep
    comparison.change(7)                         # Change: row 7 with the paths at which it differs
    comparison.changes()                         # all that differ, one after the other
    comparison.totals(), comparison.outcome()    # tokens, time, cost of both; differences of their ends

Values of clocks and random sources are expected to differ and are compared only if *strict* is set.
Artifacts of different kinds are compared by what both formats can hold; *left_out* counts the other steps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, TypeAlias

import msgspec

from reenact.analysis.artifact import Artifact, open_artifact, read_whole
from reenact.analysis.content import Content, common_content
from reenact.analysis.fork_tree import ForkLink, fork_links
from reenact.analysis.steps import RunStep
from reenact.comparing.alignment import Item, align, words_in_common
from reenact.comparing.json_changes import JsonChange, json_changes
from reenact.formats.capture import without_marks
from reenact.progress import ProgressBar, no_progress_bar
from reenact.store.paths import takes_addresses
from reenact.suite.settings import Price
from reenact.workspace.files import ChangedFile, compare_ends

_HELD: Final[Mapping[str, frozenset[str]]] = {
    "trace": frozenset({"tool", "model", "state", "message", "error", "verification"}),
    "bundle": frozenset({"tool", "state", "message", "error"}),
    "replay-log": frozenset({"tool", "plan", "verification"}),
}
"""The kinds of steps that a format can hold."""
_FAMILIES: Final[Mapping[str, str]] = {"events": "capture", "replay-log-legacy": "replay-log"}
"""Formats that can hold the same as another one."""
_NOT_IN_CAPTURES: Final = frozenset({"message", "error", "verification", "plan"})
"""Captures can hold all kinds but these; each source of nondeterminism is a kind there."""

StepWatch: TypeAlias = Callable[[int], None]
"""Called with the number of steps that were read."""


class Side:
    """One run in a comparison: the steps that the format of the other run can hold as well."""

    def __init__(self, artifact: Artifact, family: str, beside: str, watch: StepWatch) -> None:
        artifact.index()
        self.artifact = artifact
        self._is_coarse = family != beside
        rows = artifact.rows
        self.places: Sequence[int] = range(len(rows))
        if self._is_coarse:
            self.places = [
                place for place in self.places if _is_in_family(beside, rows.kinds[rows.kind[place]])
            ]
        self._numbers = dict(zip(self.places, count(), strict=False))
        self.items: list[Item] = []
        self.came: list[str] = []
        self._words: dict[int, frozenset[str]] = {}
        for place in self.places:
            content = self.content(place)
            kind, name = rows.kinds[rows.kind[place]], rows.names[rows.name[place]]
            asked = "" if self._is_coarse and kind == "model" else content.request_digest
            # The part of a call's name that does not depend on its arguments, such as the host of a URL.
            method, scheme, address = name.partition("://")
            stable_name = f"{method}{scheme}{address.partition('/')[0]}"
            lane = rows.lanes[rows.lane[place]]
            self.items.append(Item((kind, name, asked), (kind, stable_name), lane, self._parent(place)))
            self.came.append("" if content.is_chance or self._is_coarse else content.outcome_digest)
            watch(1)

    def content(self, place: int) -> Content:
        """The content of the step, without marks of secrets unless digests of the other format cover them."""
        content = self.artifact.content(place)
        if self._is_coarse:
            return content
        return content._replace(asked=without_marks(content.asked), came=without_marks(content.came))

    def _parent(self, place: int) -> int:
        """The number of the nearest compared call around the step."""
        parent = self.artifact.rows.parent[place]
        while parent >= 0 and parent not in self._numbers:
            parent = self.artifact.rows.parent[parent]
        return self._numbers.get(parent, -1)

    def words(self, number: int) -> frozenset[str]:
        """The words of the request of step *number*, shortened; cached, because it is compared with many."""
        found = self._words.get(number)
        if found is None:
            asked = self.artifact.at(self.places[number]).asked
            found = self._words[number] = frozenset(asked.split())
        return found


def similarity(ours: Side, theirs: Side, one: int, other: int) -> float:
    """The similarity of two calls of the same kind and name, by the words that their requests share."""
    return words_in_common(ours.words(one), theirs.words(other))


def _is_in_family(family: str, kind: str) -> bool:
    return kind not in _NOT_IN_CAPTURES if family == "capture" else kind in _HELD[family]


Mark: TypeAlias = Literal["same", "changed", "added", "removed"]
_MARKS: Final[tuple[Mark, ...]] = ("same", "changed", "added", "removed")


class DiffRow(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """One step of the left run, of the right run, or of both."""

    place: int
    mark: Mark
    left: RunStep | None = None
    right: RunStep | None = None


class Change(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """A row with its differences."""

    row: DiffRow
    changes: list[JsonChange] = []
    """Paths begin with ``$.asked`` or ``$.came``; empty for a step that only one run has."""


class Totals(msgspec.Struct, frozen=True, rename="camel"):
    """The totals of one run."""

    steps: int
    errors: int
    duration_ms: float
    input_tokens: int
    output_tokens: int
    cost: float | None


class _StepPair(NamedTuple):
    mark: Mark
    left: int | None
    """The place of the step in the left run."""
    right: int | None


class Comparison:
    """Two aligned runs; see the module for its methods."""

    def __init__(
        self, left: Artifact, right: Artifact, *, strict: bool = False, watch: StepWatch = lambda _: None
    ) -> None:
        """*watch* is called with 1 for every step that is read."""
        left.source.borrow_blobs(right.source)
        right.source.borrow_blobs(left.source)
        self.left, self.right = left, right
        self._strict = strict
        here, there = self._headers = left.header(), right.header()
        families = _FAMILIES.get(here.kind, here.kind), _FAMILIES.get(there.kind, there.kind)
        self._are_captures = families == ("capture", "capture")
        self._is_coarse = families[0] != families[1]
        self.has_files = here.has_files and there.has_files
        """Whether the files of both runs were recorded."""
        self.has_forks = here.forked_from is not None or there.forked_from is not None
        """Whether one of them is a fork, maybe of the other one."""
        ours, theirs = Side(left, *families, watch), Side(right, *families[::-1], watch)
        self._sides = ours, theirs
        self.left_out = len(left) - len(ours.places), len(right) - len(theirs.places)
        """The number of steps of each run that the format of the other cannot hold."""
        self._rows: list[_StepPair] = []
        self._differing: list[int] = []
        self.counts: dict[Mark, int] = dict.fromkeys(_MARKS, 0)
        """The number of rows with each mark."""
        for one, other in align(
            ours.items, theirs.items, lambda one, other: similarity(ours, theirs, one, other)
        ):
            row = self._compare_steps(one, other)
            self.counts[row.mark] += 1
            if row.mark != "same":
                self._differing.append(len(self._rows))
            self._rows.append(row)

    def __len__(self) -> int:
        """The number of rows."""
        return len(self._rows)

    @property
    def first(self) -> int | None:
        """The first row that differs."""
        return self._differing[0] if self._differing else None

    def rows(self, start: int = 0, count: int = 100) -> list[DiffRow]:
        """A page of rows."""
        return [self._row(place) for place in range(len(self._rows))[start : start + count]]

    def change(self, place: int) -> Change:
        """One row in full."""
        _, one, other = self._rows[place]
        if one is None or other is None:
            return Change(self._row(place))
        ours, theirs = self._sides
        return Change(self._row(place), self._differences(ours.content(one), theirs.content(other)))

    def changes(self) -> Iterator[Change]:
        """All rows that differ."""
        return map(self.change, self._differing)

    def outcome(self) -> list[JsonChange]:
        """The differences of the runs' ends and outputs, as far as both artifacts have them."""
        left, right = self._headers
        ours = {"status": left.status, "finalOutput": left.final_output}
        theirs = {"status": right.status, "finalOutput": right.final_output}
        if not self._are_captures:  # an artifact of another kind may have left something out
            for name in [name for name in ours if ours[name] is None or theirs[name] is None]:
                del ours[name], theirs[name]
        return json_changes(without_marks(ours), without_marks(theirs))

    def totals(self) -> tuple[Totals, Totals]:
        """Left and right."""
        return _count_totals(self.left), _count_totals(self.right)

    def _row(self, place: int) -> DiffRow:
        mark, one, other = self._rows[place]
        return DiffRow(
            place,
            mark,
            None if one is None else self.left.at(one),
            None if other is None else self.right.at(other),
        )

    def _compare_steps(self, one: int | None, other: int | None) -> _StepPair:
        """The row of two aligned steps, by their numbers on their sides, or of one step alone."""
        ours, theirs = self._sides
        if one is None or other is None:
            left = None if one is None else ours.places[one]
            right = None if other is None else theirs.places[other]
            return _StepPair("added" if one is None else "removed", left, right)
        left, right = ours.places[one], theirs.places[other]
        is_same = ours.items[one].key == theirs.items[other].key and ours.came[one] == theirs.came[other]
        if not is_same or self._strict or self._is_coarse:
            is_same = not self._differences(ours.content(left), theirs.content(right))
        return _StepPair("same" if is_same else "changed", left, right)

    def _differences(self, ours: Content, theirs: Content) -> list[JsonChange]:
        is_free = ours.is_chance and theirs.is_chance and not self._strict
        contents = common_content(ours, theirs), common_content(theirs, ours)
        left, right = ({"asked": each.asked, **({} if is_free else {"came": each.came})} for each in contents)
        if self._is_coarse:
            left, right = _common_members(left, right), _common_members(right, left)
        return json_changes(left, right)


def _common_members(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    """The members of *one* that *other* has too."""
    return {
        part: {name: value for name, value in one[part].items() if name in other[part]}
        for part in one
        if part in other
    }


def _count_totals(artifact: Artifact) -> Totals:
    counts = artifact.counts()
    tokens = counts.tokens
    return Totals(
        steps=counts.steps,
        errors=counts.states.get("error", 0),
        duration_ms=counts.duration_ms,
        input_tokens=tokens.input if tokens else 0,
        output_tokens=tokens.output if tokens else 0,
        cost=counts.cost,
    )


class BothTotals(msgspec.Struct, frozen=True):
    """The totals of the two runs."""

    left: Totals
    right: Totals


class DiffReport(msgspec.Struct, frozen=True, rename="camel"):
    """The differences of two runs."""

    left: str
    right: str
    equal: bool
    """Whether the runs have equal steps and equal outputs."""
    first: int | None
    """The place of the first row that differs."""
    counts: dict[Mark, int]
    left_out: tuple[int, int]
    """The number of steps of each run that the format of the other cannot hold."""
    totals: BothTotals
    outcome: list[JsonChange]
    """The differences of the runs' ends and outputs."""
    changes: list[Change]
    """Every row that differs."""
    files: list[ChangedFile] = []
    """The files at the end that differ, if the files of both runs were recorded."""
    forks: list[ForkLink] = []
    """The forks between the runs, if one is a fork of the other or both come from one run."""


@takes_addresses("left", "right")
def diff(
    left: str | Path,
    right: str | Path,
    *,
    strict: bool = False,
    prices: Mapping[str, Price] | None = None,
    progress_bar: ProgressBar = no_progress_bar,
) -> DiffReport:
    """Compare two runs, aligned by their calls: captures, logs, bundles or traces, in any combination.

    With *strict*, values of clocks and random sources are compared too; *prices* are for computing costs.
    """
    with open_artifact(left, prices) as ours, open_artifact(right, prices) as theirs:
        for artifact, path in ((ours, left), (theirs, right)):
            read_whole(artifact, progress_bar)
            if artifact.problem is not None:
                raise artifact.problem
            if Path(path).is_dir():  # git difftool passes only the changed file
                artifact.verify()
        with progress_bar(len(ours) + len(theirs), "comparing") as watch:
            comparison = Comparison(ours, theirs, strict=strict, watch=watch)
        files = compare_ends(left, right) if comparison.has_files else []
        first, outcome = comparison.first, comparison.outcome()
        return DiffReport(
            left=ours.path,
            right=theirs.path,
            equal=first is None and not outcome and not files,
            first=first,
            counts=comparison.counts,
            left_out=comparison.left_out,
            totals=BothTotals(*comparison.totals()),
            outcome=outcome,
            changes=list(comparison.changes()),
            files=files,
            forks=fork_links(ours.path, theirs.path) if comparison.has_forks else [],
        )

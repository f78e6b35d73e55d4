"""The runs that folders and indexes hold: what each says of itself, and the trees of their forks."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from reenact.analysis.artifact import open_artifact
from reenact.analysis.fork_tree import ForkNode, list_ancestors, list_trees, runs_around
from reenact.check.kinds import is_folder_of_runs, name_runs
from reenact.corpus.parts import is_corpus, local_corpus, read_corpus
from reenact.corpus.query import open_query
from reenact.corpus.sources import CorpusRoot, path_of
from reenact.errors import FormatError, StoreError, UsageError
from reenact.store.remote import is_remote, path_here
from reenact.trace.sources.source import Header


class RunsReport(NamedTuple):
    """The runs in folders and indexes."""

    runs: list[Header]
    """In path order."""
    problems: list[FormatError | StoreError | OSError]
    """One for each run that cannot be read."""


def show_runs(*folders: str | Path) -> RunsReport:
    """Read what each run in *folders* says of itself: its state, status, model, times and final output.

    For an index, these are its runs that still exist.
    """
    report = RunsReport([], [])
    for path in dict.fromkeys(path for folder in folders for path in _runs_in(folder)):
        try:
            with open_artifact(path) as artifact:
                report.runs.append(artifact.header())
        except (FormatError, StoreError, OSError) as error:
            report.problems.append(error)
    return report


def fork_tree(path: str | Path, among: Iterable[Path] | None = None) -> list[ForkNode]:
    """The runs of the tree that the run in *path* belongs to, parents before their forks.

    Forks are searched *among* the given runs, or else in the folders of the run and its parents, and in the
    folders of samples there. For a folder of runs, or an index, all trees of its runs are listed. *path* is
    on this machine.
    """
    here = path_here(path)
    if is_corpus(here) or is_folder_of_runs(here):
        paths = [path_here(run) for run in _runs_in(here)]
        return list_trees([way for run in paths if (way := list_ancestors(run))], paths)
    way_up = list_ancestors(here)
    if not way_up:
        here.stat()  # raises if there is no run
        return []
    return list_trees([way_up], runs_around(way_up) if among is None else among)


def _runs_in(folder: str | Path) -> list[str]:
    return [run.path for run in require_runs(folder)] if is_corpus(folder) else name_runs([folder])


class IndexedRun(NamedTuple):
    """A summary of a run from an index."""

    path: str
    """Its absolute path at the time of indexing."""
    kind: str | None
    state: str | None
    status: str | None
    model: str | None
    started_ms: int | None
    took_ms: float | None
    size_bytes: int | None
    problem: str | None


def indexed_runs(corpus: str | Path) -> list[IndexedRun]:
    """The runs of *corpus* that still exist, sorted by path; none is opened."""
    with local_corpus(corpus, ()) as folder:
        roots = read_corpus(folder).roots
    sql = (
        "select run, kind, state, status, model, epoch_ms(created_at), "
        "epoch_ms(completed_at) - epoch_ms(created_at), size_bytes, coalesce(error, problem) from runs"
    )
    with open_query(sql, [corpus]) as result:
        found = [IndexedRun(_absolute(name, roots), *rest) for name, *rest in result.rows()]
    there = (run for run in found if is_remote(run.path) or os.path.exists(run.path))
    return sorted(there, key=lambda run: Path(run.path))


def require_runs(corpus: str | Path, kind: str = "run") -> list[IndexedRun]:
    """Like :func:`indexed_runs`, but of a *kind*, and raises :class:`UsageError` if there is none."""
    runs = [run for run in indexed_runs(corpus) if kind in ("run", run.kind)]
    if not runs:
        raise UsageError(f"{corpus}: no {kind} that it lists exists any more; index the {kind}s again")
    return runs


def _absolute(name: str, roots: Sequence[CorpusRoot]) -> str:
    for root in roots:
        if name == root.name or name.startswith((os.path.join(root.name, ""), f"{root.name}#")):
            return path_of(root.path + name[len(root.name.rstrip("/")) :])
    return path_of(os.path.abspath(name))

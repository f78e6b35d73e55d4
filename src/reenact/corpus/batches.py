"""Statistics and verification of many runs, in one or several processes; statistics also from an index."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any, Final

import msgspec

from reenact.analysis.artifact import open_artifact
from reenact.analysis.brief import drop_noise
from reenact.analysis.index import Tokens, total_cost
from reenact.analysis.plot import plot_format, write_plot
from reenact.analysis.stats import CallCount, RunCount, RunCounter, RunStats, Stats, count_run, mean_utility
from reenact.check.artifact import verify
from reenact.check.findings import VerifyReport
from reenact.check.kinds import name_runs
from reenact.corpus.parts import is_corpus
from reenact.corpus.query import open_query
from reenact.errors import FormatError, StoreError, UsageError
from reenact.progress import ProgressBar, no_progress_bar
from reenact.store.remote import is_remote
from reenact.store.rundir import RunDir
from reenact.suite.settings import Price
from reenact.workers import map_batches, worker_count

_BATCH: Final = 64
_RAY_WORKERS: Final = 16
"""The assumed number of workers of a cluster, to choose the size of batches."""


class StatsReport(msgspec.Struct, frozen=True, rename="camel"):
    """The result of :func:`stats`."""

    stats: Stats
    latencies_ms: list[float]
    """The duration of each call that has one."""
    unreadable: list[str]
    """Runs that could not be read, with the reasons; all others are counted."""


def stats(
    *paths: str | Path,
    prices: Mapping[str, Price] | None = None,
    plot: str | Path | None = None,
    jobs: int = 1,
    on: str | None = None,
    progress_bar: ProgressBar = no_progress_bar,
) -> StatsReport:
    """Statistics over one run, all runs in folders, or a corpus that :func:`reenact.index` made.

    *prices* turns tokens into money; charts are written to *plot*, a ``.png`` or ``.svg`` file. *jobs*
    processes share the work (0: one per core), or the tasks of Ray if *on* is ``ray``.
    """
    if plot is not None:
        plot_format(Path(plot))  # raises before anything is read
    counting = RunCounter(prices)
    unreadable = _count_runs([*map(str, paths)], counting, jobs=jobs, on=on, progress_bar=progress_bar)
    if plot is not None:
        write_plot(counting, Path(plot))
    return StatsReport(counting.stats(), [*counting.latencies()], unreadable)


def _count_runs(
    paths: Sequence[str], counting: RunCounter, *, jobs: int, on: str | None, progress_bar: ProgressBar
) -> list[str]:
    """Count all runs in *paths*, or in one corpus; returns the runs that could not be read, with reasons."""
    corpora = [path for path in paths if is_corpus(path)]
    if corpora:
        if len(paths) > 1:
            raise UsageError(f"{corpora[0]}: is a corpus; it is counted alone, index all runs into one")
        return _count_corpus(corpora[0], counting)
    runs = name_runs(paths)
    workers = worker_count(jobs, is_much=True)
    batches = _make_batches(runs, workers, on)
    work = partial(count_batch, prices=counting.prices)
    problems: list[str] = []
    with progress_bar(len(runs), "counting") as progress:
        for batch, (counts, found) in zip(
            batches, map_batches(work, batches, jobs=workers, on=on), strict=True
        ):
            for counted in counts:
                counting.add(counted)
            problems += found
            progress(len(batch))
    return problems


def _make_batches(runs: list[str], workers: int, on: str | None) -> list[list[str]]:
    """Make several batches per worker even for few runs, because single runs may be long."""
    shares = 4 * (workers if on is None else max(workers, _RAY_WORKERS))
    size = max(1, min(_BATCH, len(runs) // shares))
    return [runs[start : start + size] for start in range(0, len(runs), size)]


def count_batch(runs: Iterable[str], prices: Mapping[str, Price]) -> tuple[list[RunCount], list[str]]:
    """Count each of *runs*; also returns those that could not be read, with reasons."""
    counts: list[RunCount] = []
    problems: list[str] = []
    for run in runs:
        try:
            with open_artifact(run, prices) as artifact:
                counts.append(count_run(artifact))
                if artifact.problem is not None:
                    problems.append(str(artifact.problem))
        except (FormatError, StoreError, OSError) as error:
            problems.append(_describe_error(run, error))
    return counts, problems


_RUNS: Final = (
    "select run, status, calls, errors, duration_ms, input_tokens, output_tokens, cached_tokens, "
    "kind is not null as is_readable, problem from runs"
)
_CALLS: Final = (
    "select run, kind, name, state, latency_ms, utility, is_retry, outcome_seq is not null as has_ended, "
    "input_tokens, output_tokens, cached_tokens from calls order by run, seq"
)


def _count_corpus(corpus: str, counting: RunCounter) -> list[str]:
    with open_query(_RUNS, [corpus]) as found:
        runs = sorted(found.rows(), key=lambda row: Path(row[0]))
    calls: dict[str, tuple[list[CallCount], dict[str, int], dict[str, Tokens]]] = {}
    with open_query(_CALLS, [corpus]) as rows:
        for run, group in groupby(rows.rows(), key=itemgetter(0)):
            calls[run] = _count_rows(group)
    for run, status, steps, errors, duration_ms, *tokens, is_readable, _ in runs:
        if is_readable:
            counted, models, used = calls.get(run, ([], {}, {}))
            stats = RunStats(
                path=run,
                status=status,
                steps=steps,
                errors=errors,
                retries=sum(call.retries for call in counted),
                duration_ms=drop_noise(duration_ms),
                tokens=Tokens(*(number or 0 for number in tokens)),
                cost=total_cost(used, counting.prices),
                utility=mean_utility([number for call in counted for number in call.utility]),
            )
            counting.add(RunCount(stats, counted, models, used))
    return [row[-1] for row in runs if row[-1] is not None]


def _count_rows(
    rows: Iterable[tuple[Any, ...]],
) -> tuple[list[CallCount], dict[str, int], dict[str, Tokens]]:
    calls: dict[tuple[str, str], CallCount] = {}
    models: dict[str, int] = {}
    used: dict[str, Tokens] = {}
    for _, kind, name, state, took_ms, utility, is_retry, has_ended, *tokens in rows:
        call = calls.setdefault((kind, name), CallCount(kind, name))
        call.states[state] = call.states.get(state, 0) + 1
        call.retries += is_retry
        if took_ms is not None:
            call.took_ms.append(took_ms)
        if utility is not None:
            call.utility.append(utility)
        if kind == "model" and has_ended:
            models[name] = models.get(name, 0) + 1
        if any(tokens):
            used[name] = used.get(name, Tokens()) + Tokens(*(number or 0 for number in tokens))
    return list(calls.values()), models, used


class VerifyRunsReport(msgspec.Struct, frozen=True, rename="camel"):
    """The result of :func:`verify_runs`."""

    reports: list[VerifyReport]
    """The reports on all readable runs, sorted by path."""
    unreadable: list[str]

    @property
    def is_good(self) -> bool:
        """Whether every run was read and is valid."""
        return not self.unreadable and all(report.is_good for report in self.reports)


def verify_runs(
    *paths: str | Path,
    jobs: int = 1,
    on: str | None = None,
    progress_bar: ProgressBar = no_progress_bar,
) -> VerifyRunsReport:
    """Check that every run in *paths*, runs and folders of runs, is valid.

    *jobs* processes (0: one per core) share the runs, or tasks of Ray with *on* (``ray``, ``ray=ADDRESS``). A
    run that cannot be read is reported, and the others are still verified.
    """
    runs = name_runs(paths)
    workers = worker_count(jobs, is_much=True)
    batches = _make_batches(runs, workers, on)
    reports: list[VerifyReport] = []
    unreadable: list[str] = []
    with progress_bar(len(runs), "verifying") as progress:
        made = map_batches(verify_batch, batches, jobs=workers, on=on)
        for batch, (found, problems) in zip(batches, made, strict=True):
            reports += found
            unreadable += problems
            progress(len(batch))
    return VerifyRunsReport(reports, unreadable)


def verify_batch(runs: Iterable[str]) -> tuple[list[VerifyReport], list[str]]:
    """Verify each of *runs*; also returns those that could not be read, with reasons."""
    reports: list[VerifyReport] = []
    problems: list[str] = []
    for run in runs:
        try:
            reports.append(verify(_artifact_in(run)))
        except (FormatError, StoreError, OSError) as error:
            problems.append(_describe_error(run, error))
    return reports, problems


def _artifact_in(run: str) -> str:
    """*run* itself, or the log, bundle or trace in a folder that is not a capture."""
    folder = Path(run)
    if is_remote(run) or not folder.is_dir() or RunDir(folder).is_capture:
        return run
    with open_artifact(folder) as artifact:
        return artifact.source.file


def _describe_error(run: str, error: Exception) -> str:
    return f"{error.filename or run}: {error.strerror}" if isinstance(error, OSError) else str(error)

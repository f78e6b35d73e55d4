"""Forks one run many times, and groups the results."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import msgspec

from reenact.commands.fork import new_place
from reenact.errors import UsageError
from reenact.forks.capture import refuse_place
from reenact.forks.change import ForkChange, OnMiss, read_change
from reenact.forks.run import check_plan
from reenact.formats.shadow import Rate, RunOutcome
from reenact.formats.volatile import AnyRule
from reenact.progress import Progress, ProgressBar, no_progress_bar
from reenact.run.rules import read_rules
from reenact.shadowing.outcomes import Judging, compare_outcomes, count_tools, no_outcome, read_outcome
from reenact.shadowing.running import Interrupted, JobResult, RunJob, core_count, run_jobs
from reenact.store.remote import is_remote, local_path, local_run, remote_name
from reenact.suite.settings import Price, project_prices


class OutcomeGroup(msgspec.Struct, frozen=True, rename="camel"):
    """Samples with the same result."""

    paths: list[str]
    outcome: RunOutcome
    """The result of the first of them."""


def group_outcomes(outcomes: Sequence[RunOutcome]) -> list[OutcomeGroup]:
    """Group by output, tools, exit status and verdict; the largest group first."""
    groups: dict[object, list[RunOutcome]] = {}
    for each in outcomes:
        tools = tuple(sorted(count_tools(each.tools).items()))
        key = (each.output, each.printed, tools, each.exit_status, each.passed, each.problem)
        groups.setdefault(key, []).append(each)
    ranked = sorted(groups.values(), key=lambda group: -len(group))
    return [OutcomeGroup([each.path for each in group], group[0]) for group in ranked]


class SamplesReport(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """The results of many forks at one point."""

    parent: str
    at: int
    output: str
    """The folder in which the forks are."""
    wanted: int
    outcomes: list[RunOutcome]
    groups: list[OutcomeGroup]
    """Samples with the same result, the most frequent first."""
    ended_well: Rate
    passed: Rate
    """By the test; without one the same as *ended_well*."""
    same: Rate
    """Of the forks that were made: those that did the same as their parent."""
    failed: Rate
    """Samples for which no fork could be made."""
    is_interrupted: bool = False

    @property
    def has_samples(self) -> bool:
        """Whether at least one fork was made."""
        return self.failed.count < self.failed.total


def fork_samples(
    path: str | Path,
    words: Sequence[str],
    *,
    at: int,
    samples: int,
    output: str | Path | None = None,
    change: Mapping[str, object] | ForkChange | None = None,
    on_miss: OnMiss = "fail",
    standalone: bool = False,
    test: str | Path | None = None,
    jobs: int | None = None,
    prices: Mapping[str, Price] | None = None,
    volatile: Iterable[AnyRule] = (),
    allow: Sequence[str] = (),
    upstreams: Mapping[str, str] | None = None,
    network: bool = False,
    allow_code: bool = False,
    workspace: bool = False,
    repository: str | Path | None = None,
    progress_bar: ProgressBar = no_progress_bar,
) -> SamplesReport:
    """Fork the run in *path* *samples* times, *jobs* at a time, and group the results.

    The forks are captures below *output*, or below a new folder beside the run. The rest is as in
    :func:`reenact.fork_command`; *test* is as in :func:`reenact.shadow`.
    """
    output = new_place(path) if output is None else output
    if is_remote(path):
        with local_run(path) as copy:
            report = fork_samples(
                copy, words, at=at, samples=samples, output=output, change=change, on_miss=on_miss,
                standalone=True, test=test, jobs=jobs, prices=prices, volatile=volatile, allow=allow,
                upstreams=upstreams, network=network, allow_code=allow_code, workspace=workspace,
                repository=repository, progress_bar=progress_bar,
            )  # fmt: skip
            return msgspec.structs.replace(report, parent=remote_name(path))
    parent, folder = Path(local_path(path)), Path(output)
    read, _ = read_change(change)
    if samples < 1:
        raise UsageError("samples: must be at least 1")
    check_plan(parent, at, read, on_miss)
    refuse_place(folder, parent)
    judging = Judging.read(Path(test), allow_code=allow_code) if test is not None else None
    known_prices = project_prices() if prices is None else prices
    members = msgspec.to_builtins(read)
    if "replace" in members:
        members["replace"] = members["replace"][0]
    digits = len(str(samples))
    todo = [
        RunJob(
            run=str(parent),
            words=list(map(os.fsencode, words)),
            output=str(folder / f"{number:0{digits}d}"),
            at=at,
            change=members,
            on_miss=on_miss,
            volatile=tuple(read_rules(volatile)),
            allow=list(allow),
            upstreams=dict(upstreams or {}),
            network=network,
            standalone=standalone,
            workspace=workspace,
            repository=None if repository is None else str(repository),
        )
        for number in range(1, samples + 1)
    ]
    with progress_bar(samples, "forking") as advance:
        outcomes, is_interrupted = _make_forks(todo, jobs, judging, known_prices, advance)
    made = [each for each in outcomes if not each.problem]
    recorded = read_outcome(parent, judging, known_prices)
    same = sum(compare_outcomes(recorded, each)[0] == "same" for each in made)
    return SamplesReport(
        parent=str(parent),
        at=at,
        output=str(folder),
        wanted=samples,
        outcomes=outcomes,
        groups=group_outcomes(outcomes),
        ended_well=Rate.of(sum(each.is_ok for each in outcomes), len(outcomes)),
        passed=Rate.of(sum(each.passed for each in outcomes), len(outcomes)),
        same=Rate.of(same, len(made)),
        failed=Rate.of(len(outcomes) - len(made), len(outcomes)),
        is_interrupted=is_interrupted,
    )


def _make_forks(
    todo: Sequence[RunJob],
    jobs: int | None,
    judging: Judging | None,
    prices: Mapping[str, Price],
    advance: Progress,
) -> tuple[list[RunOutcome], bool]:
    """Run all jobs; returns the outcomes in the order of the jobs, and whether Ctrl-C ended them early."""
    found: dict[int, RunOutcome] = {}

    def on_done(number: int, result: JobResult) -> None:
        if result.is_refused:
            raise UsageError(result.problem)
        place = Path(todo[number].output)
        failed = no_outcome(place, result.problem) if result.problem else None
        found[number] = failed or read_outcome(place, judging, prices)
        advance(1)

    is_interrupted = False
    try:
        run_jobs(todo, workers=core_count(jobs), on_done=on_done)
    except Interrupted:
        is_interrupted = True
    return [found[number] for number in sorted(found)], is_interrupted

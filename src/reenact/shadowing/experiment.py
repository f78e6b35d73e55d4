"""Repeats recorded runs with a changed agent, and compares the results."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, TypeAlias

import msgspec

from reenact.canonical import JsonField
from reenact.check.kinds import name_runs
from reenact.errors import Diverged, FormatError, ReenactError, StoreError, UsageError
from reenact.forks.capture import refuse_place
from reenact.forks.change import ForkChange, OnMiss, read_change
from reenact.forks.run import check_plan, fork
from reenact.formats.record import ABSENT
from reenact.formats.shadow import (
    DIFFERENCES,
    RunOutcome,
    ShadowReport,
    ShadowRun,
    compare_pairs,
    pass_power_k,
)
from reenact.formats.volatile import AnyRule, VolatileRule
from reenact.progress import ProgressBar, no_progress_bar
from reenact.run import replay
from reenact.run.rules import read_rules
from reenact.shadowing.outcomes import (
    Judging,
    compare_outcomes,
    no_outcome,
    read_outcome,
)
from reenact.shadowing.running import Interrupted, JobResult, RunJob, core_count, run_jobs
from reenact.store.reader import CaptureReader, read_run_start
from reenact.store.remote import is_remote, local_run
from reenact.suite.settings import Price, project_prices

Agent: TypeAlias = Callable[[Path], object]
"""Does what the recorded run in this folder did, and returns the final output."""

_WORD: Final = re.compile(r"\{(\d{1,3})(:?)\}")


def shadow(
    runs: str | Path | Iterable[str | Path],
    agent: Sequence[str] | Agent,
    *,
    change: Mapping[str, object] | None = None,
    baseline: Sequence[str] | Agent | None = None,
    test: str | Path | None = None,
    samples: int = 1,
    on_miss: OnMiss = "fail",
    output: str | Path | None = None,
    jobs: int | None = None,
    on: str | None = None,
    prices: Mapping[str, Price] | None = None,
    volatile: Iterable[AnyRule] = (),
    allow: Sequence[str] = (),
    upstreams: Mapping[str, str] | None = None,
    network: bool = False,
    allow_code: bool = False,
    progress_bar: ProgressBar = no_progress_bar,
) -> ShadowReport:
    """Make every one of the recorded *runs* again with a changed *agent*, and compare.

    *runs* are captures, or folders with captures below, here or at an address. *agent* is a command, in which
    ``{2}`` stands for word 2 of the recorded command and ``{2:}`` for all from there on, or a function of
    this process that is called with the path of the recorded run. A call that equals a recorded one is
    answered from the recording; *on_miss* decides about any other. *change* changes the model requests
    (``model``, ``system``, ``temperature``).

    The *baseline* is the old agent. It is replayed strictly first, and a run that it does not reproduce is
    set apart. If only requests change, it is *agent* itself; without a baseline the recorded runs count.
    *test* says which runs passed; without one, those that ended well. Each run is made again *samples* times,
    *jobs* at a time, or as many as there are cores; commands also *on* ``ray`` or ``ray=ADDRESS``. The
    candidates are forks of their runs; with *output* they stay there. A run among several that cannot be read
    is set apart too.
    """
    paths = name_runs([runs] if isinstance(runs, str | Path) else list(runs))
    read, _ = read_change(change)
    if read.changes_outcome:
        raise UsageError("shadow: an outcome is changed in a fork; give model, system or temperature")
    if samples < 1:
        raise UsageError("samples: must be at least 1")
    if on is not None and (callable(agent) or callable(baseline)):
        raise UsageError("shadow: a function runs in this process alone; give Ray a command")
    unreadable = _find_unreadable(paths, read, on_miss)
    if baseline is None and read.is_any:
        baseline = agent
    judging = Judging.read(Path(test), allow_code=allow_code) if test is not None else None
    options = _JobOptions(
        change=msgspec.to_builtins(read),
        on_miss=on_miss,
        volatile=tuple(read_rules(volatile)),
        allow=list(allow),
        upstreams=dict(upstreams or {}),
        network=network,
    )
    known = project_prices() if prices is None else prices
    with _Experiment(paths, judging, known, options, jobs, on, output, progress_bar) as experiment:
        set_apart = dict(unreadable)
        if baseline is not None:
            set_apart |= experiment.reproduce(baseline, unreadable)
        candidates = experiment.make_candidates(agent, samples, set_apart)
        return experiment.report(
            candidates,
            set_apart,
            samples=samples,
            test=None if test is None else str(test),
            baseline="recorded" if baseline is None else "replayed",
        )


def _find_unreadable(paths: Sequence[str], change: ForkChange, on_miss: OnMiss) -> dict[int, str]:
    """The indices of runs that cannot be read, each with the reason; raises for wrong arguments."""
    found: dict[int, str] = {}
    for place, path in enumerate(paths):
        try:
            with local_run(path) as folder:
                check_plan(Path(folder), None, change, on_miss)
        except (FormatError, StoreError) as error:
            if len(paths) == 1:
                raise
            found[place] = str(error)
    return found


class _JobOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options that all jobs share."""

    change: dict[str, JsonField]
    on_miss: OnMiss
    volatile: tuple[VolatileRule, ...]
    allow: list[str]
    upstreams: dict[str, str]
    network: bool


class _Experiment:
    """One shadow run over many recorded runs."""

    def __init__(
        self,
        paths: Sequence[str],
        judging: Judging | None,
        prices: Mapping[str, Price],
        options: _JobOptions,
        jobs: int | None,
        on: str | None,
        output: str | Path | None,
        progress_bar: ProgressBar,
    ) -> None:
        self._paths = paths
        self._judging = judging
        self._prices = prices
        self._options = options
        self._workers = core_count(jobs)
        self._on = on
        self._progress_bar = progress_bar
        self._is_interrupted = False
        self._never_prints_the_same = set[int]()
        """The indices of runs that the old agent reproduces with other printed output."""
        self._scratch: TemporaryDirectory[str] | None = None
        self._output = None if output is None else Path(output)
        if self._output is not None:
            for path in paths:
                refuse_place(self._output, Path(path))

    def __enter__(self) -> _Experiment:
        if self._output is None:
            # Beside the runs, because forks refer to them by relative paths.
            self._scratch = TemporaryDirectory(prefix="reenact-shadow-")
        return self

    def __exit__(self, *_: object) -> None:
        if self._scratch is not None:
            self._scratch.cleanup()

    def reproduce(self, baseline: Sequence[str] | Agent, without: Mapping[int, str]) -> dict[int, str]:
        """The indices of runs, *without* these, that *baseline* does not reproduce, each with the reason."""
        chosen = [place for place in range(len(self._paths)) if place not in without]
        if callable(baseline):
            return {
                place: problem
                for place in chosen
                if (problem := _replay_here(baseline, self._paths[place], self._options))
            }
        jobs = [
            RunJob(
                run=self._paths[place],
                words=list(map(os.fsencode, words_for(baseline, self._paths[place]))),
                **self._shared_options(is_fork=False),
            )
            for place in chosen
        ]
        found: dict[int, str] = {}

        def note(job: int, result: JobResult) -> None:
            if result.problem:
                found[chosen[job]] = result.problem
            elif not result.prints_as_recorded:
                self._never_prints_the_same.add(chosen[job])

        self._run(jobs, "replaying the old agent", note)
        if self._is_interrupted:
            raise KeyboardInterrupt
        return found

    def make_candidates(
        self, agent: Sequence[str] | Agent, samples: int, set_apart: Mapping[int, str]
    ) -> dict[int, list[RunOutcome]]:
        """Make the candidates; their results by the index of their run."""
        chosen = [place for place in range(len(self._paths)) if place not in set_apart]
        found: dict[int, list[RunOutcome]] = {place: [] for place in chosen}
        tasks = [(place, self._place_for(place, sample)) for place in chosen for sample in range(samples)]
        if callable(agent):
            with self._progress_bar(len(tasks), "running") as advance:
                for place, output in tasks:
                    problem = _fork_here(agent, self._paths[place], output, self._options)
                    found[place].append(self._outcome(output, problem))
                    advance(1)
            return found
        jobs = [
            RunJob(
                run=self._paths[place],
                words=list(map(os.fsencode, words_for(agent, self._paths[place]))),
                output=str(output),
                **self._shared_options(is_fork=True),
            )
            for place, output in tasks
        ]

        def note(task: int, result: JobResult) -> None:
            place, output = tasks[task]
            if result.is_refused:
                raise UsageError(result.problem)
            found[place].append(self._outcome(output, result.problem))

        self._run(jobs, "running", note)
        return found

    def report(
        self,
        candidates: Mapping[int, list[RunOutcome]],
        set_apart: Mapping[int, str],
        *,
        samples: int,
        test: str | None,
        baseline: str,
    ) -> ShadowReport:
        runs = [
            self._describe_run(place, candidates.get(place, []), set_apart.get(place, ""))
            for place in range(len(self._paths))
        ]
        report = summarize_runs(runs, samples=samples, change=self._options.change, test=test)
        return msgspec.structs.replace(report, baseline=baseline, is_interrupted=self._is_interrupted)

    def _describe_run(self, place: int, candidates: list[RunOutcome], set_apart: str) -> ShadowRun:
        path = self._paths[place]
        try:
            with local_run(path) as folder:
                recorded = read_outcome(folder, self._judging, self._prices)
        except (FormatError, StoreError) as error:
            recorded = no_outcome(Path(path), str(error))
        recorded = msgspec.structs.replace(recorded, path=path)
        if place in self._never_prints_the_same:
            recorded = msgspec.structs.replace(recorded, printed="")
        if set_apart or not candidates:
            return ShadowRun(path=path, recorded=recorded, set_apart=set_apart)
        run = compare_run(path, recorded, candidates)
        if self._output is None:
            candidates = [msgspec.structs.replace(each, path="") for each in candidates]
        return msgspec.structs.replace(run, candidates=candidates)

    def _run(self, jobs: Sequence[RunJob], what: str, note: Callable[[int, JobResult], None]) -> None:
        with self._progress_bar(len(jobs), what) as advance:

            def on_done(place: int, result: JobResult) -> None:
                note(place, result)
                advance(1)

            try:
                run_jobs(jobs, workers=self._workers, on_done=on_done, on=self._on)
            except Interrupted:
                self._is_interrupted = True

    def _shared_options(self, *, is_fork: bool) -> dict[str, Any]:
        options = self._options
        common = {"volatile": options.volatile, "allow": options.allow, "network": options.network}
        if not is_fork:
            return common
        return common | {
            "change": options.change,
            "on_miss": options.on_miss,
            "upstreams": options.upstreams,
        }

    def _place_for(self, place: int, sample: int) -> Path:
        folder = self._output or Path(self._scratch.name if self._scratch else "")
        name = f"{place + 1:04d}-{Path(self._paths[place].partition('#')[2] or self._paths[place]).name}"
        return folder / (name if not sample else f"{name}-{sample + 1}")

    def _outcome(self, output: Path, problem: str) -> RunOutcome:
        if problem:
            return no_outcome(output, problem)
        return read_outcome(output, self._judging, self._prices)


def compare_run(path: str, recorded: RunOutcome, candidates: list[RunOutcome]) -> ShadowRun:
    """Compare the recorded run in *path* with its *candidates*; the largest difference counts."""
    compared = [compare_outcomes(recorded, each) for each in candidates]
    difference, first = max(compared, key=lambda found: DIFFERENCES.index(found[0]))
    return ShadowRun(path=path, recorded=recorded, candidates=candidates, difference=difference, first=first)


def summarize_runs(
    runs: Sequence[ShadowRun], *, samples: int, change: dict[str, Any], test: str | None
) -> ShadowReport:
    """Summarize *runs*, without those that an interruption left undone."""
    counted = [run for run in runs if not run.set_apart and run.candidates]
    differences = Counter(run.difference for run in counted)
    pairs = [run.pair for run in counted]
    return ShadowReport(
        runs=[run for run in runs if run.set_apart or run.candidates],
        samples=samples,
        change=change,
        test=test,
        baseline="recorded",
        counts={name: differences[name] for name in DIFFERENCES},
        set_apart=sum(bool(run.set_apart) for run in runs),
        comparison=compare_pairs(pairs),
        pass_power={str(k): chance for k, chance in pass_power_k(pairs).items()},
    )


def words_for(words: Sequence[str], path: str) -> list[str]:
    """The command for the run in *path*, with ``{2}`` and ``{2:}`` replaced by recorded words."""
    if not any(_WORD.search(word) for word in words):
        return list(words)
    with local_run(path) as folder:
        argv = read_run_start(CaptureReader(folder)).argv
    recorded = [] if argv is ABSENT else argv
    found: list[str] = []
    for word in words:
        rest = _WORD.fullmatch(word)
        if rest is not None and rest[2]:
            found += recorded[int(rest[1]) :]
            continue

        def recorded_word(match: re.Match[str]) -> str:
            number = int(match[1])
            if number >= len(recorded):
                raise UsageError(f"{path}: {match[0]}: the recorded command has {len(recorded)} words")
            return " ".join(recorded[number:]) if match[2] else recorded[number]

        found.append(_WORD.sub(recorded_word, word))
    return found


def _replay_here(agent: Agent, path: str, options: _JobOptions) -> str:
    """Replay the run with *agent* in this process; return how it differs, empty if it does not."""
    try:
        with (
            local_run(path) as folder,
            replay(folder, policy="strict", volatile=options.volatile) as run,
        ):
            _set_output(run, agent(folder))
    except Diverged as error:
        return str(error)
    except ReenactError:
        raise
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return ""


def _fork_here(agent: Agent, path: str, output: Path, options: _JobOptions) -> str:
    """Fork the run with *agent* in this process; return why that failed, empty if it did not."""
    try:
        with (
            local_run(path) as folder,
            fork(
                folder,
                at=None,
                change=options.change,
                output=output,
                on_miss=options.on_miss,
                standalone=is_remote(path),
                volatile=options.volatile,
                allow=options.allow,
            ) as run,
        ):
            _set_output(run, agent(folder))
    except UsageError:
        raise
    except ReenactError as error:
        return str(error)
    except Exception as error:
        if output.exists():
            return ""  # a failure of the agent, which the fork has recorded
        return f"{type(error).__name__}: {error}"
    return ""


def _set_output(run: Any, output: object) -> None:
    if output is not None:
        run.final_output = output

"""Statistics over many runs: counts, durations, tokens, costs, ratings.

counting = RunCounter(prices)
for path in find_runs(["runs"]):
    with open_artifact(path, prices) as artifact:
        counting.add(count_run(artifact))
counting.stats()                 # Stats: plain data
"""

from __future__ import annotations

import math
from array import array
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import msgspec

from reenact.analysis.artifact import Artifact
from reenact.analysis.brief import drop_noise
from reenact.analysis.index import STATES, StepIndex, Tokens, cost_of, total_cost
from reenact.suite.settings import Price

_RANKS: Final = (50, 90, 99)
_BINS_PER_DECADE: Final = 4
_LARGEST: Final = 2.0**53


class Spread(msgspec.Struct, frozen=True, rename="camel"):
    """A summary of numbers; percentiles are measured values, not interpolated."""

    count: int
    total: float
    mean: float
    min: float
    p50: float
    p90: float
    p99: float
    max: float

    @classmethod
    def of(cls, numbers: Iterable[float]) -> Spread | None:
        """``None`` without numbers."""
        ranked = sorted(map(_measurable, numbers))
        if not ranked:
            return None
        total = math.fsum(ranked)
        p50, p90, p99 = (percentile(ranked, rank) for rank in _RANKS)
        return cls(len(ranked), total, total / len(ranked), ranked[0], p50, p90, p99, ranked[-1])


def _measurable(number: float) -> float:
    """*number*, limited to a plausible range: a log may contain any value."""
    return max(-_LARGEST, min(number, _LARGEST))


def percentile(ranked: Sequence[float], rank: float) -> float:
    """The smallest of the *ranked* numbers that *rank* per cent of them do not exceed."""
    return ranked[max(0, math.ceil(len(ranked) * rank / 100) - 1)]


def histogram(numbers: Iterable[float], bins: int) -> list[tuple[float, float, int]]:
    """Lower bound, upper bound and count of up to *bins* bins with a constant ratio; below 1 counts as 1.

    Numbers that are close together get fewer bins, because the labels of finer ones would be equal.
    """
    values = array("d", (max(1.0, _measurable(number)) for number in numbers))
    if not values:
        return []
    low, high = math.log(min(values)), math.log(max(values))
    bins = max(1, min(bins, math.ceil((high - low) / math.log(10) * _BINS_PER_DECADE)))
    step = (high - low) / bins or 1.0
    counts = [0] * bins
    for value in values:
        counts[min(bins - 1, int((math.log(value) - low) / step))] += 1
    edges = [math.exp(low + step * place) for place in range(bins + 1)]
    return [(edges[place], edges[place + 1], count) for place, count in enumerate(counts)]


class CallStats(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, kw_only=True):
    """All steps of one kind and name."""

    kind: str
    name: str
    calls: int
    errors: int = 0
    cancelled: int = 0
    open: int = 0
    retries: int = 0
    """Calls that repeat the failed call before them in the same lane."""
    latency_ms: Spread | None = None
    utility: Spread | None = None


class ModelStats(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, kw_only=True):
    """All calls of one model."""

    model: str
    calls: int
    tokens: Tokens
    cost: float | None = None


class RunStats(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, kw_only=True):
    """One run."""

    path: str
    status: str | None
    steps: int
    errors: int
    retries: int
    duration_ms: float
    tokens: Tokens
    cost: float | None = None
    utility: float | None = None
    """The mean of the rated steps."""


class Stats(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, kw_only=True):
    """All runs together."""

    runs: int
    statuses: dict[str, int]
    steps: int
    errors: int
    retries: int
    duration_ms: Spread | None
    """Of the runs."""
    latency_ms: Spread | None
    """Of all calls that took time."""
    utility: Spread | None
    tokens: Tokens
    cost: float | None
    """``None`` if a used model has no price."""
    calls: list[CallStats]
    """The most frequent first."""
    models: list[ModelStats]
    each: list[RunStats]


class CallCount(msgspec.Struct):
    """All steps of one kind and name, in one run or in many."""

    kind: str
    name: str
    states: dict[str, int] = {}
    retries: int = 0
    took_ms: list[float] = []
    utility: list[float] = []


class RunCount(msgspec.Struct):
    """The counts of one run; plain data, so that any process can compute them."""

    stats: RunStats
    calls: list[CallCount]
    models: dict[str, int]
    tokens: dict[str, Tokens]
    """By model."""


def count_run(artifact: Artifact) -> RunCount:
    """Count the readable part of a run."""
    artifact.index()
    rows = artifact.rows
    retried = find_retries(artifact)
    calls: dict[tuple[int, int], CallCount] = {}
    for place in range(len(rows)):
        key = rows.kind[place], rows.name[place]
        call = calls.get(key)
        if call is None:
            call = calls[key] = CallCount(rows.kinds[key[0]], rows.names[key[1]])
        state = STATES[rows.state[place]]
        call.states[state] = call.states.get(state, 0) + 1
        call.retries += place in retried
        if not math.isnan(rows.took_ms[place]):
            call.took_ms.append(rows.took_ms[place])
        if not math.isnan(rows.utility[place]):
            call.utility.append(rows.utility[place])
    stats = _run_stats(artifact, rows, len(retried))
    return RunCount(stats, list(calls.values()), dict(rows.models), dict(rows.tokens))


def find_retries(artifact: Artifact) -> set[int]:
    """The places of calls that repeat the failed call before them in the same lane."""
    rows = artifact.rows
    failed: dict[tuple[int, int], int] = {}
    found: set[int] = set()
    for place in range(len(rows)):
        lane = (rows.lane[place], rows.parent[place])
        before = failed.pop(lane, None)
        if before is not None and _is_retry(artifact, rows, before, place):
            found.add(place)
        if STATES[rows.state[place]] == "error":
            failed[lane] = place
    return found


class _CallCounts:
    """The counts of one kind and name so far."""

    def __init__(self) -> None:
        self.states: Counter[str] = Counter()
        self.retries = 0
        self.took_ms, self.utility = array("d"), array("d")


class RunCounter:
    """Adds up the counts of runs."""

    def __init__(self, prices: Mapping[str, Price] | None = None) -> None:
        self.prices = dict(prices or {})
        self._calls: dict[tuple[str, str], _CallCounts] = defaultdict(_CallCounts)
        self._models: Counter[str] = Counter()
        self._tokens: dict[str, Tokens] = {}
        self._runs: list[RunStats] = []

    def add(self, counted: RunCount) -> None:
        """Add a run."""
        for each in counted.calls:
            call = self._calls[each.kind, each.name]
            call.states.update(each.states)
            call.retries += each.retries
            call.took_ms.extend(each.took_ms)
            call.utility.extend(each.utility)
        self._models.update(counted.models)
        for model, tokens in counted.tokens.items():
            self._tokens[model] = self._tokens.get(model, Tokens()) + tokens
        self._runs.append(counted.stats)

    def stats(self) -> Stats:
        """The statistics of the runs so far."""
        models = [self._model(model) for model, _ in self._models.most_common()]
        every = list(self._calls.values())
        return Stats(
            runs=len(self._runs),
            statuses=dict(Counter(run.status or "unfinished" for run in self._runs).most_common()),
            steps=sum(run.steps for run in self._runs),
            errors=sum(run.errors for run in self._runs),
            retries=sum(run.retries for run in self._runs),
            duration_ms=Spread.of(run.duration_ms for run in self._runs),
            latency_ms=Spread.of(number for call in every for number in call.took_ms),
            utility=Spread.of(number for call in every for number in call.utility),
            tokens=sum((model.tokens for model in models), Tokens()),
            cost=total_cost(self._tokens, self.prices),
            calls=[self._call_stats(*key) for key in self._keys_by_frequency()],
            models=models,
            each=self._runs,
        )

    def latencies(self) -> array[float]:
        """The durations of all calls that took time, in ms, for a histogram."""
        return array("d", (number for call in self._calls.values() for number in call.took_ms))

    def _keys_by_frequency(self) -> list[tuple[str, str]]:
        return sorted(self._calls, key=lambda key: (-self._calls[key].states.total(), key))

    def _call_stats(self, kind: str, name: str) -> CallStats:
        call = self._calls[kind, name]
        return CallStats(
            kind=kind,
            name=name,
            calls=call.states.total(),
            errors=call.states["error"],
            cancelled=call.states["cancelled"],
            open=call.states["open"],
            retries=call.retries,
            latency_ms=Spread.of(call.took_ms),
            utility=Spread.of(call.utility),
        )

    def _model(self, model: str) -> ModelStats:
        tokens = self._tokens.get(model, Tokens())
        cost = cost_of(model, tokens, self.prices)
        return ModelStats(model=model, calls=self._models[model], tokens=tokens, cost=cost)


def _is_retry(artifact: Artifact, rows: StepIndex, before: int, place: int) -> bool:
    if (rows.kind[before], rows.name[before]) != (rows.kind[place], rows.name[place]):
        return False
    return artifact.content(before).request_digest == artifact.content(place).request_digest


def _run_stats(artifact: Artifact, rows: StepIndex, retries: int) -> RunStats:
    header, counts = artifact.header(), artifact.counts()
    stated_ms = None
    if header.completed_at_ms is not None and header.created_at_ms is not None:
        stated_ms = header.completed_at_ms - header.created_at_ms
    utilities = [number for number in rows.utility if not math.isnan(number)]
    return RunStats(
        path=header.path,
        status=header.status,
        steps=counts.steps,
        errors=counts.states.get("error", 0),
        retries=retries,
        duration_ms=drop_noise(counts.duration_ms if stated_ms is None else stated_ms),
        tokens=counts.tokens or Tokens(),
        cost=counts.cost,
        utility=mean_utility(utilities),
    )


def mean_utility(numbers: Sequence[float]) -> float | None:
    """The mean rating of steps; ``None`` without ratings."""
    return drop_noise(math.fsum(numbers) / len(numbers)) if numbers else None

"""Shadow reports: what became of recorded runs with a changed agent, prompt or model, and how sure it is.

Each run was recorded once and made again so many times. If nothing changed, the recorded outcome is one like
the others: among all that passed it is any of them with the same chance. From that the exact chance follows
of a difference as large as the one seen; with one sample a run this is McNemar's exact test.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, Final, Literal, TypeAlias

import msgspec

from reenact.errors import FormatError
from reenact.formats.record import format_error

SURE: Final = 0.95
Z: Final = 1.959963984540054
"""The normal distribution has 95 % of its weight between minus and plus this."""
_SHOWN: Final = 160
_ROUNDED: Final = 1e-9
"""How far apart figures may be that are the same."""
Difference: TypeAlias = Literal["same", "words", "tools", "failed"]
"""The same; other words with the same tools; other tools; failed."""
DIFFERENCES: Final[tuple[Difference, ...]] = ("same", "words", "tools", "failed")


class Rate(msgspec.Struct, frozen=True, rename="camel"):
    """So many of so many, and between which rates the true one lies, with 95 % certainty (Wilson)."""

    count: int
    total: int
    low: float
    high: float

    @classmethod
    def of(cls, count: int, total: int) -> Rate:
        """Without any, nothing is known: the rate may be anything."""
        if not total:
            return cls(0, 0, 0.0, 1.0)
        share, spread = count / total, Z * Z / total
        middle = (share + spread / 2) / (1 + spread)
        half = Z / (1 + spread) * math.sqrt(share * (1 - share) / total + spread / total / 4)
        low = 0.0 if count == 0 else max(0.0, middle - half)
        return cls(count, total, low, 1.0 if count == total else min(1.0, middle + half))

    @property
    def share(self) -> float:
        return self.count / self.total if self.total else 0.0

    def __str__(self) -> str:
        return f"{self.count} of {self.total} ({self.low:.0%} to {self.high:.0%})"


class PairedComparison(msgspec.Struct, frozen=True, rename="camel"):
    """Before and after, run by run."""

    runs: int
    recorded: Rate
    """Of the recorded runs, how many passed."""
    candidate: Rate
    """Of the samples, how many did."""
    difference: float
    """By how much the mean rate of passing is higher now."""
    low: float
    high: float
    """Between which the true difference lies, with 95 % certainty (Bonett and Price)."""
    better: int
    """Runs that pass more often than recorded; with one sample: that failed and pass now."""
    worse: int
    p_value: float
    """The chance of a difference like this if nothing had changed."""

    @property
    def is_conclusive(self) -> bool:
        """Whether there is a difference that chance does not explain."""
        return self.p_value < 1 - SURE

    @property
    def is_worse(self) -> bool:
        return self.is_conclusive and self.difference < 0

    def __str__(self) -> str:
        if not self.is_conclusive:
            return "no difference can be told from this many runs"
        word, way = ("worse", "lower") if self.difference < 0 else ("better", "higher")
        points = f"{abs(100 * self.difference):.0f} points {way}"
        return (
            f"{word}: the pass rate is {points} ({100 * self.low:+.0f} to {100 * self.high:+.0f}), "
            f"p = {self.p_value:.2g}"
        )


class CalledTool(msgspec.Struct, frozen=True):
    """One call of a tool."""

    name: str
    args: str
    """Canonical JSON."""
    seq: int
    """The number of its event."""

    def __str__(self) -> str:
        args = self.args if len(self.args) <= _SHOWN else self.args[:_SHOWN] + "…"
        return f"{self.name} {args}"


class RunOutcome(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, kw_only=True):
    """One run, told in a line."""

    path: str
    capture_id: str = ""
    exit_status: int | None = None
    """Of the command, where the run is one."""
    is_ok: bool = True
    """Whether it ended well by its own account."""
    output: str = ""
    """What it came to; of a command that says nothing of it, a digest of what it printed."""
    printed: str = ""
    """The digest of what the command printed; empty where there is none to compare by."""
    tools: list[CalledTool] = []
    passed: bool = True
    """By the test, where there is one; else whether it ended well."""
    failed_assertions: list[str] = []
    """What the test found, a line each."""
    tokens: int = 0
    cost: float | None = None
    duration_ms: float = 0.0
    problem: str = ""
    """Why there is no run to look at."""


class FirstDifference(msgspec.Struct, frozen=True):
    """Where two runs part."""

    recorded: str
    candidate: str
    seq: int | None = None
    """The event of the candidate, where it is one."""


class RunPair(msgspec.Struct, frozen=True):
    """One run: whether it passed when it was recorded, and how many of its samples did."""

    recorded: bool
    passed: int
    samples: int = 1


def compare_pairs(pairs: Sequence[RunPair]) -> PairedComparison:
    """What *pairs* tell about before and after."""
    differences = [pair.passed / pair.samples - pair.recorded for pair in pairs]
    low, high = _difference_interval(differences)
    return PairedComparison(
        runs=len(pairs),
        recorded=Rate.of(sum(pair.recorded for pair in pairs), len(pairs)),
        candidate=Rate.of(sum(pair.passed for pair in pairs), sum(pair.samples for pair in pairs)),
        difference=math.fsum(differences) / len(differences) if differences else 0.0,
        low=low,
        high=high,
        better=sum(each > 0 for each in differences),
        worse=sum(each < 0 for each in differences),
        p_value=exact_p_value(pairs),
    )


def _difference_interval(differences: Sequence[float]) -> tuple[float, float]:
    """Wald's interval after one run was added for each direction, without which it is too narrow."""
    if not differences:
        return -1.0, 1.0
    seen = [*differences, 1.0, -1.0]
    mean = math.fsum(seen) / len(seen)
    variance = math.fsum((each - mean) ** 2 for each in seen) / len(seen)
    half = Z * math.sqrt(variance / len(seen))
    return max(-1.0, mean - half), min(1.0, mean + half)


def exact_p_value(pairs: Sequence[RunPair]) -> float:
    """Two-sided; 1 where no run differs."""
    chances = [(pair.recorded + pair.passed) / (pair.samples + 1) for pair in pairs]
    sure = sum(chance == 1 for chance in chances)
    weights = [1.0]
    for chance in chances:
        if 0 < chance < 1:
            weights = _with_one_more(weights, chance)
    seen = sum(pair.recorded for pair in pairs) - sure
    tails = math.fsum(weights[: seen + 1]), math.fsum(weights[seen:])
    return min(1.0, 2 * min(tails))


def _with_one_more(weights: list[float], chance: float) -> list[float]:
    """How likely each count of successes is when one more is tried, which succeeds by *chance*."""
    missed = [weight * (1 - chance) for weight in weights] + [0.0]
    for place, weight in enumerate(weights):
        missed[place + 1] += weight * chance
    return missed


def pass_power_k(pairs: Sequence[RunPair]) -> dict[int, float]:
    """By *k*: how likely a run passes *k* times out of *k*, the mean over all runs (``pass^k``)."""
    samples = min((pair.samples for pair in pairs), default=0)
    return {
        k: math.fsum(math.comb(pair.passed, k) / math.comb(pair.samples, k) for pair in pairs) / len(pairs)
        for k in range(1, samples + 1)
    }


class ShadowRun(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, kw_only=True):
    """One recorded run, and what became of it."""

    path: str
    recorded: RunOutcome
    candidates: list[RunOutcome] = []
    """One for each sample."""
    difference: Difference = "same"
    """The gravest that a sample shows."""
    first: FirstDifference | None = None
    """Where that sample parts from the recorded run."""
    set_apart: str = ""
    """Why it does not count: the old agent does not reproduce it."""

    @property
    def pair(self) -> RunPair:
        passed = sum(each.passed for each in self.candidates)
        return RunPair(self.recorded.passed, passed, len(self.candidates))


class ShadowReport(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """What `shadow` found."""

    schema: Literal["reenact.shadow.v1"] = "reenact.shadow.v1"
    runs: list[ShadowRun]
    samples: int
    """How often each run was made again."""
    change: dict[str, Any]
    """How models were asked."""
    test: str | None
    """The test that says which runs passed; without one those did that ended well."""
    baseline: str
    """``replayed``: the old agent reproduced each run that counts; ``recorded``: it was not run."""
    counts: dict[Difference, int]
    """Runs by how they differ."""
    set_apart: int
    comparison: PairedComparison
    pass_power: dict[str, float]
    """By k: how likely a run passes k times out of k."""
    is_interrupted: bool = False

    @property
    def counted(self) -> list[ShadowRun]:
        """The runs that count."""
        return [run for run in self.runs if not run.set_apart]

    @property
    def verdict(self) -> str:
        """In one sentence."""
        return str(self.comparison)


class AskedStep(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, kw_only=True):
    """One request, then and now."""

    path: str
    capture_id: str = ""
    seq: int
    """The event of the request."""
    recorded: str
    """What the model did: its tool calls, or the beginning of what it said."""
    candidate: str = ""
    same_tools: bool = False
    """Whether the same tools were chosen; saying something without one is a choice too."""
    same_arguments: bool = False
    """And called with the same arguments."""
    same_words: bool = False
    """And said the same."""
    recorded_tokens: int = 0
    tokens: int = 0
    problem: str = ""
    """Why there is no answer."""
    is_rebuilt: bool = False
    """Whether the request is not as it was sent, but rebuilt of what a transcript tells."""


class StepsReport(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """What `shadow` found, step by step."""

    schema: Literal["reenact.shadow-steps.v1"] = "reenact.shadow-steps.v1"
    steps: list[AskedStep]
    change: dict[str, Any]
    tools: Rate
    """How often the same tools were chosen."""
    arguments: Rate
    words: Rate
    failed: int
    """Requests that nobody answered; they count nowhere else."""
    left_out: int
    """Recorded model calls without an answer, or whose request is in no wire format and cannot be rebuilt."""
    is_interrupted: bool = False


def read_shadow_report(data: bytes, *, file: str | None = None) -> ShadowReport | StepsReport:
    """The report that ``reenact shadow --json`` wrote; :class:`FormatError` for anything else.

    One whose figures do not follow from its runs, or its steps, is refused.
    """
    report: ShadowReport | StepsReport
    try:
        schema = msgspec.json.decode(data, type=_Named).schema
        if schema == "reenact.shadow.v1":
            report = msgspec.json.decode(data, type=ShadowReport)
        elif schema == "reenact.shadow-steps.v1":
            report = msgspec.json.decode(data, type=StepsReport)
        else:
            reason = "is not a shadow report; reenact shadow --json writes one"
            raise FormatError(reason, file=file, json_path="$.schema")
    except msgspec.ValidationError as error:
        found = format_error(error)
        reason = f"is not a shadow report: {found.reason}"
        raise FormatError(reason, file=file, json_path=found.json_path) from None
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise FormatError(f"is not a shadow report: {error}", file=file) from None
    figures = _figures_of_runs(report) if isinstance(report, ShadowReport) else _figures_of_steps(report)
    for path, stated, follows in figures:
        if not math.isclose(stated, follows, rel_tol=_ROUNDED, abs_tol=_ROUNDED):
            reason = f"is {stated:g}, but {follows:g} follows from what the report lists"
            raise FormatError(reason, file=file, json_path=path)
    return report


def _figures_of_runs(report: ShadowReport) -> Iterator[tuple[str, float, float]]:
    """Where figures stand, what they are, and what follows from the runs."""
    for place, run in enumerate(report.runs):
        if not run.set_apart and not run.candidates:
            yield f"$.runs[{place}].candidates", 0, max(1, report.samples)
    pairs = [run.pair for run in report.counted if run.candidates]
    yield "$.setApart", report.set_apart, len(report.runs) - len(report.counted)
    for name in DIFFERENCES:
        count = sum(run.difference == name for run in report.counted)
        yield f"$.counts.{name}", report.counts.get(name, -1), count
    stated, follows = report.comparison, compare_pairs(pairs)
    path = "$.comparison"
    yield f"{path}.runs", stated.runs, follows.runs
    yield from _figures_of_rate(f"{path}.recorded", stated.recorded, follows.recorded)
    yield from _figures_of_rate(f"{path}.candidate", stated.candidate, follows.candidate)
    for member in ("difference", "low", "high", "better", "worse"):
        yield f"{path}.{member}", getattr(stated, member), getattr(follows, member)
    yield f"{path}.pValue", stated.p_value, follows.p_value
    power = pass_power_k(pairs)
    yield "$.passPower", len(report.pass_power), len(power)
    for k, chance in power.items():
        yield f"$.passPower.{k}", report.pass_power.get(str(k), -1), chance


def _figures_of_steps(report: StepsReport) -> Iterator[tuple[str, float, float]]:
    answered = [step for step in report.steps if not step.problem]
    yield "$.failed", report.failed, len(report.steps) - len(answered)
    for name in ("tools", "arguments", "words"):
        count = sum(getattr(step, f"same_{name}") for step in answered)
        yield from _figures_of_rate(f"$.{name}", getattr(report, name), Rate.of(count, len(answered)))


def _figures_of_rate(path: str, stated: Rate, follows: Rate) -> Iterator[tuple[str, float, float]]:
    for name in ("count", "total", "low", "high"):
        yield f"{path}.{name}", getattr(stated, name), getattr(follows, name)


def is_shadow_report(text: bytes) -> bool:
    """Whether *text* names the schema of a report, wherever it stands."""
    return b'"reenact.shadow.v1"' in text or b'"reenact.shadow-steps.v1"' in text


class _Named(msgspec.Struct):
    schema: str = ""

"""Shadow reports: the outcomes of recorded runs with a changed agent, prompt or model, with statistics.

Each run was recorded once and repeated several times. If the change has no effect, the recorded outcome is
exchangeable with the repeated ones. This gives the exact probability of a difference as large as the observed
one; with one sample per run it is McNemar's exact test.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Final, Literal, TypeAlias

import msgspec

from reenact.canonical import JsonField
from reenact.errors import FormatError
from reenact.formats.record import format_error

SURE: Final = 0.95
Z: Final = 1.959963984540054
"""95 % of the normal distribution is between minus and plus this."""
_SHOWN: Final = 160
_ROUNDED: Final = 1e-9
"""The tolerance for comparing computed figures."""
Difference: TypeAlias = Literal["same", "words", "tools", "failed"]
"""The same; another text with the same tool calls; other tool calls; failed."""
DIFFERENCES: Final[tuple[Difference, ...]] = ("same", "words", "tools", "failed")


class Rate(msgspec.Struct, frozen=True, rename="camel"):
    """A count of a total, with the 95 % confidence interval of the rate (Wilson)."""

    count: int
    total: int
    low: float
    high: float

    @classmethod
    def of(cls, count: int, total: int) -> Rate:
        """The rate with its interval; with a *total* of 0 the interval is 0 to 1."""
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
    """The comparison of recorded and repeated runs, paired by run."""

    runs: int
    recorded: Rate
    """The recorded runs that passed."""
    candidate: Rate
    """The samples that passed."""
    difference: float
    """The increase of the mean pass rate."""
    low: float
    high: float
    """The 95 % confidence interval of the difference (Bonett and Price)."""
    better: int
    """Runs that pass more often than recorded; with one sample, those that failed and pass now."""
    worse: int
    p_value: float
    """The probability of such a difference if the change has no effect."""

    @property
    def is_conclusive(self) -> bool:
        """Whether the difference is statistically significant."""
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
    """The outcome of one run."""

    path: str
    capture_id: str = ""
    exit_status: int | None = None
    """The exit status of the command, if the run is a command."""
    is_ok: bool = True
    """Whether the run ended without an error."""
    output: str = ""
    """The final output; for a command without one, a digest of what it printed."""
    printed: str = ""
    """The digest of what the command printed; empty if there is none."""
    tools: list[CalledTool] = []
    passed: bool = True
    """By the test if there is one, else *is_ok*."""
    failed_assertions: list[str] = []
    """One line for each failed assertion of the test."""
    tokens: int = 0
    cost: float | None = None
    duration_ms: float = 0.0
    problem: str = ""
    """Why there is no run."""


class FirstDifference(msgspec.Struct, frozen=True):
    """The first difference of two runs."""

    recorded: str
    candidate: str
    seq: int | None = None
    """The event of the candidate, if the difference has one."""


class RunPair(msgspec.Struct, frozen=True):
    """Whether a recorded run passed, and how many of its samples did."""

    recorded: bool
    passed: int
    samples: int = 1


def compare_pairs(pairs: Sequence[RunPair]) -> PairedComparison:
    """The comparison of all *pairs*."""
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
    """Wald's interval with one run added for each direction, because it is too narrow otherwise."""
    if not differences:
        return -1.0, 1.0
    seen = [*differences, 1.0, -1.0]
    mean = math.fsum(seen) / len(seen)
    variance = math.fsum((each - mean) ** 2 for each in seen) / len(seen)
    half = Z * math.sqrt(variance / len(seen))
    return max(-1.0, mean - half), min(1.0, mean + half)


def exact_p_value(pairs: Sequence[RunPair]) -> float:
    """The two-sided exact p-value; 1 if no run differs."""
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
    """The distribution of the number of successes after one more trial, which succeeds with *chance*."""
    missed = [weight * (1 - chance) for weight in weights] + [0.0]
    for place, weight in enumerate(weights):
        missed[place + 1] += weight * chance
    return missed


def pass_power_k(pairs: Sequence[RunPair]) -> dict[int, float]:
    """By *k*: the probability that a run passes *k* of *k* times, the mean over all runs (``pass^k``)."""
    samples = min((pair.samples for pair in pairs), default=0)
    return {
        k: math.fsum(math.comb(pair.passed, k) / math.comb(pair.samples, k) for pair in pairs) / len(pairs)
        for k in range(1, samples + 1)
    }


class ShadowRun(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, kw_only=True):
    """One recorded run and its samples."""

    path: str
    recorded: RunOutcome
    candidates: list[RunOutcome] = []
    """One for each sample."""
    difference: Difference = "same"
    """The worst difference of a sample."""
    first: FirstDifference | None = None
    """The first difference of that sample."""
    set_apart: str = ""
    """Why it does not count: the old agent does not reproduce it."""

    @property
    def pair(self) -> RunPair:
        passed = sum(each.passed for each in self.candidates)
        return RunPair(self.recorded.passed, passed, len(self.candidates))


class ShadowReport(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """The result of `shadow`."""

    schema: Literal["reenact.shadow.v1"] = "reenact.shadow.v1"
    runs: list[ShadowRun]
    samples: int
    """The number of samples of each run."""
    change: dict[str, JsonField]
    """The change of model requests."""
    test: str | None
    """The test that decides which runs passed; without one, those that ended without an error."""
    baseline: str
    """``replayed``: the old agent reproduced each run that counts; ``recorded``: it was not run."""
    counts: dict[Difference, int]
    """The number of runs by difference."""
    set_apart: int
    comparison: PairedComparison
    pass_power: dict[str, float]
    """By k: the probability that a run passes k of k times."""
    is_interrupted: bool = False

    @property
    def counted(self) -> list[ShadowRun]:
        """The runs that count."""
        return [run for run in self.runs if not run.set_apart]

    @property
    def verdict(self) -> str:
        """The result in one sentence."""
        return str(self.comparison)


class AskedStep(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, kw_only=True):
    """One request with its recorded and its new answer."""

    path: str
    capture_id: str = ""
    seq: int
    """The event of the request."""
    recorded: str
    """The tool calls of the model, or the beginning of its text."""
    candidate: str = ""
    same_tools: bool = False
    """Whether the same tools were called, or none in both."""
    same_arguments: bool = False
    """Whether also the arguments are the same."""
    same_words: bool = False
    """Whether also the text is the same."""
    recorded_tokens: int = 0
    tokens: int = 0
    problem: str = ""
    """Why there is no answer."""
    is_rebuilt: bool = False
    """Whether the request is not as it was sent, but rebuilt of what a transcript tells."""


class StepsReport(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """The result of `shadow` for single steps."""

    schema: Literal["reenact.shadow-steps.v1"] = "reenact.shadow-steps.v1"
    steps: list[AskedStep]
    change: dict[str, JsonField]
    tools: Rate
    """Answers with the same tools."""
    arguments: Rate
    words: Rate
    failed: int
    """Requests without an answer; they do not count elsewhere."""
    left_out: int
    """Recorded model calls without an answer, or with a request in no wire format that cannot be rebuilt."""
    is_interrupted: bool = False


def read_shadow_report(data: bytes, *, file: str | None = None) -> ShadowReport | StepsReport:
    """The report that ``reenact shadow --json`` wrote; :class:`FormatError` for anything else.

    A report whose figures do not follow from its runs or steps also raises.
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
    """The path of each figure, its value, and the value that follows from the runs."""
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
    """Whether *text* has the schema of a report, at any place."""
    return b'"reenact.shadow.v1"' in text or b'"reenact.shadow-steps.v1"' in text


class _Named(msgspec.Struct):
    schema: str = ""

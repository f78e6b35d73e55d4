"""Shadow reports: what became of recorded runs with a changed agent, prompt or model, and how sure it is."""

from __future__ import annotations

import math
from collections.abc import Iterator
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
        word = "worse" if self.difference < 0 else "better"
        change = f"{self.difference:+.0%} of the runs pass ({self.low:+.0%} to {self.high:+.0%})"
        return f"{word}: {change}, p = {self.p_value:.2g}"


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
    """Recorded model calls that hold no request in a wire format, or no answer."""
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
            reason = "is no shadow report; reenact shadow --json writes one"
            raise FormatError(reason, file=file, json_path="$.schema")
    except msgspec.ValidationError as error:
        found = format_error(error)
        reason = f"is no shadow report: {found.reason}"
        raise FormatError(reason, file=file, json_path=found.json_path) from None
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise FormatError(f"is no shadow report: {error}", file=file) from None
    figures = _figures_of_runs(report) if isinstance(report, ShadowReport) else _figures_of_steps(report)
    for path, stated, follows in figures:
        if not math.isclose(stated, follows, rel_tol=_ROUNDED, abs_tol=_ROUNDED):
            reason = f"is {stated:g}, but {follows:g} follows from what the report lists"
            raise FormatError(reason, file=file, json_path=path)
    return report


def _figures_of_runs(report: ShadowReport) -> Iterator[tuple[str, float, float]]:
    """Where figures stand, what they are, and what follows from the runs."""
    pairs = [run.pair for run in report.counted]
    comparison = report.comparison
    yield "$.setApart", report.set_apart, len(report.runs) - len(pairs)
    for name in DIFFERENCES:
        count = sum(run.difference == name for run in report.counted)
        yield f"$.counts.{name}", report.counts.get(name, -1), count
    yield "$.comparison.runs", comparison.runs, len(pairs)
    passed, samples = sum(pair.passed for pair in pairs), sum(pair.samples for pair in pairs)
    yield from _figures_of_rate(
        "$.comparison.recorded", comparison.recorded, sum(pair.recorded for pair in pairs), len(pairs)
    )
    yield from _figures_of_rate("$.comparison.candidate", comparison.candidate, passed, samples)
    gains = [pair.passed - pair.recorded * pair.samples for pair in pairs]
    yield "$.comparison.better", comparison.better, sum(gain > 0 for gain in gains)
    yield "$.comparison.worse", comparison.worse, sum(gain < 0 for gain in gains)


def _figures_of_steps(report: StepsReport) -> Iterator[tuple[str, float, float]]:
    answered = [step for step in report.steps if not step.problem]
    yield "$.failed", report.failed, len(report.steps) - len(answered)
    for name in ("tools", "arguments", "words"):
        count = sum(getattr(step, f"same_{name}") for step in answered)
        yield from _figures_of_rate(f"$.{name}", getattr(report, name), count, len(answered))


def _figures_of_rate(path: str, rate: Rate, count: int, total: int) -> Iterator[tuple[str, float, float]]:
    follows = Rate.of(count, total)
    for name in ("count", "total", "low", "high"):
        yield f"{path}.{name}", getattr(rate, name), getattr(follows, name)


def is_shadow_report(text: bytes) -> bool:
    """Whether *text* names the schema of a report, wherever it stands."""
    return b'"reenact.shadow.v1"' in text or b'"reenact.shadow-steps.v1"' in text


class _Named(msgspec.Struct):
    schema: str = ""

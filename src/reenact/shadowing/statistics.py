"""How sure one can be: rates with intervals, and a paired comparison of before and after.

Each run was recorded once and made again so many times. If nothing changed, the recorded outcome is one like
the others: among all that passed it is any of them with the same chance. From that the exact chance follows
of a difference as large as the one seen; with one sample a run this is McNemar's exact test.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import msgspec

SURE: Final = 0.95
_Z: Final = 1.959963984540054
"""The normal distribution has 95 % of its weight between minus and plus this."""


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
        share, spread = count / total, _Z * _Z / total
        middle = (share + spread / 2) / (1 + spread)
        half = _Z / (1 + spread) * math.sqrt(share * (1 - share) / total + spread / total / 4)
        low = 0.0 if count == 0 else max(0.0, middle - half)
        return cls(count, total, low, 1.0 if count == total else min(1.0, middle + half))

    @property
    def share(self) -> float:
        return self.count / self.total if self.total else 0.0

    def __str__(self) -> str:
        return f"{self.count} of {self.total} ({self.low:.0%} to {self.high:.0%})"


class RunPair(msgspec.Struct, frozen=True):
    """One run: whether it passed when it was recorded, and how many of its samples did."""

    recorded: bool
    passed: int
    samples: int = 1


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
    def is_told(self) -> bool:
        """Whether there is a difference that chance does not explain."""
        return self.p_value < 1 - SURE

    @property
    def is_worse(self) -> bool:
        return self.is_told and self.difference < 0

    def __str__(self) -> str:
        if not self.is_told:
            return "no difference can be told from this many runs"
        word = "worse" if self.difference < 0 else "better"
        change = f"{self.difference:+.0%} of the runs pass ({self.low:+.0%} to {self.high:+.0%})"
        return f"{word}: {change}, p = {self.p_value:.2g}"


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
    half = _Z * math.sqrt(variance / len(seen))
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

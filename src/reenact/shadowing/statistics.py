"""How sure one can be: rates with intervals, and a paired comparison of before and after.

Each run was recorded once and made again so many times. If nothing changed, the recorded outcome is one like
the others: among all that passed it is any of them with the same chance. From that the exact chance follows
of a difference as large as the one seen; with one sample a run this is McNemar's exact test.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from reenact.formats.shadow import PairedComparison, Rate, RunPair, Z


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

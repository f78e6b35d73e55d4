"""How numbers are spread: kept as they come, ranked when asked."""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

_RANKS: Final = (50, 90, 99)
_BINS_PER_DECADE: Final = 4
_LARGEST: Final = 2.0**53


class Spread(msgspec.Struct, frozen=True, rename="camel"):
    """Numbers summed up; percentiles are values that were measured, not computed between two."""

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
        """``None`` where there are no numbers."""
        ranked = sorted(map(_measurable, numbers))
        if not ranked:
            return None
        total = math.fsum(ranked)
        p50, p90, p99 = (percentile(ranked, rank) for rank in _RANKS)
        return cls(len(ranked), total, total / len(ranked), ranked[0], p50, p90, p99, ranked[-1])


def _measurable(number: float) -> float:
    """*number*, or the nearest that somebody may have measured: a log can say anything."""
    return max(-_LARGEST, min(number, _LARGEST))


def percentile(ranked: Sequence[float], rank: float) -> float:
    """The smallest of the *ranked* numbers that *rank* per cent of them do not exceed."""
    return ranked[max(0, math.ceil(len(ranked) * rank / 100) - 1)]


def histogram(numbers: Iterable[float], bins: int) -> list[tuple[float, float, int]]:
    """From, to and how many, in up to *bins* steps that grow by the same factor; below 1 counts as 1.

    Numbers that lie close together get fewer steps, because finer ones would all look alike.
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

"""A figure: ours and what stands beside it, timed in turns, and the bar it has to reach."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from time import perf_counter
from timeit import Timer
from typing import Any, Literal, NamedTuple, Protocol

Unit = Literal["s", "B"]

ROUNDS = 15
ROUND_SECONDS = 0.002
"""Less than a process gets at a time on a busy machine, so that some rounds are undisturbed."""
SHORT_TURNS = 10
"""So many times the rounds for what is short enough to be called several times in each."""


class Bar(Protocol):
    """What the two durations have to satisfy."""

    def ratio(self, ours_s: float, beside_s: float) -> float: ...
    def holds(self, ratio: float) -> bool: ...
    def show(self, ratio: float) -> str: ...
    def __str__(self) -> str: ...


class ShareOfSpeed(NamedTuple):
    """Ours reaches at least this share of the other's speed."""

    at_least: float

    def ratio(self, ours_s: float, beside_s: float) -> float:
        return beside_s / ours_s

    def holds(self, ratio: float) -> bool:
        return ratio >= self.at_least

    def show(self, ratio: float) -> str:
        return f"{ratio:.0%}"

    def __str__(self) -> str:
        return f"≥ {self.at_least:.0%}"


class TimesAsLong(NamedTuple):
    """Ours takes at most this many times as long as the other."""

    at_most: float

    def ratio(self, ours_s: float, beside_s: float) -> float:
        return ours_s / beside_s

    def holds(self, ratio: float) -> bool:
        return ratio <= self.at_most

    def show(self, ratio: float) -> str:
        return f"{ratio:.2f} ×"

    def __str__(self) -> str:
        return f"≤ {self.at_most:g} ×"


class Over(NamedTuple):
    """Ours takes at most so many seconds longer than the other."""

    at_most_s: float

    def ratio(self, ours_s: float, beside_s: float) -> float:
        return ours_s - beside_s

    def holds(self, ratio: float) -> bool:
        return ratio <= self.at_most_s

    def show(self, ratio: float) -> str:
        return f"{ratio * 1e6:+.2f} µs"

    def __str__(self) -> str:
        return f"≤ +{self.at_most_s * 1e6:g} µs"


class BytesOver(NamedTuple):
    """Ours takes at most so many bytes more than the other."""

    at_most: int

    def ratio(self, ours_s: float, beside_s: float) -> float:
        return ours_s - beside_s

    def holds(self, ratio: float) -> bool:
        return ratio <= self.at_most

    def show(self, ratio: float) -> str:
        return f"{ratio:+,.0f} B"

    def __str__(self) -> str:
        return f"≤ +{self.at_most:,} B"


class Figure(NamedTuple):
    """One measured line of the table; durations are those of one operation."""

    what: str
    ours_s: float
    beside: str
    beside_s: float
    bar: Bar
    unit: Unit = "s"
    """What the two numbers are: seconds, or bytes."""

    @property
    def ratio(self) -> float:
        return self.bar.ratio(self.ours_s, self.beside_s)

    @property
    def is_ok(self) -> bool:
        return self.bar.holds(self.ratio)


Figures = Callable[[], Iterator[Figure]]


def best_in_turns(
    ours: Callable[[], Any],
    beside: Callable[[], Any],
    *,
    rounds: int = ROUNDS,
    clock: Callable[[], float] = perf_counter,
) -> tuple[float, float]:
    """The best duration of each, in seconds per call.

    They take turns, so that a busy moment of the machine hits both; the best of many rounds is the
    one that was disturbed least.
    """
    timers = (Timer(ours, timer=clock), Timer(beside, timer=clock))
    numbers = [_calls_per_round(timer) for timer in timers]
    best = [float("inf"), float("inf")]
    for _ in range(rounds * SHORT_TURNS if min(numbers) > 1 else rounds):
        for index, (timer, number) in enumerate(zip(timers, numbers, strict=True)):
            best[index] = min(best[index], timer.timeit(number) / number)
    return best[0], best[1]


def _calls_per_round(timer: Timer) -> int:
    once = min(timer.repeat(3, 1))
    return max(1, round(ROUND_SECONDS / max(once, 1e-7)))

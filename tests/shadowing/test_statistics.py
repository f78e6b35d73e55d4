"""The statistics of shadow runs, against published values and simulated experiments."""

from __future__ import annotations

import random

import msgspec
import pytest

from reenact.formats.shadow import (
    Rate,
    RunOutcome,
    RunPair,
    compare_pairs,
    exact_p_value,
    pass_power_k,
    read_shadow_report,
)
from reenact.shadowing.experiment import compare_run, summarize_runs


def pairs(both: int = 0, lost: int = 0, won: int = 0, neither: int = 0) -> list[RunPair]:
    return (
        [RunPair(True, 1)] * both
        + [RunPair(True, 0)] * lost
        + [RunPair(False, 1)] * won
        + [RunPair(False, 0)] * neither
    )


@pytest.mark.parametrize(
    ("count", "total", "low", "high"),
    [(0, 10, 0.0, 0.27753), (10, 10, 0.72247, 1.0), (81, 263, 0.25529, 0.36622), (1, 1, 0.20655, 1.0)],
)
def test_wilson(count: int, total: int, low: float, high: float) -> None:
    """Newcombe's (1998) examples."""
    rate = Rate.of(count, total)
    assert (rate.low, rate.high) == pytest.approx((low, high), abs=5e-5)


def test_nothing_is_known_of_no_runs() -> None:
    found = compare_pairs([])
    assert (found.low, found.high, found.p_value, found.is_conclusive) == (-1, 1, 1, False)
    assert (Rate.of(0, 0).low, Rate.of(0, 0).high) == (0, 1)


@pytest.mark.parametrize(
    ("lost", "won", "expected"),
    [(0, 0, 1.0), (1, 0, 1.0), (5, 0, 0.0625), (6, 0, 0.03125), (9, 1, 0.021484375), (5, 5, 1.0)],
)
def test_one_sample_a_run_is_mcnemar(lost: int, won: int, expected: float) -> None:
    """Runs that did the same count for nothing."""
    assert exact_p_value(pairs(17, lost, won, 4)) == pytest.approx(expected)


def test_several_samples_a_run() -> None:
    """Two runs that passed once and never again in three samples: one chance in four each, and two tails."""
    assert exact_p_value([RunPair(True, 0, 3)] * 2) == pytest.approx(2 / 16)
    assert exact_p_value([RunPair(True, 0, 3)] * 3) == pytest.approx(2 / 64)


def test_an_interval_holds_the_difference() -> None:
    """Bonett and Price (2012) over 50 runs, of which 12 were lost and 3 won."""
    found = compare_pairs(pairs(30, 12, 3, 5))
    assert found.difference == pytest.approx(-0.18)
    assert (found.low, found.high) == pytest.approx((-0.3212, -0.0250), abs=1e-4)
    assert found.is_worse
    assert str(found).startswith("worse: the pass rate is 18 points lower (-32 to -2), p = 0.035")


def test_few_runs_tell_nothing() -> None:
    assert str(compare_pairs(pairs(3, 2))) == "no difference can be told from this many runs"


def test_pass_power_k() -> None:
    """A run that passes every second time hardly ever passes twice."""
    found = pass_power_k([RunPair(True, 4, 4), RunPair(True, 2, 4)])
    assert found == pytest.approx({1: 0.75, 2: (1 + 1 / 6) / 2, 3: 0.5, 4: 0.5})
    assert pass_power_k([]) == {}


def answer_by_chance(chance: random.Random, rate: float) -> RunOutcome:
    """A run of an agent that does what it should at this *rate*, in one of many wordings."""
    is_good = chance.random() < rate
    words = chance.choice(["Here it is.", "There you are.", "Done."]) if is_good else "Tomorrow."
    return RunOutcome(path="run", output=words, passed=is_good)


@pytest.mark.parametrize("samples", [1, 3])
def test_experiments_without_a_change_report_few_regressions(samples: int) -> None:
    """Of a thousand at most 5 % tell a difference: agents of all kinds, none of which has changed."""
    chance = random.Random(17)
    told = worse = 0
    for _ in range(1000):
        runs = []
        for _ in range(50):
            rate = chance.choice([0.02, 0.3, 0.5, 0.8, 0.97])
            first, *again = (answer_by_chance(chance, rate) for _ in range(samples + 1))
            runs.append(compare_run("run", first, again))
        report = summarize_runs(runs, samples=samples, change={}, test="test.yaml")
        assert report.counts["words"] > 0
        told += report.comparison.is_conclusive
        worse += report.comparison.is_worse
        assert (report.verdict == "no difference can be told from this many runs") is not (
            report.comparison.is_conclusive
        )
    assert told <= 50
    assert worse <= 25 + 10  # half of them, and some room for this one draw
    assert read_shadow_report(msgspec.json.encode(report)) == report


def test_a_change_is_found() -> None:
    """A prompt that makes one run in three fail is seen in 50 runs nearly always."""
    chance = random.Random(3)
    found = [
        compare_pairs([RunPair(True, int(chance.random() > 1 / 3)) for _ in range(50)]).is_worse
        for _ in range(200)
    ]
    assert sum(found) >= 195

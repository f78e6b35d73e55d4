"""Many runs, counted."""

from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import reenact
from reenact.analysis.artifact import open_artifact
from reenact.analysis.stats import RunCounter, Spread, count_run, histogram
from reenact.check.kinds import find_runs
from reenact.errors import StoreError
from reenact.suite.settings import Price
from tests.analysis.recordings import ask, order, record, search

GOLDEN = Path(__file__).parents[1] / "golden"
NUMBERS = st.lists(st.floats(0, 1e6), min_size=1, max_size=60)


def counted(*paths, prices=None):
    counting = RunCounter(prices)
    for path in find_runs(map(str, paths)):
        with open_artifact(path, prices) as artifact:
            counting.add(count_run(artifact))
    return counting.stats()


@given(NUMBERS)
def test_percentiles_were_measured(numbers):
    """And half of the numbers do not exceed the median."""
    spread = Spread.of(numbers)
    assert {spread.p50, spread.p90, spread.p99} <= set(numbers)
    assert spread.min <= spread.p50 <= spread.p90 <= spread.p99 <= spread.max
    assert sum(number <= spread.p50 for number in numbers) * 2 >= len(numbers)
    assert spread.min <= spread.mean * (1 + 1e-9) + 1e-9


@given(NUMBERS, st.integers(1, 30))
def test_a_histogram_counts_everything_once(numbers, bins):
    """In bins that follow on each other."""
    found = histogram(numbers, bins)
    assert sum(count for _, _, count in found) == len(numbers)
    assert all(one[1] == pytest.approx(other[0]) for one, other in pairwise(found))


def test_nothing_has_no_spread():
    """Rather than a spread of zeros."""
    assert Spread.of([]) is None
    assert histogram([], 5) == []


def test_steps_are_counted_by_kind_and_name(tmp_path):
    """Over all runs, the most frequent first."""
    record(tmp_path / "a", "lamp", "desk")
    with reenact.capture(tmp_path / "deep" / "b"):
        ask("hi")
        with pytest.raises(KeyError):
            order("chair")
    stats = counted(tmp_path)
    assert (stats.runs, stats.steps, stats.errors, stats.statuses) == (2, 5, 1, {"ok": 2})
    assert [(call.kind, call.name, call.calls, call.errors) for call in stats.calls] == [
        ("tool", "search", 3, 0),
        ("model", "gpt-5", 1, 0),
        ("tool", "order", 1, 1),
    ]
    assert stats.latency_ms.count == 5
    assert [run.path for run in stats.each] == [str(tmp_path / "a"), str(tmp_path / "deep" / "b")]


def test_asking_again_after_a_failure_is_a_retry(tmp_path):
    """The same question in the same lane; another question is none."""

    @reenact.tool
    def fails(item):
        raise OSError(item)

    with reenact.capture(tmp_path / "a"):
        for item in ("lamp", "lamp", "lamp", "desk"):
            with pytest.raises(OSError, match=item):
                fails(item)
        search("desk")
    stats = counted(tmp_path / "a")
    assert (stats.retries, stats.calls[0].retries, stats.each[0].retries) == (2, 2, 2)


def test_cost_is_known_only_where_every_price_is(tmp_path):
    """Half a sum would mislead."""
    with reenact.capture(tmp_path / "a"):
        ask("hi")
    with reenact.capture(tmp_path / "b"):
        ask("hi", model="other")
    prices = {"gpt-5": Price(input=10, output=50)}
    stats = counted(tmp_path / "a", prices=prices)
    assert stats.cost == stats.models[0].cost == stats.each[0].cost == pytest.approx(0.002)
    stats = counted(tmp_path, prices=prices)
    assert (stats.cost, stats.tokens.input) == (None, 200)


def test_step_utility_is_averaged():
    """Of logs that record it."""
    stats = counted(GOLDEN / "replay_log" / "current.jsonl")
    assert stats.utility.mean == pytest.approx(0.2)
    assert stats.each[0].utility == pytest.approx(0.2)


def test_folders_are_looked_through_for_runs(tmp_path):
    """Hidden folders and files that hold no run are passed over; each run is found once."""
    record(tmp_path / "b", "lamp")
    record(tmp_path / ".hidden" / "c", "lamp")
    (tmp_path / "notes.json").write_text("{}")
    (tmp_path / "a.jsonl").write_text((GOLDEN / "replay_log" / "legacy.jsonl").read_text())
    found = find_runs([str(tmp_path), str(tmp_path / "b")])
    assert found == [tmp_path / "a.jsonl", tmp_path / "b"]


@pytest.mark.parametrize("name", ["nothing", "empty"])
def test_a_path_without_runs_is_an_error(tmp_path, name):
    """Rather than statistics of nothing."""
    (tmp_path / "empty").mkdir()
    with pytest.raises(StoreError, match=name):
        find_runs([str(tmp_path / name)])

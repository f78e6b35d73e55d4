"""Many processes: each records its own tests, and the summary counts them all."""

from __future__ import annotations

import pytest

from tests.pytest_plugin.conftest import Suite

pytest_plugins = ["pytester"]

MANY = """
@pytest.mark.reenact
@pytest.mark.parametrize("n", range(12))
def test_many(n):
    for step in range(5):
        search(f"{n}-{step}{VARIANT if n == 7 else ''}")
"""


def test_workers_record_and_replay_side_by_side(suite: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every test has its own capture, and a divergence in a worker reads as anywhere."""
    suite.write(test_it=MANY)
    options = ("-p", "xdist", "-n", "2")
    recorded = suite.run_apart(*options, "--reenact=record")
    recorded.assert_outcomes(passed=12)
    recorded.stdout.fnmatch_lines(["reenact: 12 recorded"])
    assert suite.captures() == sorted(f"captures/test_it/test_many[{n}]" for n in range(12))
    suite.run().assert_outcomes(passed=12)
    monkeypatch.setenv("VARIANT", "x")
    replayed = suite.run_apart(*options, "-q")
    replayed.assert_outcomes(passed=11, failed=1)
    replayed.stdout.fnmatch_lines(
        [
            'tool * differs * at *: expected "7-0", observed "7-0x"',
            "  record anew  pytest 'test_it.py::test_many[[]7]' --reenact=record",
            "reenact: 11 replayed, 1 diverged",
        ]
    )
    assert "Traceback" not in str(replayed.stdout)


def test_two_processes_may_record_the_same_test(suite: Suite) -> None:
    """One of the two whole captures is there in the end, and nothing beside it."""
    suite.write(test_it="@pytest.mark.reenact\ndef test_one():\n    for n in range(300): search(n)\n")
    recorded = suite.run_apart("-p", "xdist", "--dist", "each", "--tx", "2*popen", "--reenact=record")
    recorded.assert_outcomes(passed=2)
    assert suite.captures() == ["captures/test_it/test_one"]
    suite.run().assert_outcomes(passed=1)


def test_orphans_are_found_by_workers(suite: Suite) -> None:
    """They collect, the controller tells."""
    suite.write(test_it="def test_old(reenact_run): search('a')\n")
    suite.run("--reenact=record").assert_outcomes(passed=1)
    suite.write(test_it="def test_new(): pass\n")
    result = suite.run_apart("-p", "xdist", "-n", "1", "--reenact-orphans")
    result.stdout.fnmatch_lines(
        ["reenact: 1 capture that no test uses", "  orphan    captures/test_it/test_old"]
    )

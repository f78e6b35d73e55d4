"""The example suites: what is called passing passes, and so on."""

from pathlib import Path

import pytest

from reenact.suite.runner import Plan, find_tests, run_test

SUITES = Path(__file__).parents[2] / "examples" / "suites"
EXPECTED = {"passing": "pass", "failing": "fail", "invalid": "error"}
FILES = find_tests([SUITES])


@pytest.mark.parametrize("file", FILES, ids=[str(file.parent.relative_to(SUITES)) for file in FILES])
def test_an_example_is_what_it_is_called(file):
    """By the name of its directory."""
    assert run_test(file, Plan("r")).result.status == EXPECTED[file.parent.name]


def test_every_suite_has_all_three():
    """A passing, a failing and an invalid case."""
    suites = {file.parent.parent.name for file in FILES}
    assert suites >= {"news", "memory-isolation", "scheduled-digest", "graceful-failure"}
    assert len(FILES) == 3 * len(suites)

"""``test.yaml`` files in a pytest suite."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from reenact.pytest_plugin import cases
from tests.pytest_plugin.conftest import Suite

pytest_plugins = ["pytester"]
assert cases  # kept loaded, as the other modules of the plugin are

EXAMPLES = Path(__file__).parents[2] / "examples" / "suites"


@pytest.fixture
def news(suite: Suite) -> Suite:
    """A suite with one test that passes, one that fails and one that is none."""
    shutil.copytree(EXAMPLES / "news", suite.path / "news")
    return suite


def test_each_test_case_is_a_test(news: Suite) -> None:
    """Named by its id; what cannot be read is a failure, for it was meant to be a test."""
    result = news.run("-v")
    result.assert_outcomes(passed=1, failed=2)
    result.stdout.fnmatch_lines(["news/passing/test.yaml::*PASSED*"])


def test_a_failed_assertion_is_told_in_full(news: Suite) -> None:
    """Message, place, what was observed, and no traceback."""
    result = news.run("news/failing")
    result.stdout.fnmatch_lines(["FAIL *news/failing/test.yaml*", "*critical, *test.yaml:*", "*observed*"])
    result.stdout.no_fnmatch_line("*Traceback*")
    result.stdout.no_fnmatch_line("*CaseFailed*")


def test_a_file_that_cannot_be_read_says_where(news: Suite) -> None:
    result = news.run("news/invalid")
    result.stdout.fnmatch_lines(["*news/invalid/test.yaml:*"])
    result.assert_outcomes(failed=1)


@pytest.mark.parametrize("keyword", ["searched", "backed", "smoke"])
def test_cases_are_chosen_by_keyword(suite: Suite, keyword: str) -> None:
    """By id, title and tag."""
    shutil.copytree(EXAMPLES / "news" / "passing", suite.path / "passing")
    suite.run("-k", keyword).assert_outcomes(passed=1)
    suite.run("-k", f"not {keyword}").assert_outcomes(deselected=1)


@pytest.mark.parametrize("text", ["steps: [build, test]\n", "schema_version: 3\nservices: {}\n", ""])
def test_files_of_others_are_left_alone(suite: Suite, text: str) -> None:
    """The name is a common one."""
    (suite.path / "test.yaml").write_text(text)
    suite.run().assert_outcomes()


def test_processes_share_the_work(news: Suite) -> None:
    """With pytest-xdist, which must collect the same tests everywhere and send failures home."""
    result = news.run_apart("-p", "xdist", "-n", "2")
    result.assert_outcomes(passed=1, failed=2)
    result.stdout.fnmatch_lines(["*critical, *test.yaml:*"])


def test_a_suite_without_test_cases_loads_nothing_of_them(suite: Suite) -> None:
    suite.write(
        test_plain="def test_plain():\n    import sys; assert 'reenact.suite.runner' not in sys.modules"
    )
    suite.run_apart().assert_outcomes(passed=1)

"""``--reenact-orphans`` lists captures that no collected test uses."""

from __future__ import annotations

import pytest

from tests.pytest_plugin.conftest import Suite

pytest_plugins = ["pytester"]

TWO = "def test_one(reenact_run): search('a')\ndef test_two(reenact_run): search('b')\n"


@pytest.fixture
def recorded(suite: Suite) -> Suite:
    suite.write(test_a=TWO, test_b=TWO)
    suite.run("--reenact=record").assert_outcomes(passed=4)
    return suite


def orphans(suite: Suite, *arguments: str) -> list[str]:
    result = suite.run("--reenact-orphans", "--collect-only", *arguments)
    return [line.split()[1] for line in result.outlines if line.startswith("  orphan ")]


def test_used_captures_are_no_orphans(recorded: Suite) -> None:
    """Nor are those of tests that are deselected, or of files that are not collected."""
    assert orphans(recorded) == []
    assert orphans(recorded, "-k", "one") == []
    assert orphans(recorded, "test_a.py") == []


def test_a_renamed_test_leaves_an_orphan(recorded: Suite) -> None:
    """So does one that lost its mark, and a file that is gone."""
    recorded.write(test_a=TWO.replace("test_one", "test_first"), test_c="def test_it(): pass\n")
    assert orphans(recorded) == ["captures/test_a/test_one"]
    recorded.write(test_a=TWO.replace("reenact_run", ""))
    assert orphans(recorded) == ["captures/test_a/test_one", "captures/test_a/test_two"]
    (recorded.path / "test_a.py").unlink()
    assert orphans(recorded) == ["captures/test_a/test_one", "captures/test_a/test_two"]


def test_a_capture_named_by_path_is_used(recorded: Suite) -> None:
    """Wherever the test is that names it."""
    mark = "@pytest.mark.reenact(path='captures/test_a/test_one')\n"
    recorded.write(test_a=TWO.replace("test_one", "test_first"), test_b=mark + TWO)
    assert orphans(recorded) == ["captures/test_b/test_one"]


def test_nothing_is_said_where_single_tests_are_collected(recorded: Suite) -> None:
    """The others would look like orphans."""
    result = recorded.run("--reenact-orphans", "test_a.py::test_one")
    result.stdout.fnmatch_lines(["reenact: orphans are only searched when complete files are collected"])
    result.stdout.no_fnmatch_line("*orphan  *")

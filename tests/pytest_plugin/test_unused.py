"""A suite that does not use reenact does not notice it."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from reenact import pytest_plugin
from tests.pytest_plugin.conftest import Suite

pytest_plugins = ["pytester"]

ROOT = Path(__file__).parents[2]

PLAIN = """
import pytest

@pytest.fixture
def given(monkeypatch):
    yield 1

@pytest.mark.parametrize("n", [1, 2])
def test_plain(given, n, request):
    print("fixtures:", request.fixturenames)
    assert n == 1

def test_skipped():
    pytest.skip("why not")
"""


def test_nothing_heavy_is_loaded(suite: Suite) -> None:
    """Neither at start nor by tests without a mark."""
    suite.pytester.makepyfile(test_it=PLAIN)
    suite.pytester.makeconftest(
        """
import sys

def pytest_unconfigure():
    heavy = {"msgspec", "orjson", "ctypes", "reenact.run", "reenact.boundary", "asyncio"}
    print("loaded:", sorted(heavy & set(sys.modules)))
"""
    )
    result = suite.run_apart("-s")
    result.assert_outcomes(passed=1, failed=1, skipped=1)
    result.stdout.fnmatch_lines(["*loaded: []"])


def test_reports_are_the_same_with_and_without(suite: Suite) -> None:
    """Not a line more, in any mode."""
    suite.pytester.makepyfile(test_it=PLAIN)

    def lines(*plugins: object, options: tuple[str, ...] = ()) -> list[str]:
        common = ("-rA", "-v", "-p", "no:cacheprovider")
        result = suite.pytester.runpytest_inprocess(*common, *options, plugins=plugins)
        return [re.sub(r"\d+\.\d+s|0x\w+", "#", line) for line in result.outlines]

    assert lines(pytest_plugin) == lines()
    recording = lines(pytest_plugin, options=("--reenact=record",))
    assert [line for line in recording if line != "reenact: record"] == lines()


def test_the_marker_is_registered(suite: Suite) -> None:
    """Strict suites accept it."""
    suite.write(test_it="@pytest.mark.reenact\ndef test_one(): search('a')\n")
    suite.run("--reenact=record", "--strict-markers").assert_outcomes(passed=1)
    suite.run("--markers").stdout.fnmatch_lines(
        ["@pytest.mark.reenact(policy, redact, *, path, allow, workspace, fork): *"]
    )


def test_pytest_finds_the_plugin_by_itself(suite: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    """Through the entry point that the package declares."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    entries = project["entry-points"]["pytest11"]
    folder = suite.pytester.mkdir("reenact_for_this_test-1.dist-info")
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: reenact-for-this-test\nVersion: 1\n")
    lines = [f"{name} = {module}" for name, module in entries.items()]
    (folder / "entry_points.txt").write_text("\n".join(["[pytest11]", *lines, ""]))
    monkeypatch.delenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "--help"], cwd=suite.path, capture_output=True, text=True, check=True
    )
    assert "--reenact={replay,record,once,update,off}" in done.stdout

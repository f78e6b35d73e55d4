"""``watch_tests``: the tests again after each change."""

from __future__ import annotations

from pathlib import Path

import pytest

import reenact
from reenact.errors import UsageError


def write_test(path: Path, tool: str) -> None:
    path.write_text(
        'schema_version: "0.1"\nid: calls\ntitle: Calls\nadapter: reenact\nmode: replay\n'
        "scenario: {trigger: user_message}\nadapter_input: {capture: run}\n"
        f"assertions:\n  - {{id: called, type: must_call_tool, params: {{tool: {tool}}}}}\n"
    )


def test_tests_run_again_after_a_change(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each round has its own report."""
    monkeypatch.chdir(tmp_path)
    search = reenact.tool(lambda: "found", name="search")
    with reenact.capture("run"):
        search()
    write_test(Path("test.yaml"), "search")
    rounds = reenact.watch_tests("test.yaml")
    assert next(rounds).result().passed
    write_test(Path("test.yaml"), "fly_to_the_moon")
    assert not next(rounds).result().passed


def test_an_error_does_not_end_the_watching(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A wrong reenact.toml is reported, and the next round comes when it is mended."""
    monkeypatch.chdir(tmp_path)
    write_test(Path("test.yaml"), "search")
    Path("reenact.toml").write_text('[test]\nassertions = ["checks.py"]\n')
    Path("checks.py").write_text("")
    rounds = reenact.watch_tests("test.yaml")
    failed = next(rounds)
    assert failed.report is None
    assert isinstance(failed.error, UsageError)
    with pytest.raises(UsageError):
        failed.result()
    Path("reenact.toml").write_text("")
    assert next(rounds).report is not None

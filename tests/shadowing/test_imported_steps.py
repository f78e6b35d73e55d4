"""Step by step on runs that others recorded: where the requests are there, they are asked again."""

from __future__ import annotations

from pathlib import Path

import pytest

import reenact
from reenact.testing import Reply, ScriptedProvider

FIXTURES = Path(__file__).parents[1] / "importers" / "fixtures"


@pytest.mark.parametrize(("source", "same_tools"), [("cassetter.yaml", 2), ("codex-trace", 1)])
def test_an_imported_request_is_asked_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str, same_tools: int
) -> None:
    """Of another model, on its recorded history; to say something where a tool was called is other tools."""
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY"):
        monkeypatch.setenv(name, "any")
    reenact.import_runs(FIXTURES / source, tmp_path / "run")
    with ScriptedProvider(lambda _: Reply("Another answer.")) as provider:
        upstreams = {name: provider.base_url(name) for name in ("openai", "anthropic")}
        report = reenact.shadow_steps(tmp_path / "run", change={"model": "other"}, upstreams=upstreams)
        assert {request.body["model"] for request in provider.requests} == {"other"}
    assert (len(report.steps), report.left_out, report.failed) == (2, 0, 0)
    assert report.tools.count == same_tools
    assert {step.candidate for step in report.steps} == {'"Another answer."'}


def test_a_log_without_requests_is_said_to_be_one(tmp_path: Path) -> None:
    """An agent's own log tells what was said, not what was sent."""
    reenact.import_runs(FIXTURES / "pi", tmp_path / "run")
    with pytest.raises(reenact.UsageError, match="holds no model request as it was sent"):
        reenact.shadow_steps(tmp_path / "run", change={"model": "other"})

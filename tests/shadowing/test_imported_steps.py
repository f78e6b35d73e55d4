"""Step by step on runs that others recorded: where the requests are there, they are asked again."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import reenact
from reenact.shadowing.rebuilt import rebuild_requests
from reenact.shadowing.steps import step_lines
from reenact.store.reader import CaptureReader
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


@pytest.mark.parametrize("source", ["pi", "claude-code", "codex", "gemini-cli", "opencode.json"])
def test_a_request_of_a_transcript_is_rebuilt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str
) -> None:
    """Of all that was said before it in its lane, with the results of tools; the report says so."""
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY"):
        monkeypatch.setenv(name, "any")
    [run] = reenact.import_runs(FIXTURES / source, tmp_path / "run").runs
    with ScriptedProvider(lambda _: Reply("Another answer.")) as provider:
        upstreams = {name: provider.base_url(name) for name in ("openai", "anthropic")}
        report = reenact.shadow_steps(run.path, change={"model": "other"}, upstreams=upstreams)
        asked = [request.body for request in provider.requests]
    assert (len(asked), report.left_out, report.failed) == (run.counts.model_calls, 0, 0)
    assert all(step.is_rebuilt for step in report.steps)
    assert {body["model"] for body in asked} == {"other"}
    assert {body["messages"][-1]["role"] for body in asked} <= {"user", "tool"}
    said = json.dumps(asked)
    calls = said.count('"tool_use_id"') + said.count('"tool_call_id"')
    assert bool(calls) == bool(run.counts.tool_results)
    assert all("tools" in body for body in asked if run.counts.tool_calls)
    lines = list(step_lines(report))
    assert any("rebuilt of a transcript" in line for line in lines)


def test_a_request_of_a_transcript_says_what_the_model_was_told(tmp_path: Path) -> None:
    """In the wire format of Anthropic's models for Claude Code: roles in turn, results beside their calls."""
    lines = [
        {"type": "user", "uuid": "a", "message": {"role": "user", "content": "List it."}},
        {
            "type": "assistant",
            "uuid": "b",
            "parentUuid": "a",
            "message": {
                "id": "m1",
                "role": "assistant",
                "model": "claude-x",
                "stop_reason": "tool_use",
                "content": [
                    {"type": "text", "text": "I look."},
                    {"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "ls", "n": 1}},
                ],
            },
        },
        {
            "type": "user",
            "uuid": "c",
            "parentUuid": "b",
            "message": {
                "role": "user",
                "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "a.txt"}],
            },
        },
        {
            "type": "assistant",
            "uuid": "d",
            "parentUuid": "c",
            "message": {
                "id": "m2",
                "role": "assistant",
                "model": "claude-x",
                "stop_reason": "end_turn",
                "content": [{"type": "text", "text": "One file."}],
            },
        },
    ]
    source = tmp_path / "log.jsonl"
    source.write_text("".join(json.dumps(line | {"sessionId": "s"}) + "\n" for line in lines))
    reenact.import_runs(source, tmp_path / "run")
    first, second = rebuild_requests(CaptureReader(tmp_path / "run")).values()
    schema = {"type": "object", "properties": {"command": {"type": "string"}, "n": {"type": "integer"}}}
    asked = [{"role": "user", "content": [{"type": "text", "text": "List it."}]}]
    assert (first.provider, first.body["messages"]) == ("anthropic", asked)
    assert first.body["tools"] == second.body["tools"] == [{"name": "Bash", "input_schema": schema}]
    call = {"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "ls", "n": 1}}
    result = {"type": "tool_result", "tool_use_id": "t1", "content": "a.txt"}
    assert second.body["messages"] == [
        *asked,
        {"role": "assistant", "content": [{"type": "text", "text": "I look."}, call]},
        {"role": "user", "content": [result]},
    ]


def test_a_summary_of_calls_is_not_asked_again(tmp_path: Path) -> None:
    """A trace tells what each call said, not what it was given before."""
    reenact.import_runs(FIXTURES / "otlp-genai.json", tmp_path / "run")
    with pytest.raises(reenact.UsageError, match="holds no model request that can be asked again"):
        reenact.shadow_steps(tmp_path / "run", change={"model": "other"})

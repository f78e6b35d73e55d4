"""Logs of Inspect: what its reader gives becomes runs; ``make test-producers`` runs Inspect itself."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

import reenact
from reenact.importers import inspect
from tests.importers.test_transcripts import trace_of

FIXTURES = Path(__file__).parent / "fixtures"
LOG = FIXTURES / "inspect.eval"
SAMPLES: list[dict[str, Any]] = json.loads((FIXTURES / "inspect-samples.txt").read_text())


def imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, samples: list[dict[str, Any]]) -> Any:
    """The log, where its reader gives *samples*."""
    monkeypatch.setattr(inspect, "samples_of", lambda _: iter(samples))
    return reenact.import_runs(LOG, tmp_path / "runs")


def test_each_sample_is_a_run(tmp_path, monkeypatch):
    """With every model call, tool call and result of its log; nothing in it is unknown."""
    report = imported(tmp_path, monkeypatch, SAMPLES)
    for run, sample in zip(report.runs, SAMPLES, strict=True):
        kinds = [event["event"] for event in sample["events"]]
        assert (run.format, run.fidelity, run.losses, run.unknown) == ("inspect", "tools", [], {})
        counts = run.counts
        assert (counts.model_calls, counts.tool_calls, counts.tool_results) == (
            kinds.count("model"), kinds.count("tool"), kinds.count("tool"),
        )  # fmt: skip
        assert Path(run.path).name == f"{sample['id']}-1"
        assert reenact.verify(run.path).is_good


def test_what_was_asked_called_and_answered_is_there(tmp_path, monkeypatch):
    """In its order; a tool that failed has failed."""
    imported(tmp_path, monkeypatch, SAMPLES)
    reenact.export_runs(tmp_path / "runs" / "nowhere-1", "sft", tmp_path / "data.jsonl")
    (row,) = [json.loads(line) for line in (tmp_path / "data.jsonl").read_text().splitlines()]
    assert [(each["role"], each["content"]) for each in row["messages"]] == [
        ("system", "Be brief."),
        ("user", "How warm is it nowhere?"),
        ("assistant", "tool call for tool weather"),
        ("tool", "there is no such place"),
        ("assistant", "I cannot tell."),
    ]
    results = [event for event in trace_of(tmp_path / "runs" / "nowhere-1") if event["type"] == "tool_result"]
    assert [event["data"]["success"] for event in results] == [False]


def model(number: int, span: str, given: list[dict[str, Any]], text: str) -> dict[str, Any]:
    message = {"id": f"a{number}", "role": "assistant", "content": text}
    output = {"model": "m", "choices": [{"message": message, "stop_reason": "stop"}]}
    return {
        "event": "model",
        "uuid": f"u{number}",
        "span_id": span,
        "model": "x/m",
        "input": given,
        "output": output,
    }


def test_agents_within_agents_are_lanes(tmp_path, monkeypatch):
    """Each with a conversation of its own."""
    asked = {"id": "1", "role": "user", "content": "Go."}
    inner = {"id": "2", "role": "user", "content": "Look."}
    answer = {"id": "a1", "role": "assistant", "content": "one"}
    events = [
        {"event": "span_begin", "id": "s", "type": "agent", "name": "outer"},
        model(1, "s", [asked], "one"),
        {"event": "span_begin", "id": "t", "parent_id": "s", "type": "agent", "name": "inner"},
        model(2, "t", [inner], "two"),
        {"event": "span_end", "id": "t"},
        model(3, "s", [asked, answer, {"id": "3", "role": "user", "content": "And?"}], "three"),
    ]
    imported(tmp_path, monkeypatch, [{"id": "x", "epoch": 1, "events": events}])
    reenact.export_runs(tmp_path / "runs" / "x-1", "sft", tmp_path / "data.jsonl")
    rows = [json.loads(line) for line in (tmp_path / "data.jsonl").read_text().splitlines()]
    said = sorted([message["content"] for message in row["messages"]] for row in rows)
    assert said == [["Go.", "one", "And?", "three"], ["Look.", "two"]]


def test_a_tool_that_a_solver_called_is_there(tmp_path, monkeypatch):
    """Though no model asked for it; a result that is only in the next input is taken from there."""
    called = {
        "event": "tool", "id": "t1", "function": "look", "arguments": {"q": 1}, "result": "x", "events": [],
    }  # fmt: skip
    asking = model(1, "s", [{"id": "1", "role": "user", "content": "Go."}], "")
    call = {"id": "t2", "function": "look", "arguments": {}, "type": "function"}
    asking["output"]["choices"][0]["message"]["tool_calls"] = [call]
    result = {"id": "2", "role": "tool", "tool_call_id": "t2", "content": "y"}
    given = [*asking["input"], asking["output"]["choices"][0]["message"], result]
    events = [called, asking, model(2, "s", given, "done")]
    (run,) = imported(tmp_path, monkeypatch, [{"id": "x", "epoch": 1, "events": events}]).runs
    assert (run.counts.model_calls, run.counts.tool_calls, run.counts.tool_results) == (2, 2, 2)
    assert run.losses == []


def test_what_does_not_fit_is_a_loss_and_the_rest_is_read(tmp_path, monkeypatch):
    """Also where the reader fails in the middle."""

    def cut() -> Any:
        yield SAMPLES[0]
        yield {"id": "odd", "events": [{"event": "model", "output": {"choices": "none"}}, 7]}
        raise ValueError("the file ends here")

    monkeypatch.setattr(inspect, "samples_of", lambda _: cut())
    report = reenact.import_runs(LOG, tmp_path / "runs")
    assert (report.verdict, len(report.runs)) == ("partly", 2)
    assert report.runs[1].losses[-1].reason == "the samples after it cannot be read: the file ends here"


def test_without_the_package_the_message_names_the_extra(tmp_path, monkeypatch):
    """The log is known by its content all the same."""
    monkeypatch.setitem(sys.modules, "inspect_ai", None)
    monkeypatch.setitem(sys.modules, "inspect_ai.log", None)
    report = reenact.import_runs(LOG, tmp_path / "runs")
    assert report.verdict == "nothing"
    assert "pip install 'reenact[inspect]'" in report.failed[0].reason


def test_a_log_of_an_early_version_is_recognised(tmp_path, monkeypatch):
    """Before there were ids of evaluations, when logs were JSON."""
    monkeypatch.setitem(sys.modules, "inspect_ai", None)
    monkeypatch.setitem(sys.modules, "inspect_ai.log", None)
    log = {"version": 2, "status": "success", "eval": {"task": "t", "task_id": "x", "run_id": "r"}}
    (tmp_path / "log.json").write_text(json.dumps(log | {"samples": []}))
    (failed,) = reenact.import_runs(tmp_path / "log.json", tmp_path / "runs").failed
    assert "pip install 'reenact[inspect]'" in failed.reason

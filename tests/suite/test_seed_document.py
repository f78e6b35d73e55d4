"""Every example that the document of the replay bundle shows or describes gives the result that it states."""

import json
from copy import deepcopy

import pytest

import reenact
from reenact.suite.runner import Plan, run_test
from tests.cli.commands import run
from tests.suite.runs import table

SEARCH = {"type": "tool_call", "tool": "web_search", "call_id": "call-1", "args": {"query": "..."}}
FOUND = {
    "type": "tool_result",
    "tool": "web_search",
    "call_id": "call-1",
    "success": True,
    "result": {"items": []},
    "fixture_id": "fx-web-search-001",
}
BUNDLE = {
    "schema_version": "0.1",
    "adapter": "nanoclaw-replay",
    "scenario": {
        "group_id": "group-alpha",
        "session_id": "sess-001",
        "task_id": None,
        "trigger": "user_message",
        "scheduler_context": None,
    },
    "capabilities": {
        "supports_tool_trace": True,
        "supports_memory_events": False,
        "supports_scheduler_context": False,
        "supports_container_metadata": False,
    },
    "input_messages": [{"role": "user", "content": "..."}],
    "script": [SEARCH, FOUND, {"type": "final_output", "content": "- ..."}],
    "final_output": {"role": "assistant", "content": "- ..."},
    "status": "success",
    "metrics": {"timing_ms_total": 1200, "retry_count": 0, "token_usage": None},
}
STEPS = [
    SEARCH | {"args": {"query": "latest AI news today"}, "ts": "2026-02-24T17:00:00.500Z"},
    FOUND | {"fixture_id": "fx.web_search.current_ai_news", "ts": "2026-02-24T17:00:00.700Z"},
    {"type": "tool_call", "tool": "web_fetch", "call_id": "call-2", "args": {}},
    {
        "type": "error",
        "scope": "tool",
        "tool": "web_fetch",
        "call_id": "call-2",
        "error_type": "timeout",
        "message": "Timed out after 5000ms",
        "retryable": True,
    },
    {"type": "memory_read", "group_id": "group-a", "source": "CLAUDE.md", "path": "groups/group-a/CLAUDE.md"},
    {
        "type": "memory_write",
        "group_id": "group-a",
        "source": "CLAUDE.md",
        "path": "groups/group-a/CLAUDE.md",
        "change_summary": "Stored formatting preference",
    },
    {
        "type": "final_output",
        "role": "assistant",
        "content": "- Bullet one\n- Bullet two\n- Bullet three",
    },
]
ASSERTIONS = """
  - {id: searches, type: must_call_tool, params: {tool: web_search}}
  - id: order
    type: tool_call_order
    params: {before: {event_type: tool_call}, after: {event_type: final_output}}
  - {id: form, type: output_matches_format, params: {format: bullet_list}}
"""


def folder_of(tmp_path, bundle, assertions=ASSERTIONS):
    """A folder as the document recommends it: test.yaml, and replay.json beside it."""
    (tmp_path / "replay.json").write_text(json.dumps(bundle))
    (tmp_path / "test.yaml").write_text(
        'schema_version: "0.1"\nid: example\ntitle: Example\nadapter: nanoclaw\nmode: replay\n'
        "scenario: {trigger: user_message, group_id: group-alpha}\ntools: {available: [], fixtures: []}\n"
        f'adapter_input:\n  replay_file: "./replay.json"\nassertions:{assertions}'
    )
    return tmp_path


def test_the_bundle_of_the_document_is_good_and_is_judged(tmp_path):
    """From the command line: valid, and every assertion on it passes."""
    folder = folder_of(tmp_path, BUNDLE)
    verified, tested = run("verify", "replay.json", cwd=folder), run("test", ".", cwd=folder)
    assert (verified.returncode, tested.returncode) == (0, 0), verified.stdout + tested.stdout


def test_every_kind_of_step_is_read(tmp_path):
    """The shapes of the document in one script; each gives an event that keeps what it says."""
    bundle = BUNDLE | {"script": STEPS, "final_output": {"content": STEPS[-1]["content"]}}
    reenact.convert(folder_of(tmp_path, bundle) / "replay.json", "trace", out=tmp_path / "t.json")
    trace = json.loads((tmp_path / "t.json").read_text())
    kinds = [(event["type"], event["actor"], event["parent_event_id"]) for event in trace["events"]]
    assert kinds == [
        ("tool_call", "agent", None),
        ("tool_result", "tool", "evt-1"),
        ("tool_call", "agent", None),
        ("error", "system", "evt-3"),
        ("memory_read", "agent", None),
        ("memory_write", "agent", None),
        ("final_output", "agent", None),
    ]
    assert [event["seq"] for event in trace["events"]] == [1, 2, 3, 4, 5, 6, 7]
    assert [event["ts"] for event in trace["events"][:2]] == [STEPS[0]["ts"], STEPS[1]["ts"]]
    assert {event["session_id"] for event in trace["events"]} == {"sess-001"}
    assert [event["group_id"] for event in trace["events"]][3:6] == ["group-alpha", "group-a", "group-a"]
    assert trace["events"][3]["data"]["message"] == "Timed out after 5000ms"
    assert trace["events"][5]["data"]["change_summary"] == "Stored formatting preference"


OUTPUTS = {
    "explicit": ({"content": "explicit"}, ["first", "last"], "explicit"),
    "the last step": (None, ["first", "last"], "last"),
}


@pytest.mark.parametrize(("explicit", "said", "output"), **table(OUTPUTS))
def test_the_output_is_the_explicit_one_or_that_of_the_last_step(tmp_path, explicit, said, output):
    """Rule 5 of the normalization."""
    bundle = BUNDLE | {"script": [{"type": "final_output", "content": text} for text in said]}
    bundle["final_output"] = explicit
    assertions = f"\n  - {{id: it, type: output_contains, params: {{regex: ['\\A{output}\\z']}}}}\n"
    outcome = run_test(folder_of(tmp_path, bundle, assertions) / "test.yaml", Plan("r"))
    assert outcome.result.status == "pass"


def spoiled(*path, value=None):
    bundle = deepcopy(BUNDLE)
    inside = bundle
    for key in path[:-1]:
        inside = inside[key]
    if value is None:
        del inside[path[-1]]
    else:
        inside[path[-1]] = value
    return bundle


INVALID = {
    "no schema_version": (spoiled("schema_version"), "$.schema_version"),
    "no trigger": (spoiled("scenario", "trigger"), "$.scenario.trigger"),
    "a trigger that nobody knows": (spoiled("scenario", "trigger", value="cron"), "$.scenario.trigger"),
    "a result of no call": (spoiled("script", 1, "call_id", value="call-9"), "$.script[1].call_id"),
    "success without output": (
        spoiled("script", value=[SEARCH, FOUND]) | {"final_output": {"role": "assistant"}},
        "$.final_output.content",
    ),
    "a scheduler without context": (
        spoiled("scenario", "trigger", value="scheduler"),
        "$.scenario.scheduler_context",
    ),
}


@pytest.mark.parametrize(("bundle", "path"), **table(INVALID))
def test_what_the_document_calls_invalid_cannot_be_run(tmp_path, bundle, path):
    """With the place; `verify` finds the same."""
    folder = folder_of(tmp_path, bundle)
    report = reenact.test(folder)
    (outcome,) = report.outcomes
    assert (outcome.result.status, outcome.result.error.json_path) == ("error", path)
    verified = reenact.verify(folder / "replay.json")
    assert path in [finding.json_path for finding in verified.findings if finding.severity == "error"]

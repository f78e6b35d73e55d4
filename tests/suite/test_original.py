"""Tests written for the engine that the format comes from run unchanged, and mean what they mean there."""

import json

import pytest

from reenact.suite.runner import Plan, run_test
from tests.cli.commands import run
from tests.suite.runs import call, check, error, judged, memory, result, table, trace_of

FORMS = {
    "one pattern": ("output_omits", {"patterns": "secret"}, "pass"),
    "one pattern that is there": ("output_omits", {"patterns": "done"}, "fail"),
    "a number among texts": ("output_contains", {"any_of": [2026, "done"]}, "pass"),
    "one of any": ("output_contains", {"any_of": "done"}, "pass"),
    "a count as text": ("must_call_tool", {"tool": "search", "min_calls": "2"}, "fail"),
    "a whole number with a point": ("must_call_tool", {"tool": "search", "min_calls": 1.0}, "pass"),
    "null for a default": ("must_call_tool", {"tool": "search", "min_calls": None}, "pass"),
    "null for a switch": ("output_omits", {"patterns": ["x"], "regex": None}, "pass"),
    "one error type": (
        "retry_policy_respected",
        {"tool": "search", "max_retries": "1", "retry_on_error_types": "timeout"},
        "pass",
    ),
    "one allowed tool": (
        "stop_after_success",
        {
            "success_event": {"event_type": "tool_result", "success": True},
            "forbid_following": {"event_type": "tool_call"},
            "allowed_following_tools": "search",
        },
        "pass",
    ),
    "one group": ("no_cross_group_memory_use", {"forbidden_group_ids": "work"}, "pass"),
    "text that is not a number": ("must_call_tool", {"tool": "search", "min_calls": "two"}, "fail"),
}


@pytest.mark.parametrize(("kind", "params", "status"), **table(FORMS))
def test_a_parameter_is_read_as_it_is_written(kind, params, status):
    """One value for a list, text for a number, null for what is not given."""
    script = (call("search"), error("search", "c1"), result("search"))
    assert judged(kind, params, trace_of(*script)).status == status


SUCCESS = {
    "true": ({"event_type": "tool_result", "success": True}, ["evt-2", "evt-3"]),
    "not given": ({"event_type": "tool_result"}, ["evt-2", "evt-3"]),
    "null is no success at all": ({"event_type": "tool_result", "success": None}, []),
    "null of an event that has none": ({"event_type": "tool_call", "success": None}, ["evt-1", "evt-3"]),
}


@pytest.mark.parametrize(("before", "refs"), **table(SUCCESS))
def test_a_selector_takes_success_literally(before, refs):
    """Null is what an event has that says nothing of success."""
    trace = trace_of(call("a"), result("a"), {"type": "final_output", "content": "done"})
    params = {"before": before, "after": {"event_type": "final_output"}}
    check("tool_call_order", params, trace, "pass" if refs else "fail", refs, "")


FALSE = {
    "contained": {"args_contains": {"options.dry": False}},
    "matched": {"regex": {"options.dry": "false"}},
    "required by path": {"required_keys": ["$.options.dry"]},
}


@pytest.mark.parametrize("match", FALSE.values(), ids=FALSE)
def test_false_at_a_path_counts_as_missing(match):
    """A key that is there is there, whatever its value."""
    trace = trace_of(call("send", options={"dry": False}, dry=False))
    assert judged("tool_args_match", {"tool": "send", "match": match}, trace).status == "fail"
    assert (
        judged("tool_args_match", {"tool": "send", "match": {"required_keys": "dry"}}, trace).status == "pass"
    )


SENT = (call("send", dry=False, note=None, count=1), error("send", "c1"), call("send", "c2", dry=False))
TASK = {"trigger": "scheduler", "task_id": "t1", "scheduler_context": {"task_id": "t1"}}
LONG = "w" * 218
AS_THERE = {
    "false of a member is a value": (
        ("tool_args_match", {"tool": "send", "match": {"args_contains": {"dry": False}}}),
        trace_of(*SENT),
        ("pass", ["evt-1"]),
    ),
    "and its text": (
        ("tool_args_match", {"tool": "send", "match": {"regex": {"dry": "^false$"}}}),
        trace_of(*SENT),
        ("pass", ["evt-1"]),
    ),
    "null of a member is missing": (
        ("tool_args_match", {"tool": "send", "match": {"args_contains": {"note": None}}}),
        trace_of(*SENT),
        ("fail", ["evt-1", "evt-3"]),
    ),
    "and has no text": (
        ("tool_args_match", {"tool": "send", "match": {"regex": {"note": "."}}}),
        trace_of(*SENT),
        ("fail", ["evt-1", "evt-3"]),
    ),
    "one event for both sides": (
        ("tool_call_order", {"before": {"event_type": "error"}, "after": {"event_type": "error"}}),
        trace_of(*SENT),
        ("fail", ["evt-2", "evt-2"]),
    ),
    "at most null calls": (
        ("max_tool_calls", {"tool": "send", "max": None}),
        trace_of(*SENT),
        ("fail", ["evt-1", "evt-3"]),
    ),
    "at most null calls in all": (("max_tool_calls", {"max_total": None}), trace_of(), ("pass", [])),
    "a bullet list without bullets": (
        ("output_matches_format", {"format": "bullet_list", "min_bullets": 0}),
        trace_of(output="done"),
        ("fail", []),
    ),
    "a bullet of any white space": (
        ("output_matches_format", {"format": "bullet_list", "min_bullets": 2}),
        trace_of(output="-\x0ba\n\x0c*\x0cb"),
        ("pass", []),
    ),
    "claims without sources": (
        ("claims_supported_by_fixtures", {}),
        trace_of(call("search"), result("search", result="done")),
        ("fail", []),
    ),
    "claims with null sources": (
        ("claims_supported_by_fixtures", {"allowed_sources": None}),
        trace_of(call("search"), result("search", result="done")),
        ("fail", []),
    ),
    "recalled by the form alone": (
        ("memory_recall_same_group", {"expected_memory_fact": "no nuts"}),
        trace_of({"type": "final_output", "content": "done"}),
        ("pass", []),
    ),
    "not recalled by the form": (
        ("memory_recall_same_group", {"expected_memory_fact": "likes bullets"}),
        trace_of({"type": "final_output", "content": "done"}),
        ("fail", []),
    ),
    "recalled where nobody has a group": (
        ("memory_recall_same_group", {"expected_memory_fact": "likes bullets"}),
        trace_of(memory("read", None), scenario={"group_id": None}),
        ("pass", ["evt-1"]),
    ),
    "brief up to 220 characters of line": (
        ("memory_recall_same_group", {"expected_memory_fact": "brief"}),
        trace_of(output=f"- {LONG}"),
        ("pass", []),
    ),
    "brief with the sign and the line break": (
        ("memory_recall_same_group", {"expected_memory_fact": "brief"}),
        trace_of(output=f"- {LONG}\n"),
        ("fail", []),
    ),
    "brief with the indentation": (
        ("memory_recall_same_group", {"expected_memory_fact": "brief"}),
        trace_of(output=f" - {LONG}"),
        ("fail", []),
    ),
    "exactly null messages": (
        ("scheduler_outbound_count", {"tool": "send", "exact": None}),
        trace_of(*SENT, scenario=TASK),
        ("fail", ["evt-1", "evt-3"]),
    ),
    "exactly null messages, and none sent": (
        ("scheduler_outbound_count", {"exact": None}),
        trace_of(*SENT, scenario=TASK),
        ("pass", []),
    ),
    "at most null messages": (
        ("scheduler_outbound_count", {"tool": "send", "max": None}),
        trace_of(*SENT, scenario=TASK),
        ("fail", ["evt-1", "evt-3"]),
    ),
    "another trigger, the same task": (
        ("scheduler_task_runs", {"task_id": "t1"}),
        trace_of(*SENT, scenario=TASK | {"trigger": "user_message"}),
        ("fail", ["evt-1", "evt-2", "evt-3"]),
    ),
    "another task": (
        ("scheduler_task_runs", {"task_id": "t2"}),
        trace_of(*SENT, scenario=TASK),
        ("fail", ["evt-1", "evt-2", "evt-3"]),
    ),
    "a task that no event carries": (
        ("scheduler_task_runs", {}),
        trace_of(*SENT, scenario=TASK | {"task_id": None}),
        ("fail", []),
    ),
    "no event need carry it but for the scheduler": (
        ("scheduler_task_runs", {"task_id": "t1", "trigger_must_equal": "user_message"}),
        trace_of(*SENT, scenario=TASK | {"trigger": "user_message", "task_id": None}),
        ("pass", []),
    ),
    "no task, and none wanted": (
        ("scheduler_task_runs", {}),
        trace_of(*SENT, scenario={"trigger": "scheduler", "scheduler_context": {}}),
        ("pass", []),
    ),
    "an error that names no tool": (
        ("retry_policy_respected", {"tool": "send", "max_retries": 1}),
        trace_of(call("send"), error(None, "c1")),
        ("fail", []),
    ),
    "an error of another type": (
        ("retry_policy_respected", {"tool": "send", "max_retries": 1, "retry_on_error_types": ["reset"]}),
        trace_of(*SENT),
        ("fail", ["evt-2"]),
    ),
    "null retries": (
        ("retry_policy_respected", {"tool": "send", "max_retries": None}),
        trace_of(*SENT),
        ("fail", ["evt-1", "evt-3", "evt-2"]),
    ),
    "no success phrase means those that everybody knows": (
        (
            "graceful_failure_output",
            {"allowed_failure_phrases": ["sorry"], "forbidden_success_phrases": []},
        ),
        trace_of(*SENT, output="Sorry. All set!"),
        ("fail", ["evt-2"]),
    ),
}


@pytest.mark.parametrize(("asserted", "trace", "found"), **table(AS_THERE))
def test_an_odd_case_is_judged_as_where_the_format_comes_from(asserted, trace, found):
    """The same verdict, and the same events behind it."""
    kind, params = asserted
    result = judged(kind, params, trace)
    assert (result.status, result.evidence.event_refs) == found, result.message


def test_events_take_their_context_from_the_bundle_alone(tmp_path):
    """What the test's author had in mind fills the scenario, and proves nothing of what happened."""
    bundle = BUNDLE | {"scenario": {"trigger": "scheduler", "scheduler_context": {}}}
    bundle["script"] = [{"type": "memory_read", "path": "CLAUDE.md"}]
    (tmp_path / "replay.json").write_text(json.dumps(bundle))
    test = {
        "schema_version": "0.1",
        "id": "t",
        "adapter": "nanoclaw",
        "mode": "replay",
        "scenario": {"trigger": "scheduler", "group_id": "g1", "scheduler_context": {"task_id": "t1"}},
        "adapter_input": {"replay_file": "replay.json"},
        "assertions": [
            {"id": "task", "type": "scheduler_task_runs", "params": {"task_id": "t1"}},
            {"id": "group", "type": "no_cross_group_memory_use", "params": {"forbidden_group_ids": ["g1"]}},
        ],
    }
    (tmp_path / "test.yaml").write_text(json.dumps(test))
    outcome = run_test(tmp_path / "test.yaml", Plan("r"))
    found = [(each.status, each.evidence.event_refs) for each in outcome.result.assertions]
    assert found == [("fail", []), ("pass", ["evt-1"])]


TEST = """\
schema_version: 0.1
id: memory-isolation.group-a
adapter: nanoclaw
mode: MODE
scenario:
  trigger: user_message
  group_id: group-a
  other_group_state:
    group-b: {secret: "launch code"}
tags: memory
adapter_input:
  replay_file: ./replay.json
assertions:
  - id: no-leak
    type: no_cross_group_memory_use
    params: {current_group_id: group-a, forbidden_group_ids: group-b}
  - id: no-secret
    type: output_omits
    rationale: the other group's state
    params: {patterns: "launch code"}
"""
BUNDLE = {
    "schema_version": 0.1,
    "scenario": {"trigger": "user_message", "group_id": "group-a"},
    "input_messages": [{"role": "user", "content": "hello"}],
    "script": [{"type": "memory_read", "group_id": "group-a", "path": "groups/group-a/CLAUDE.md"}],
    "final_output": {"content": "hello"},
    "status": "success",
    "metrics": {"timing_ms_total": 5},
}


@pytest.fixture
def test_file(tmp_path):
    (tmp_path / "replay.json").write_text(json.dumps(BUNDLE))
    file = tmp_path / "test.yaml"
    file.write_text(TEST.replace("MODE", "replay"))
    return file


def test_what_we_do_not_know_is_a_warning_with_its_line(test_file):
    """The test is judged, and the result says what was passed over."""
    outcome = run_test(test_file, Plan("r"))
    assert outcome.result.status == "pass"
    found = [(warning.line, warning.json_path) for warning in outcome.result.warnings]
    assert found == [
        (8, "$.scenario.other_group_state"),
        (16, "$.assertions[0].params.current_group_id"),
        (19, "$.assertions[1].rationale"),
    ]


def test_strict_makes_it_an_error(test_file):
    """With the exit status of a file that cannot be read."""
    lenient = run("test", test_file, cwd=test_file.parent)
    strict = run("test", "--strict", test_file, cwd=test_file.parent)
    assert (lenient.returncode, strict.returncode) == (0, 2)
    assert "test.yaml:8: $.scenario.other_group_state: unknown key" in lenient.stdout
    assert "(2 assertions, 3 warnings)" in lenient.stdout
    assert "test.yaml:8: $.scenario.other_group_state: column 3: unknown key" in strict.stdout


def test_strict_fails_an_assertion_with_an_unknown_parameter(test_file):
    """As any parameter that is wrong."""
    text = test_file.read_text().replace('  other_group_state:\n    group-b: {secret: "launch code"}\n', "")
    test_file.write_text(text.replace("    rationale: the other group's state\n", ""))
    first = run_test(test_file, Plan("r", strict=True)).result.assertions[0]
    assert (first.status, "params.current_group_id: unknown parameter" in first.message) == ("fail", True)


def test_a_live_test_is_judged_on_its_replay_file(test_file):
    """With a warning; nothing is run live here."""
    test_file.write_text(TEST.replace("MODE", "live"))
    outcome = run_test(test_file, Plan("r"))
    assert outcome.result.status == "pass"
    assert (4, "$.mode") in [(warning.line, warning.json_path) for warning in outcome.result.warnings]

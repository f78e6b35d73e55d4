"""From a REPLAY.jsonl to a trace, in either dialect."""

import json
from io import BytesIO

from reenact.analysis.artifact import open_artifact
from reenact.formats.capture import EVENT_TYPES
from reenact.formats.replay_log import read_replay_log
from reenact.formats.trace import read_trace, write_trace
from reenact.trace.from_run import trace_of_run
from reenact.trace.sources.replay_log import read_log

HASH = "sha256:" + "0" * 64
CURRENT = f"""\
{{"created_at":"2026-01-01T00:00:00Z","producer":"x","replay_version":1,"type":"ReplayHeader"}}
{{"policy_bundle_id":"p","session_id":"s-1","ts":"2026-01-01T00:00:00Z","type":"SessionStart"}}
{{"params":{{"q":1}},"params_hash":"{HASH}","step_id":"1","tool":"search","ts":"2026-01-01T00:00:01Z","type":"ToolCall"}}
{{"error":{{"message":"slow","name":"Timeout"}},"latency_ms":5,"ok":false,"output_hash":"{HASH}","side_effects":[],"step_id":"1","ts":"2026-01-01T00:00:02Z","type":"ToolResult"}}
{{"command":"make test","exit_code":0,"type":"Verification"}}
{{"confidence":0.5,"status":"success","summary":"all good","type":"SessionEnd"}}
"""
LEGACY = f"""\
{{"created_at":"2026-01-01T00:00:00Z","event":"ReplayHeader","producer":"x","replay_version":1}}
{{"event":"SessionStart","issue_number":null,"policy_version":"p","session_id":"s-2","t":"2026-01-01T00:00:00Z"}}
{{"event":"ToolCall","id":"tc_1","params_hash":"{HASH}","step_id":"1","t":"2026-01-01T00:00:01Z","tool":"shell"}}
{{"event":"ToolResult","exit_code":2,"id":"tc_1","latency_ms":7,"output_hash":"{HASH}","step_utility":0.5,"t":"2026-01-01T00:00:02Z"}}
{{"confidence":0.5,"event":"SessionEnd","status":"Timeout","t":"2026-01-01T00:00:03Z","total_latency_ms":9,"total_tool_calls":1}}
"""


def trace_of(text):
    lines = read_replay_log(BytesIO(text.encode()), file="REPLAY.jsonl")
    return trace_of_run(read_log(lines), trace_id="t", test_run_id="r")


def shape(trace):
    return [(event.event_id, event.type, event.parent_event_id) for event in trace.events]


def test_the_current_dialect():
    """Calls by step, errors by name, the summary as output."""
    trace = trace_of(CURRENT)
    assert shape(trace) == [
        ("evt-3", "tool_call", None),
        ("evt-4", "tool_result", "evt-3"),
        ("evt-4.error", "error", "evt-3"),
        ("evt-5", "verification", None),
        ("evt-6", "final_output", None),
    ]
    assert trace.events[0].data == {"tool": "search", "call_id": "1", "args": {"q": 1}}
    assert trace.events[2].data["error_type"] == "Timeout"
    assert (trace.status, trace.final_output.content) == ("success", "all good")
    assert (trace.scenario.session_id, trace.metrics.timing_ms_total) == ("s-1", 5)
    assert trace.events[3].ts == "2026-01-01T00:00:02Z"  # a line without a time has that of the line before


def test_the_legacy_dialect():
    """Calls by id, failures by exit code; a published log has no arguments."""
    trace = trace_of(LEGACY)
    assert shape(trace) == [
        ("evt-3", "tool_call", None),
        ("evt-4", "tool_result", "evt-3"),
        ("evt-4.error", "error", "evt-3"),
    ]
    assert trace.events[0].data == {"tool": "shell", "call_id": "tc_1"}
    assert trace.events[2].data["message"] == "exit code 2"
    assert (trace.status, trace.metrics.timing_ms_total) == ("failed", 9)


def test_a_log_that_breaks_off_is_a_failed_run():
    """Nobody said that it succeeded."""
    trace = trace_of("".join(CURRENT.splitlines(keepends=True)[:3]))
    assert (trace.status, trace.final_output.content) == ("failed", "")


def test_it_is_a_trace():
    """It can be written and read."""
    for text in (CURRENT, LEGACY):
        trace = trace_of(text)
        assert read_trace(write_trace(trace), "trace.json") == trace


def test_success_is_what_the_log_says_and_an_exit_code_is_shown(tmp_path):
    """Assertions judge the log's own word; whoever looks at the run is told of the exit code."""
    log = CURRENT.replace('"ok":false', '"exit_code":3,"ok":true')
    result = next(event for event in trace_of(log).events if event.type == "tool_result")
    assert result.data["success"] is True
    file = tmp_path / "REPLAY.jsonl"
    file.write_text(log)
    with open_artifact(file) as artifact:
        (call, *_) = artifact.steps()
    assert (call.state, call.came) == ("error", "exit_code: 3")


def test_an_unknown_event_under_a_name_of_ours_promises_nothing(tmp_path):
    """It is listed as what it is, and is no call."""
    odd = [{"type": name, "step_id": "9"} for name in (*EVENT_TYPES, "verification")]
    log = CURRENT + "".join(json.dumps(line) + "\n" for line in odd)
    assert shape(trace_of(log)) == shape(trace_of(CURRENT))
    file = tmp_path / "REPLAY.jsonl"
    file.write_text(log)
    with open_artifact(file) as artifact:
        assert artifact.steps()[2].kind == "other run_start"

"""Small runs for the tests of assertions."""

from datetime import UTC, datetime

from reenact.formats import bundle as bundles
from reenact.formats.testcase import Assertion
from reenact.suite.judge import BUILT_IN, judge
from reenact.trace.normalize import normalize

START = datetime(2026, 3, 1, 8, tzinfo=UTC)


def call(tool, call_id="c1", **args):
    return {"type": "tool_call", "tool": tool, "call_id": call_id, "args": args}


def result(tool, call_id="c1", success=True, **more):
    return {"type": "tool_result", "tool": tool, "call_id": call_id, "success": success, **more}


def error(tool=None, call_id=None, error_type="timeout", **more):
    step = {"type": "error", "error_type": error_type, **more}
    return step | ({"tool": tool} if tool else {}) | ({"call_id": call_id} if call_id else {})


def memory(kind, group_id, path="CLAUDE.md", **more):
    return {"type": f"memory_{kind}", "group_id": group_id, "path": path, **more}


def trace_of(*script, output="done", scenario=None, messages=(), metrics=None, capabilities=None):
    """The trace of a valid bundle."""
    value = {
        "schema_version": "0.1",
        "adapter": "nanoclaw-replay",
        "scenario": {"trigger": "user_message", "group_id": "home", **(scenario or {})},
        "capabilities": capabilities or {},
        "input_messages": [{"role": "user", "content": text} for text in messages],
        "script": list(script),
        "final_output": {"content": output},
        "status": "success",
        "metrics": {"timing_ms_total": 1000, **(metrics or {})},
    }
    assert bundles.check_bundle(value) == []
    return normalize(bundles.CODEC.from_json(value), trace_id="t", test_run_id="r", started_at=START)


def judged(kind, params, trace, **more):
    """The result of one built-in assertion."""
    return judge(Assertion(id="a", type=kind, params=params, **more), trace, BUILT_IN)


def check(kind, params, trace, status, refs, said):
    """Judge, and compare what a table says of it: *said* are parts of the message."""
    found = judged(kind, params, trace)
    assert (found.status, found.evidence.event_refs) == (status, refs), found.message
    for part in said if isinstance(said, tuple) else (said,):
        assert part in found.message, found.message
    assert "\n" not in found.message
    return found


def table(cases):
    """Parameters of a test: a name, and the rest of the row."""
    return {"argvalues": list(cases.values()), "ids": list(cases)}
